"""docs/serving.md says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from toolc.runtime.serving import settings

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


def test_every_variable_is_listed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    said = set(re.findall(r"^    (TOOLC_\w+)", settings.__doc__ or "", re.MULTILINE))
    assert said and said == set(re.findall(r"^\| `(TOOLC_\w+)`", text, re.MULTILINE))
