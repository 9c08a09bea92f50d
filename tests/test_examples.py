"""Every file of examples/ runs: with a tiny random model, or where its engine is not installed, it compiles."""

from __future__ import annotations

import ast
import importlib.util
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from .small_model import make_model

OF_MODELS = ("transformers_generate.py", "structured_output.py", "agent.py")
OF_ENGINES = {"llama_cpp_chat.py": "llama_cpp", "vllm_offline.py": "vllm"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    return make_model(tmp_path_factory.mktemp("models") / "small")


def run(path: Path, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    runpy.run_path(str(path), run_name="__main__")


def test_every_example_is_listed_and_tested(repository: Path) -> None:
    folder = repository / "examples"
    there = {path.name for path in folder.iterdir() if path.suffix in (".py", ".ipynb")}
    assert there == {*OF_MODELS, *OF_ENGINES, "own_protocol.py", "notebook.ipynb"}
    listed = (folder / "README.md").read_text(encoding="utf-8")
    assert all(f"({name})" in listed for name in there)


@pytest.mark.parametrize("name", OF_MODELS)
def test_examples_with_a_model(
    name: str, model: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(repository / "examples" / name, str(model), monkeypatch=monkeypatch)
    shown = capsys.readouterr().out
    words = {"transformers_generate.py": "gives ", "structured_output.py": "Trip(to=", "agent.py": "← "}
    assert words[name] in shown, shown


def test_own_protocol(repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run(repository / "examples" / "own_protocol.py", monkeypatch=monkeypatch)
    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == [
        "add of {'a': 1, 'b': 2} is 3",
        "add of {'a': 3, 'b': 4} is 7",
        '-> add({"a": 5, "b": 6})',
    ]
    assert "at /a" in shown[3]


@pytest.mark.parametrize("name", OF_ENGINES)
def test_examples_of_engines_name_what_exists(name: str, repository: Path) -> None:
    """Engines are run by tests/engines; here the names that an example takes from toolc are looked up."""
    tree = ast.parse((repository / "examples" / name).read_text(encoding="utf-8"))
    imported = [one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom) and one.module]
    for one in imported:
        if one.module is not None and one.module.startswith("toolc") and "adapters" not in one.module:
            module = importlib.import_module(one.module)
            assert all(hasattr(module, alias.name) for alias in one.names)
        elif one.module is not None and one.module.startswith("toolc"):
            assert importlib.util.find_spec(one.module) is not None


def test_notebook(repository: Path) -> None:
    notebook = json.loads((repository / "examples" / "notebook.ipynb").read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "notebook"}
    values = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "notebook", "exec"), names)
            if isinstance(last, ast.Expr):
                values.append(eval(compile(ast.Expression(last.value), "notebook", "eval"), names))
    assert values[1] and set(values[1]) <= set("123456789") | {f"{n}-" for n in range(1, 10)}
    assert values[-1] == ["Krone, 2 nights from 28 February 2027"]
