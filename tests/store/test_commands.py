"""push, pull, list, prune, key, and compile --store, from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("cryptography", reason="signatures need the package cryptography")

from toolc.compiler import compile_schema
from toolc.compiler import key as compiler_key
from toolc.compiler.cli import cli
from toolc.runtime import load, open_store
from toolc.runtime.store.folder import Folder

from .handmade import new_signer

TINY = {
    "a.json": {"enum": ["x", "y"]},
    "deep/b.json": {"type": "boolean"},
    "deep/c.yaml": {"type": "integer", "minimum": 1, "maximum": 9},
    "unsatisfiable.json": {"type": "string", "enum": [1]},
    "broken.json": None,
}


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of small specs, two of which are to be refused."""
    folder = tmp_path / "specs"
    for name, schema in TINY.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{" if schema is None else json.dumps(schema))
    (folder / "g.lark").write_text('start: "yes" | "no"\n')
    (folder / "notes.txt").write_text("not a spec")
    monkeypatch.chdir(tmp_path)
    return folder


def toolc(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments])


def printed(result: Result) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(result.stdout)
    return value


def test_a_folder_is_compiled_resumed_and_reported(specs: Path, tmp_path: Path) -> None:
    done = toolc("compile", specs, "--store", "s", "--jobs", "1", "--report", "out.json", "--json")
    assert done.exit_code == 3, done.output
    report = json.loads(Path("out.json").read_text())
    assert [report[word] for word in ("compiled", "reused", "refused", "failed")] == [4, 0, 2, 0]
    rows = {Path(row["spec"]).name: row for row in report["rows"]}
    assert rows["unsatisfiable.json"]["error"]["error"] == "UnsatisfiableError"
    assert (
        rows["broken.json"]["error"]["error"] == "SpecError" and "broken.json" in rows["broken.json"]["error"]["place"]
    )
    assert printed(done) == {key: value for key, value in report.items() if key != "rows"}
    for name in ("a.json", "c.yaml", "g.lark"):
        spec = next(specs.rglob(name))
        assert toolc("key", spec).stdout.strip() == rows[name]["key"]
        assert load("s", rows[name]["key"]).meta["spec"]["name"] in (name, "g.lark")
    (specs / "broken.json").unlink()
    (specs / "unsatisfiable.json").unlink()
    damaged = tmp_path / "s" / f"{rows['a.json']['key']}.toolc"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    done = toolc("compile", specs, "--store", "s", "--jobs", "2")
    assert done.exit_code == 0 and "1 compiled, 3 reused" in done.output, done.output
    assert toolc("compile", specs / "a.json", "--whitespace", "compact", "--store", "s", "--jobs", "1").exit_code == 0
    assert len(open_store("s").list()) == 5


def test_no_bundle_of_an_earlier_revision_is_reused(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled() -> tuple[str, str]:
        done = toolc("compile", specs / "a.json", "--store", "s", "--jobs", "1", "--report", "out.json")
        assert done.exit_code == 0, done.output
        (row,) = json.loads(Path("out.json").read_text())["rows"]
        return row["status"], row["key"]

    _, before = compiled()
    assert compiled() == ("reused", before)
    monkeypatch.setattr(compiler_key, "REVISION", compiler_key.REVISION + 1)
    status, after = compiled()
    assert status == "compiled" and after != before


def test_push_pull_list_prune(specs: Path, tmp_path: Path) -> None:
    signer, public = new_signer(tmp_path, "ours")
    _, stranger = new_signer(tmp_path, "theirs")
    assert toolc("compile", specs / "a.json", "-o", "a.toolc").exit_code == 0
    pushed = printed(toolc("push", "s", "a.toolc", "--sign", "ours.pem", "--json"))
    key = toolc("key", specs / "a.json").stdout.strip()
    assert pushed["pushed"] == [{"bundle": "a.toolc", "key": key, "new": True, "replaced": False}]
    assert pushed["signed_by"] == signer.public
    assert "was there" in toolc("push", "s", "a.toolc").stdout
    (row,) = printed(toolc("list", "s", "--json"))["bundles"]
    assert (row["key"], row["spec"], row["signers"]) == (key, "a.json", [signer.public])
    assert key in toolc("list", "s").stdout
    refused = toolc("pull", "s", key, "--allow", stranger)
    assert refused.exit_code == 5 and "no allowed key" in refused.output
    assert toolc("pull", "s", key, "-o", "got", "--allow", public).exit_code == 0
    assert toolc("check", f"got/{key}.toolc", '"x"').exit_code == 0
    assert toolc("pull", "s", "0" * 32).exit_code == 5
    assert toolc("prune", "s", "--max-bytes", "0").exit_code == 0
    assert toolc("pull", "s", key).exit_code == 5


def test_a_list_says_what_is_not_known(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a web server: neither sizes nor dates."""
    assert toolc("compile", specs / "a.json", "--store", "s", "--jobs", "1").exit_code == 0
    shown = toolc("list", "s").stdout
    assert "used (UTC)" in shown and "1 bundle, " in shown and "?" not in shown
    items = Folder.items
    monkeypatch.setattr(Folder, "items", lambda self: [one._replace(size=None, used=None) for one in items(self)])
    shown = toolc("list", "s").stdout
    assert "1 bundle, ? without vocabs" in shown and shown.count("?") == 3
    (row,) = printed(toolc("list", "s", "--json"))["bundles"]
    assert row["used"] is row["bytes"] is None


def test_wrong_usage(specs: Path) -> None:
    for arguments in (
        ("compile", specs),
        ("compile", specs / "a.json", specs / "g.lark"),
        ("compile", specs / "a.json", "--jobs", "0"),
        ("compile", specs / "a.json", "--store", "s", "-o", "x"),
        ("compile", "-", "--store", "s"),
        ("compile", specs, "--store", "s", "--ray", "auto", "--sign", "x.pem"),
        ("push", "s"),
    ):
        assert toolc(*arguments).exit_code == 2, arguments
    empty = specs / "empty"
    empty.mkdir()
    assert toolc("compile", empty, "--store", "s").exit_code == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_half_written_and_the_next_run_goes_on(
    number: signal.Signals, specs: Path, tmp_path: Path
) -> None:
    compile_schema({"const": 0})  # kernels are compiled and kept before the clock runs
    for value in range(4000):  # more than any machine compiles before it is told to stop
        (specs / f"n{value}.json").write_text(json.dumps({"const": value}))
    command = [sys.executable, "-m", "toolc.compiler.cli", "compile", str(specs), "--store", "s", "--jobs", "2"]
    process = subprocess.Popen(
        [*command, "--report", "out.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background may ignore it
    )  # fmt: skip
    store = open_store("s")
    deadline = time.monotonic() + 240
    while len(list(Path("s").rglob("*.toolc"))) < 3 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    output = process.communicate(timeout=60)
    assert process.returncode == 128 + number and b"resource_tracker" not in output[1], output
    report = json.loads(Path("out.json").read_text())
    assert report["interrupted"] and not report["ok"] and 0 < report["compiled"] < 4000
    assert not [name for name in os.listdir("s") if name.endswith(".tmp")]
    held = {row.key for row in store.list()}
    for key in held:
        store.get(key)
    assert held >= {row["key"] for row in report["rows"] if row["status"] == "compiled"}
