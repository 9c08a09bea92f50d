"""docs/tutorial.md and docs/architecture.md print what they show; the pictures are those that pictures.py draws."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from .pages import PAGES, executed
from .pictures import BESIDE, FOLDER, PIPELINE, READERS, pictures

RENEW = "python -m tests.golden writes pages and pictures anew"


def rebuild() -> Path:
    """Write the output in the pages, and the pictures, anew."""
    for page in PAGES:
        text, names = executed(page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")
        if page.name == "tutorial.md":
            for name, drawn in pictures(names).items():
                (FOLDER / name).write_text(drawn, encoding="utf-8")
    return PAGES[0]


@pytest.fixture(scope="module", params=PAGES, ids=lambda page: page.name)
def run(request: pytest.FixtureRequest) -> tuple[Path, str, dict[str, Any]]:
    pytest.importorskip("torch")
    return request.param, *executed(request.param.read_text(encoding="utf-8"))


def test_a_page_shows_what_its_code_prints(run: tuple[Path, str, dict[str, Any]]) -> None:
    page, text, _ = run
    assert text == page.read_text(encoding="utf-8"), RENEW


def test_pictures_are_drawn_from_the_tables(run: tuple[Path, str, dict[str, Any]]) -> None:
    page, _, names = run
    if page.name != "tutorial.md":
        return
    drawn = pictures(names)
    assert sorted(drawn) == sorted(path.name for path in FOLDER.iterdir())
    for name, text in drawn.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{name}: {RENEW}"


def test_pages_show_every_picture(repository: Path) -> None:
    used = {
        name
        for page in [repository / "README.md", *(repository / "docs").glob("*.md")]
        for name in re.findall(r"\]\((?:docs/)?pictures/([\w.]+)\)", page.read_text(encoding="utf-8"))
    }
    assert used == {path.name for path in FOLDER.iterdir()}


def test_the_pipeline_names_folders(repository: Path) -> None:
    for folder, *_ in (*PIPELINE, *BESIDE, *READERS):
        assert (repository / folder).is_dir(), folder
