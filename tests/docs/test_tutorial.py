"""docs/tutorial.md prints what it shows, and the pictures of docs/ are those that tests/docs/pictures.py draws."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from .pictures import BESIDE, FOLDER, PIPELINE, READERS, pictures
from .tutorial import PAGE, executed

RENEW = "python -m tests.golden writes the page and its pictures anew"


def rebuild() -> Path:
    """Write the output in the page, and the pictures, anew."""
    page, names = executed(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page, encoding="utf-8")
    for name, text in pictures(names).items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return PAGE


@pytest.fixture(scope="module")
def run() -> tuple[str, dict[str, Any]]:
    pytest.importorskip("torch")
    return executed(PAGE.read_text(encoding="utf-8"))


def test_the_page_shows_what_its_code_prints(run: tuple[str, dict[str, Any]]) -> None:
    assert run[0] == PAGE.read_text(encoding="utf-8"), RENEW


def test_pictures_are_drawn_from_the_tables(run: tuple[str, dict[str, Any]]) -> None:
    drawn = pictures(run[1])
    assert sorted(drawn) == sorted(path.name for path in FOLDER.iterdir())
    for name, text in drawn.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{name}: {RENEW}"


def test_pages_show_every_picture(repository: Path) -> None:
    used = {
        name
        for page in (repository / "docs").glob("*.md")
        for name in re.findall(r"\]\(pictures/([\w.]+)\)", page.read_text(encoding="utf-8"))
    }
    assert used == {path.name for path in FOLDER.iterdir()}


def test_the_pipeline_names_folders(repository: Path) -> None:
    for folder, *_ in (*PIPELINE, *BESIDE, *READERS):
        assert (repository / folder).is_dir(), folder
