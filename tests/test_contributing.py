"""What CONTRIBUTING.md names is there: files, and symbols in them."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

PAGES = (
    "CONTRIBUTING.md",
    "tests/README.md",
    "docs/architecture.md",
    "docs/format.md",
    "docs/glossary.md",
    "docs/tutorial.md",
)
NAMED = re.compile(r"`((?:compiler|runtime|tests|grammars|benchmarks|docs)/[\w/.-]*\.\w+)(?:::([\w.]+))?`")


def symbols(path: Path) -> set[str]:
    """Names at the top of a module, and methods as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
        targets = node.targets if isinstance(node, ast.Assign) else ()
        targets = (node.target,) if isinstance(node, ast.AnnAssign) else targets
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize("page", PAGES)
def test_what_pages_name_is_there(page: str, repository: Path) -> None:
    named = NAMED.findall((repository / page).read_text(encoding="utf-8"))
    assert named or page == "docs/glossary.md"
    for place, symbol in named:
        assert (repository / place).is_file(), f"{page} names {place}"
        assert not symbol or symbol in symbols(repository / place), f"{page} names {place}::{symbol}"


def test_six_answers_name_symbols(repository: Path) -> None:
    text = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = text.split("| question | answer |")[1].split("## Recipes")[0].strip().splitlines()[1:]
    assert len(rows) == 6 and all(any(symbol for _, symbol in NAMED.findall(row)) for row in rows)


def test_the_reference_names_what_can_be_imported(repository: Path) -> None:
    named = re.findall(
        r"^::: ([\w.]+)$", (repository / "docs" / "reference.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(named) > 20
    for name in named:
        if name == "toolc.runtime.reference":
            assert import_module(name).__doc__
            continue
        module, _, symbol = name.rpartition(".")
        if module in ("toolc.runtime.device.decoder", "toolc.runtime.adapters.constraint"):
            pytest.importorskip("torch")
        assert getattr(import_module(module), symbol).__doc__, name


def test_the_site_has_every_page(repository: Path) -> None:
    nav = (repository / "mkdocs.yml").read_text(encoding="utf-8").split("nav:")[1]
    docs = repository / "docs"
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md") if path.parent.name in ("docs", "serving")}
    assert pages == set(re.findall(r": ([\w./-]+\.md)$", nav, re.MULTILINE))


SLOT = re.compile(r"^(?:Leaves out|See also) .*(?:\n {4,}.*)*", re.MULTILINE)


def test_docstrings_name_modules_that_are_there(repository: Path) -> None:
    """In the slot that says what other modules do."""
    sources = [path for folder in ("compiler", "runtime") for path in (repository / folder).rglob("*.py")]
    names = {path.name for path in sources}
    for path in sources:
        slots = SLOT.findall(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
        for named in re.findall(r"[\w./]*\w\.py\b", " ".join(slots)):
            homes = (path.parent, repository, repository / "compiler", repository / "runtime")
            found = named in names if "/" not in named else any((home / named).is_file() for home in homes)
            assert found, f"{path.relative_to(repository)} names {named}"


def test_the_map_names_modules_of_its_folders(repository: Path) -> None:
    """docs/architecture.md, a section for each folder: bare names of modules are those of the folder."""
    sections = re.split(r"^### ", (repository / "docs/architecture.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = 0
    for title, _, text in (section.partition("\n") for section in sections[1:]):
        for named in re.findall(r"`(\w+\.py)`", text):
            (folder,) = re.findall(r"`((?:compiler|runtime)/\w+/)`", title)
            assert (repository / folder / named).is_file(), f"{title}: {named}"
            found += 1
    assert found > 30
