"""docs/migration.md: both halves of every task run, a peer's where it is installed; the table counts their lines."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from ..small_model import make_model

PAGE = Path(__file__).parents[2] / "docs" / "migration.md"
BEGIN, END = "<!-- lines: python -m tests.golden -->\n", "<!-- end of lines -->\n"
TASK = re.compile(r"^## (\d+)\. ([^\n]*)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
HALF = re.compile(r"^```python title=\"(\w+)\"\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
PACKAGES = {"XGrammar": "xgrammar", "Outlines": "outlines", "llguidance": "llguidance"}
GIVES = {  # name of a task → what its half of toolc has made
    "1": "person.age >= 0 and len(person.name) <= 8",
    "2": "messages[1]['role'] == 'assistant' and len(messages) >= 3",
    "3": "[tool['name'] for tool in bundle.tools] == ['now']",
    "4": "[tool['name'] for tool in made.bundle.tools] == ['fine'] and left_out[0]['tool'] == 'broken'",
    "5": "reader.calls[0].name == 'current_weather'",
    "6": "masks.shape[0] == 64 and masks.any(1).all()",
    "7": "bundle.meta['protocol'] == 'hermes' and len(bundle.tools) == 64",
    "8": "len(bundle.tools) == 65",
    "9": "[tool['name'] for tool in bundle.tools] == ['tool_0']",
    "10": "sums.advance_bytes(b'1+2') == 3 and plate.advance_bytes(b'ZH-7') == 4",
}


def tasks() -> dict[str, tuple[str, dict[str, str]]]:
    """Number of a task → its title, and the code by who is used."""
    page = PAGE.read_text(encoding="utf-8")
    return {match[1]: (match[2], dict(HALF.findall(match[3]))) for match in TASK.finditer(page)}


def lines(code: str) -> int:
    """Lines without imports, blank lines and comments."""
    return sum(bool(line.strip()) and not re.match(r"\s*(#|import |from )", line) for line in code.splitlines())


def table() -> str:
    """The table of the page."""
    out = ["| task | toolc | best peer |", "|---|---|---|"]
    for number, (title, halves) in tasks().items():
        peers = [f"{lines(code)}, {name}" for name, code in halves.items() if name != "toolc"]
        out.append(f"| {number}. {title} | {lines(halves['toolc'])} | {peers[0] if peers else '–'} |")
    return "\n".join(out) + "\n"


def rebuild() -> Path:
    """Write the table anew."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.split(END)[1], encoding="utf-8")
    return PAGE


def test_no_task_takes_more_lines_than_with_the_best_peer() -> None:
    found = tasks()
    assert list(found) == list(GIVES)
    for title, halves in found.values():
        assert all(lines(halves["toolc"]) <= lines(code) for code in halves.values()), title
    assert PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0] == table(), "run `make golden`"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("torch", "transformers", "pydantic"):
        pytest.importorskip(package)
    return make_model(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture
def names(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What every example begins with, with a tiny random model, in a folder with a pair of keys."""
    import transformers

    monkeypatch.chdir(tmp_path)
    for kind in (transformers.AutoModelForCausalLM, transformers.AutoTokenizer):
        load = kind.from_pretrained
        monkeypatch.setattr(kind, "from_pretrained", lambda name, load=load: load(model))
    found: dict[str, Any] = {"__name__": "page"}
    (first,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    exec(compile(first, "migration.md", "exec", dont_inherit=True), found)  # a test of our own file
    return found


def keys() -> None:
    """builder.pem and builder.pub in the current folder."""
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    Path("builder.pem").write_bytes(key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption()))
    public = key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
    Path("builder.pub").write_bytes(public)


@pytest.mark.parametrize("number", GIVES)
def test_our_half(number: str, names: dict[str, Any]) -> None:
    if number == "9":
        keys()
    exec(compile(tasks()[number][1]["toolc"], f"task {number}", "exec", dont_inherit=True), names)
    assert eval(GIVES[number], names)


@pytest.mark.parametrize("number", [number for number, (_, halves) in tasks().items() if len(halves) > 1])
def test_the_half_of_a_peer(number: str, names: dict[str, Any]) -> None:
    ((name, code),) = [half for half in tasks()[number][1].items() if half[0] != "toolc"]
    try:
        importlib.import_module(PACKAGES[name])
    except ImportError as error:
        pytest.skip(f"{name} is not installed: {error}")
    if number == "9":
        keys()
    try:
        exec(compile(code, f"task {number}", "exec", dont_inherit=True), names)
    except ValueError as error:
        if (number, type(error).__name__) != ("1", "ValidationError"):  # what the page says of it
            raise
