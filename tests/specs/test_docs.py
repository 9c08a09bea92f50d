"""The Python examples of docs/specs.md and others are executed, in order, in one namespace for each page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("ignore:no tokenizer is given")
@pytest.mark.parametrize(("page", "count"), [("specs.md", 8), ("protocols.md", 2), ("grammars.md", 1)])
def test_examples_run(page: str, count: int, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((repository / "docs" / page).read_text(encoding="utf-8"))
    assert len(blocks) == count
    names: dict[str, Any] = {"__name__": page}
    for text in blocks:
        exec(compile(text, page, "exec"), names)  # a test of our own file


def test_what_the_page_says_of_requests(repository: Path) -> None:
    """Every row of the table of entries names one of docs/protocols.md."""
    text = (repository / "docs" / "specs.md").read_text(encoding="utf-8").partition("## Requests to a model")[2]
    entries = set(re.findall(r"`(auto|required|none|either|response|tool:NAME)`", text))
    known = (repository / "docs" / "protocols.md").read_text(encoding="utf-8")
    assert entries == {"auto", "required", "none", "either", "response", "tool:NAME"}
    assert all(f"| `{entry}` |" in known for entry in entries)
