"""A folder compiled into a store: which files are specs, what refusals say, a report that cannot be written."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from toolc.compiler.cli import cli
from toolc.runtime.container import TEMPORARY


@pytest.fixture(autouse=True)
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "specs"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
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
        "message": "the link leads to no file",
        "place": str(Path("specs/dangle.json")),
        "found": "nowhere.json",
        "expected": None,
        "hint": None,
    }
