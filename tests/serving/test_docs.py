"""docs/serving.md says what the code says."""

from __future__ import annotations

import re

from toolc.runtime.serving import settings

from .table import PAGE, page


def test_the_table_of_parsers() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "run python -m tests.serving.table"


def test_every_variable_is_listed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    said = set(re.findall(r"^    (TOOLC_\w+)", settings.__doc__ or "", re.MULTILINE))
    assert said and said == set(re.findall(r"^\| `(TOOLC_\w+)`", text, re.MULTILINE))
