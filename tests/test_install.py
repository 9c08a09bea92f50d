"""The distribution: which names a wheel installs, and what importing the runtime loads."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

FOLDERS = ("compiler", "runtime", "grammars", "tools_specs")


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources, so that nothing stale or left over gets in."""
    pytest.importorskip("setuptools", reason="the wheel is built without isolation")
    place = tmp_path_factory.mktemp("wheel")
    for folder in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "*.nbc", "*.nbi")
        shutil.copytree(repository / folder, place / "source" / folder, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(repository / name, place / "source" / name)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    command += ["--no-index", "--disable-pip-version-check", "-w", str(place), str(place / "source")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place)
    assert done.returncode == 0, done.stderr
    (path,) = place.glob("*.whl")
    return path


def test_wheel_holds_every_source_and_data_file(repository: Path, wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = set()
    for folder in FOLDERS:
        for path in (repository / folder).rglob("*"):
            data = path.suffix == ".lark" or path.name == "py.typed" or path.parent.name in ("data", "tools_specs")
            if path.is_file() and "__pycache__" not in path.parts and (path.suffix == ".py" or data):
                wanted.add(f"toolc/{path.relative_to(repository).as_posix()}")
    assert wanted <= names, "a new folder must be named in pyproject.toml, twice"
    assert {"toolc/compiler/vocab/data/builtin.json", "toolc/runtime/py.typed"} <= names


def test_wheel_holds_nothing_else(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"toolc"}
    assert "toolc/__init__.py" not in archive.namelist()
    assert not any("tests" in name.split("/") or name.endswith((".pyc", ".nbi", ".nbc")) for name in archive.namelist())
    (entry,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    assert "toolc = toolc.compiler.cli:main" in archive.read(entry).decode()
    assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())


@pytest.mark.parametrize(
    ("folder", "never"), [("compiler", {"torch"}), ("runtime", {"lark", "tokenizers", "toolc.compiler"})]
)
def test_no_file_imports_what_its_folder_does_without(repository: Path, folder: str, never: set[str]) -> None:
    """Inside functions, too: what needs torch is in the runtime."""
    found = imports(repository, folder)
    wrong = [(where, name) for where, name in found for other in never if f"{name}.".startswith(f"{other}.")]
    assert found and not wrong


# What comes with a package that is asked for, and what the user has to have for a thing that is about nothing else.
COMES_WITH = {"llvmlite": "numba", "starlette": "fastapi", "triton": "torch"}
USERS = {
    "jsonschema",
    "llama_cpp",
    "llguidance",
    "prometheus_client",
    "pytest",
    "sglang",
    "transformers",
    "vllm",
    "xgrammar",
}


@pytest.mark.parametrize("folder", ["compiler", "runtime"])
def test_what_is_imported_is_asked_for(repository: Path, folder: str) -> None:
    text = (repository / "pyproject.toml").read_text()
    asked = set(re.findall(r'^    "([\w-]+)[^"]*",', text.partition("\ndev = [")[0], re.MULTILINE))
    packages = {name.partition(".")[0] for _, name in imports(repository, folder)} - sys.stdlib_module_names - {"toolc"}
    assert "numpy" in packages & asked
    names = {COMES_WITH.get(name, {"yaml": "pyyaml"}.get(name, name)) for name in packages - USERS}
    assert names <= asked, "a line of pyproject.toml is missing"


def imports(repository: Path, folder: str) -> list[tuple[str, str]]:
    """Where and what the files of a folder import by its full name."""
    found = []
    for path in sorted((repository / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(f"{path.relative_to(repository)}:{node.lineno}", name) for name in names]
    return found


def run(code: str, *path: Path, cwd: Path) -> str:
    """Run code in a fresh interpreter, away from the source tree."""
    lines = ["import sys", *(f"sys.path.insert(0, {str(entry)!r})" for entry in path), code]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_wheel_works_where_it_is_unpacked(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = (
        "sys.meta_path[:] = [finder for finder in sys.meta_path if 'ditable' not in repr(finder)]\n"
        "import toolc.compiler.vocab as vocab, toolc.grammars\n"
        "print(vocab.__file__); print(vocab.load_tokens('builtin').size)"
    )
    where, size = run(code, tmp_path / "site", cwd=tmp_path).splitlines()
    assert Path(where).is_relative_to(tmp_path / "site") and size == "8192"


def test_runtime_import_is_light(tmp_path: Path) -> None:
    heavy = ("lark", "tokenizers", "torch", "numba", "llvmlite", "click", "rich", "huggingface_hub", "toolc.compiler")
    code = (
        "import toolc.runtime, toolc.runtime.adapters\n"
        f"print(*sorted(name for name in {heavy!r} if name in sys.modules))"
    )
    assert run(code, cwd=tmp_path) == ""


def test_folders_are_not_packages_of_their_own(tmp_path: Path) -> None:
    code = f"from importlib.util import find_spec\nprint(*(find_spec(name) for name in {FOLDERS!r}))"
    assert run(code, cwd=tmp_path) == " ".join(["None"] * len(FOLDERS))


def test_the_compiler_without_a_place_to_keep_kernels(tmp_path: Path) -> None:
    """A read-only install without a home: it says so once, and is there."""
    code = (
        "import warnings; warnings.simplefilter('always')\n"
        "import numba.core.caching as caching; caching.CacheImpl._locator_classes = []\n"
        "import toolc.compiler.link.link\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("cannot keep compiled kernels") == 1


def test_a_device_masks_without_the_packages_of_the_compiler(tmp_path: Path) -> None:
    """What docs/versions.md says of an image that only decodes: numpy, msgpack, numba and torch are enough."""
    pytest.importorskip("torch")
    from toolc.compiler import compile_grammar

    compile_grammar('start: "yes" | "no"\n', "builtin").bundle.write(tmp_path / "a.toolc", standalone=True)
    code = (
        "for name in ('lark', 'tokenizers', 'click', 'rich', 'huggingface_hub', 'isal', 'yaml'):\n"
        "    sys.modules[name] = None\n"
        "import torch\n"
        "from toolc.runtime import Bundle, Decoder, read_calls\n"
        "bundle = Bundle.open('a.toolc')\n"
        "decoder = Decoder(bundle, batch_size=1)\n"
        "text = b''\n"
        "while not decoder.finished.all():\n"
        "    logits = torch.zeros(1, bundle.vocab.size)\n"
        "    decoder.mask_(logits)\n"
        "    token = logits.argmax(-1)\n"
        "    decoder.advance_(token)\n"
        "    text += bundle.vocab.token(int(token[0]))\n"
        "print(text.decode())"
    )
    assert run(code, cwd=tmp_path) in ("yes", "no")
