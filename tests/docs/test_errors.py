"""docs/errors.md: a section for every code, whose example raises it. ``python -m tests.golden`` writes the output."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import toolc.compiler
import toolc.runtime
from toolc.compiler.cli import cli
from toolc.compiler.commands.terminal import exit_code
from toolc.runtime.errors import CODES, ToolcError

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
BEGIN, END = "<!-- codes: python -m tests.golden -->\n", "<!-- end of codes -->\n"
SECTION = re.compile(r"^## (TC\d+): (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
KEY = re.compile(r"store/[0-9a-f]{32}")  # it covers the compiler's own files
EXAMPLE = re.compile(r"^```(python|console)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
FILES = {
    "misspelt.json": {"type": "object", "properties": {"day": {"type": "string", "maxLenght": 8}}},
}
"""What the examples on the command line read."""


def classes() -> dict[str, type[ToolcError]]:
    """Every class of errors, by name; modules whose packages are not installed have none."""
    for package in (toolc.compiler, toolc.runtime):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".adapters." not in module.name:
                try:
                    importlib.import_module(module.name)
                except ImportError as error:
                    assert (error.name or "").partition(".")[0] != "toolc", error

    def below(kind: type[ToolcError]) -> Iterator[type[ToolcError]]:
        for one in kind.__subclasses__():
            if one.__module__.startswith("toolc."):
                yield one
                yield from below(one)

    return {kind.__name__: kind for kind in below(ToolcError)}


def table() -> str:
    """The table of the page."""
    known = classes()
    lines = ["| code | class | exit code | meaning |", "|---|---|---|---|"]
    for name, code in CODES.items():
        kind = known[name]
        anchor = f"{code}-{name}".lower()
        meaning = re.sub(r"``(.*?)``", r"`\1`", " ".join((kind.__doc__ or "").partition("\n\n")[0].split()))
        lines.append(f"| [{code}](#{anchor}) | `{name}` | {exit_code(kind.__new__(kind))} | {meaning} |")
    return "\n".join(lines) + "\n"


def sections() -> dict[str, str]:
    """Name of a class → its section."""
    return {match[2]: match[3] for match in SECTION.finditer(PAGE.read_text(encoding="utf-8"))}


def printed(kind: str, text: str) -> tuple[str, str]:
    """Run an example in the current folder: the code that it raises, and what a person reads."""
    if kind == "console":
        for name, value in FILES.items():
            Path(name).write_text(json.dumps(value), encoding="utf-8")
        done = CliRunner().invoke(cli, [*text.strip().removeprefix("$ toolc ").split(), "--json"])
        told = json.loads(done.stdout)
        return told["code"], done.stderr
    ray = sys.modules.get("ray")
    try:
        with pytest.raises(ToolcError) as caught:
            exec(compile(text, "page", "exec"), {"__name__": "page"})  # a test of our own file
    finally:  # an example takes it away
        if ray is None:
            sys.modules.pop("ray", None)
        else:
            sys.modules["ray"] = ray
    return caught.value.code, caught.value.titled + "\n"


def rebuild() -> Path:
    """Write the table and what the examples print anew."""
    from .pages import in_a_folder

    def example(found: re.Match[str]) -> str:
        with in_a_folder():
            _, text = printed(found[1], found[2])
        return f"```{found[1]}\n{found[2]}```\n\n```text\n{text}```\n"

    page = EXAMPLE.sub(example, PAGE.read_text(encoding="utf-8"))
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1], encoding="utf-8")
    return PAGE


def test_the_page_has_the_codes_of_the_registry() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0] == table(), "run `make golden`"
    assert [(match[2], match[1]) for match in SECTION.finditer(page)] == list(CODES.items())


def test_codes_are_told_apart() -> None:
    assert len(set(CODES.values())) == len(CODES)
    assert all(re.fullmatch(r"TC[1-9]\d\d", code) for code in CODES.values())
    known = classes()
    assert {known[name].code: name for name in CODES} == {code: name for name, code in CODES.items()}
    assert all(kind.code for kind in known.values()), "a class without a code, and whose parent has none"


def test_the_root_is_never_raised(repository: Path) -> None:
    """It has no code."""
    for folder in ("compiler", "runtime"):
        for path in (repository / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_bytes())):
                raised = node.exc if isinstance(node, ast.Raise) else None
                name = raised.func if isinstance(raised, ast.Call) else raised
                assert not (isinstance(name, ast.Name) and name.id == "ToolcError"), f"{path}:{node.lineno}"


@pytest.mark.parametrize("name", CODES)
def test_an_example_raises_its_code(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "SignatureError":
        pytest.importorskip("cryptography")
    monkeypatch.chdir(tmp_path)
    (found,) = EXAMPLE.finditer(sections()[name])
    code, text = printed(found[1], found[2])
    assert code == CODES[name]
    assert KEY.sub("store/", text) == KEY.sub("store/", found[3]), "python -m tests.golden writes it anew"
    assert "\nMend: " in sections()[name]


def test_what_a_person_and_a_machine_get() -> None:
    from toolc.compiler.errors import SpecError

    error = SpecError("no list", place="x.json#/tools", found="3")
    assert error.titled == "SpecError [TC201] at x.json#/tools\n  no list; found 3"
    assert error.as_dict()["code"] == error.code == "TC201" and "TC201" not in str(error)
