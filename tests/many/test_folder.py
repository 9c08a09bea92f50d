"""A folder compiled into a store: which files are specs, what refusals say, a report that cannot be written."""

from __future__ import annotations

import errno
import json
import os
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from toolc.compiler.cli import cli
from toolc.runtime.format.container import TEMPORARY


@pytest.fixture(autouse=True)
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "specs"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("toolc.compiler.commands.terminal.PATIENCE", 60.0)  # no progress, however busy the machine is
    return folder


def _toolc(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(cli, ["compile", *arguments])


def _into_store(*more: str) -> Result:
    return _toolc("specs", "--store", "s", "--jobs", "1", *more)


@pytest.mark.parametrize(
    "text",
    ['{"type": "object", "properties": {"a": {"type": "strin"}}}', '{"type": "string",\n "enum": [1,]}', "[[["],
    ids=["hint", "excerpt", "early end"],
)
def test_a_refusal_says_what_the_compile_of_one_spec_says(specs: Path, text: str) -> None:
    (specs / "bad.json").write_text(text)
    alone, many = _toolc("specs/bad.json", "-o", "x.toolc"), _into_store()
    assert alone.exit_code == many.exit_code == 3
    assert "refused specs/bad.json\n" + textwrap.indent(alone.stderr, "  ") in many.stdout


def test_a_report_that_cannot_be_written_is_refused_before_the_work(specs: Path, tmp_path: Path) -> None:
    (specs / "a.json").write_text('{"const": 1}')
    (tmp_path / "plain").touch()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    for report in ("specs", "missing/out.json", "plain/out.json", "pipe", "", "/proc/out.json", "specs/a.json"):
        done = _into_store("--report", report)
        assert done.exit_code == 2 and f"the output {report} " in done.stderr, done.output
        assert sorted(tmp_path.rglob("*")) == before
    assert (specs / "a.json").read_text() == '{"const": 1}'
    assert _into_store("--report", "out.json").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "pipe", "plain", "s", "specs"]


def test_what_a_killed_run_left_is_swept(specs: Path, tmp_path: Path) -> None:
    (specs / "a.json").write_text('{"const": 1}')
    left = tmp_path / "s" / f".{'0' * 32}.toolc.0123456789ab{TEMPORARY}"
    left.parent.mkdir()
    left.touch()
    assert _into_store().exit_code == 0 and not left.exists()


def test_no_spec_is_left_out_in_silence(specs: Path) -> None:
    (specs / "UPPER.JSON").write_text('{"const": 1}')
    (specs / "Mixed.Yaml").write_text("type: boolean\n")
    (specs / "NOTES.TXT").touch()
    (specs / "folder.json").mkdir()
    (specs / "linked.json").symlink_to("UPPER.JSON")
    (specs / "dangle.json").symlink_to("nowhere.json")
    (specs / "loop.lark").symlink_to("loop.lark")
    done = _into_store("--json")
    rows = {Path(row["spec"]).name: row for row in json.loads(done.stdout)["rows"]}
    assert done.exit_code == 3 and {name: row["status"] for name, row in rows.items()} == {
        "UPPER.JSON": "compiled",
        "Mixed.Yaml": "compiled",
        "linked.json": "reused",
        "dangle.json": "refused",
        "loop.lark": "refused",
    }
    assert rows["dangle.json"]["error"] == {
        "error": "SpecError",
        "code": "TC201",
        "message": "the link leads to no file",
        "place": str(Path("specs/dangle.json")),
        "found": "nowhere.json",
        "expected": None,
        "hint": None,
    }


def test_links_to_folders_are_followed_and_loops_end(specs: Path, tmp_path: Path) -> None:
    """What is there twice is compiled under the name without a link."""
    for name in ("a", "b/c"):
        (specs / name).mkdir(parents=True)
        (specs / name / "x.json").write_text('{"const": 1}')
    (tmp_path / "far/deep").mkdir(parents=True)
    (tmp_path / "far/deep/y.json").write_text('{"const": 2}')
    for name, target in {"b/up": "..", "aa": "b", "to far": "../far", "far/back": "../specs"}.items():
        (specs / name if name != "far/back" else tmp_path / name).symlink_to(target)
    done = _into_store("--report", "out.json")
    assert done.exit_code == 0, done.output
    found = [row["spec"] for row in json.loads(Path("out.json").read_text())["rows"]]
    assert found == ["specs/a/x.json", "specs/b/c/x.json", "specs/to far/deep/y.json"]


@pytest.mark.parametrize("whole", [False, True])
def test_a_folder_that_cannot_be_read_is_refused(whole: bool, specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (specs / "a.json").write_text('{"const": 1}')
    (specs / "shut").mkdir()
    (specs / "shut/b.json").write_text('{"const": 2}')
    shut = "specs" if whole else "specs/shut"

    def closed(look: Callable[..., Any]) -> Callable[..., Any]:
        """As for a user without rights; the tests may be root's."""

        def looked(path: object = ".") -> object:
            if os.fspath(path) == shut:  # type: ignore[call-overload]
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return look(path)

        return looked

    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, closed(getattr(os, name)))
    done = _into_store("--report", "out.json")
    rows = json.loads(Path("out.json").read_text())["rows"]
    assert done.exit_code == 3 and [row["status"] for row in rows] == ["compiled", "refused"][whole:]
    assert rows[-1]["spec"] == rows[-1]["error"]["place"] == shut and rows[-1]["error"]["found"] == "Permission denied"


def test_names_that_are_no_utf8_are_in_the_report(specs: Path) -> None:
    """As their bytes can be had back from: `os.fsencode` of what JSON's escapes say."""
    strange = os.fsdecode(b"bad\xff\xfe")
    for name, text in {
        ".json": "[[[",
        "é.json": '{"const": 1}',
        ".lark": 'start: "a"\n',
        "g.lark": "start: x\n",
    }.items():
        (specs / (strange + name)).write_text(text)
    done = _into_store("--report", "out.json")
    rows = {row["spec"]: row for row in json.loads(Path("out.json").read_text())["rows"]}
    assert done.exit_code == 3 and {name: row["status"] for name, row in rows.items()} == {
        f"specs/{strange}.json": "refused",
        f"specs/{strange}é.json": "compiled",
        f"specs/{strange}.lark": "compiled",
        f"specs/{strange}g.lark": "refused",
    }
    assert rows[f"specs/{strange}.json"]["error"]["place"].startswith(r"bad\udcff\udcfe.json")


def test_the_store_changes_no_answer(specs: Path) -> None:
    """Options that do not fit are refused before anything is looked up."""
    (specs / "a.json").write_text('{"const": 1}')
    (specs / "g.lark").write_text('start: "a"\n')
    (specs / "tools.json").write_text('[{"name": "f", "parameters": {"type": "object"}}]')
    Path("answer.json").write_text('{"const": 1}')
    assert _into_store().exit_code == 0
    for spec, *options in (
        ("a.json", "--response", "answer.json"),
        ("g.lark", "--protocol", "hermes"),
        ("g.lark", "--strict"),
        ("g.lark", "--no-strict"),
        ("g.lark", "--response", "answer.json"),
        ("tools.json", "--protocol", "nope"),
    ):
        path = f"specs/{spec}"
        alone = _toolc(path, *options, "-o", "x.toolc")
        assert alone.exit_code == 3 and re.search(r"has no tools|no such protocol", alone.stderr), alone.output
        for command in ("key", "grammar"):
            other = CliRunner().invoke(cli, [command, path, *options])
            assert (other.exit_code, other.stdout, other.stderr) == (3, "", alone.stderr)
        many = _toolc(path, *options, "--store", "s", "--jobs", "1")
        assert many.exit_code == 3 and textwrap.indent(alone.stderr, "  ") in many.stdout


def test_a_key_to_sign_with_is_read_once_before_the_work(specs: Path) -> None:
    (specs / "a.json").write_text('{"const": 1}')
    Path("no.pem").write_text("no key")
    for name, reason in (("missing", "No such file"), ("no.pem", "no private key")):
        done = _into_store("--sign", name)
        assert done.exit_code == 2 and f"--sign: {name}" in done.stderr and reason in done.stderr
    assert not Path("s").exists()
