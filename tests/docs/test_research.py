"""docs/research.md: the commands that it names are there, and it is a page of the site."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest


def page(repository: Path) -> str:
    return (repository / "docs" / "research.md").read_text(encoding="utf-8")


def test_it_is_a_page_of_the_site(repository: Path) -> None:
    assert "research.md" in (repository / "mkdocs.yml").read_text(encoding="utf-8")


def test_its_commands(repository: Path) -> None:
    """Each parses, and names parts that there are; together they are all parts."""
    pytest.importorskip("torch")
    from benchmarks.tooldec.__main__ import PARTS, parser

    named: set[str] = set()
    commands = re.findall(r"^python -m benchmarks\.tooldec (.*)$", page(repository), re.MULTILINE)
    for command in commands:
        read = parser().parse_args(shlex.split(command))
        if read.command == "run":
            parts = set(read.parts.split(","))
            assert parts <= set(PARTS)
            named |= parts
    assert named == set(PARTS) and len(commands) > 1


def test_every_claim_has_the_papers_number_ours_and_the_setting(repository: Path) -> None:
    claims = re.split(r"(?m)^## ", page(repository))[1:]
    claims = [claim for claim in claims if re.match(r"\d", claim)]
    assert len(claims) >= 4
    for claim in claims:
        for part in ("**The paper.**", "**Here.**", "**Unlike the paper.**", "**What it means.**"):
            assert part in claim, (claim.splitlines()[0], part)
