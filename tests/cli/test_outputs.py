"""Where commands write: never over what is no file or what they read, and nothing half-written stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from toolc.compiler.cli import cli
from toolc.compiler.commands.terminal import BAD_INPUT, BUNDLE, INTERRUPTED, NO_READER, NOT_ACCEPTED, USAGE, guarded
from toolc.compiler.errors import SpecError
from toolc.runtime.format import container

FIGURES = ("--main-s", "2", "--guess-s", "0.5", "--tool-s", "1", "--hit-rate", "0.6", "--turns", "3")
SCHEMA = '{"type": "string", "maxLength": 3}'


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "spec.json"
    path.write_text(SCHEMA)
    return path


def toolc(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, list(arguments))
    return done.exit_code, done.output


def test_a_file_that_is_read_is_not_written(spec: Path) -> None:
    assert toolc("compile", "spec.json", "-o", "held.toolc")[0] == 0
    os.link("spec.json", "same.json")
    for arguments in (
        ("compile", "spec.json", "-o", "./spec.json"),
        ("compile", "spec.json", "-o", "same.json"),
        ("compile", "spec.json", "--response", "held.toolc", "-o", "held.toolc"),
        ("inspect", "held.toolc", "--html", "held.toolc"),
    ):
        before = {path: path.read_bytes() for path in spec.parent.iterdir()}
        code, said = toolc(*arguments)
        assert code == USAGE and "is the file that is read" in said
        assert {path: path.read_bytes() for path in spec.parent.iterdir()} == before


def test_what_is_no_file_stays(spec: Path) -> None:
    os.mkfifo("pipe")
    os.symlink("pipe", "link")
    for name in ("pipe", "link"):
        for arguments in (("compile", "spec.json", "-o", name), ("speculate", *FIGURES, "--plot", name)):
            code, said = toolc(*arguments)
            assert code == USAGE and "no file but a device or a pipe" in said, arguments
    assert Path("pipe").is_fifo() and Path("link").is_symlink()


def test_a_library_call_replaces_no_device(tmp_path: Path) -> None:
    from toolc.compiler import compile_schema
    from toolc.runtime import BundleError

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BundleError, match="a device or a pipe"):
        compile_schema({"const": 1}).write(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo() and len(list(tmp_path.iterdir())) == 1


def test_a_link_is_followed(spec: Path) -> None:
    os.symlink("v1.toolc", "latest.toolc")
    assert toolc("compile", "spec.json", "-o", "latest.toolc")[0] == 0
    assert Path("latest.toolc").is_symlink() and Path("v1.toolc").is_file()


def test_places_where_no_file_can_be(spec: Path) -> None:
    for name, words in ((".", "is a folder"), ("no/where.toolc", "does not exist"), ("a" * 300, "cannot be a file")):
        code, said = toolc("compile", "spec.json", "-o", name)
        assert code == USAGE and words in said
    assert toolc("speculate", *FIGURES, "--plot", "no/where.svg")[0] == USAGE


def test_a_command_that_is_ended_takes_away_what_it_began(tmp_path: Path) -> None:
    """SIGTERM, while the file lies beside its place."""
    code = (
        "import os, time, pathlib\n"
        "from toolc.compiler.commands.signals import end_on_signals\n"
        "from toolc.runtime.format.container import replace_file\n"
        "end_on_signals()\n"
        "def parts():\n"
        "    yield b'half'\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(60)\n"
        "replace_file(pathlib.Path('out.toolc'), parts())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("cause", "code"), [(KeyboardInterrupt(), INTERRUPTED), (SystemExit(143), 143)])
def test_a_signal_inside_of_a_kernel_is_no_bug(cause: BaseException, code: int) -> None:
    """A kernel cannot raise: Python says then that it returned a result with an exception set."""

    @guarded
    def command() -> None:
        raise SystemError("returned a result with an exception set") from cause

    with pytest.raises(SystemExit) as raised:
        command()
    assert raised.value.code == code


def test_a_real_signal_inside_of_a_kernel(tmp_path: Path) -> None:
    code = (
        "import numba, signal\n"
        "from toolc.compiler.commands.terminal import guarded\n"
        "@numba.njit\n"
        "def spin(n):\n"
        "    x = 0\n"
        "    for i in range(n):\n"
        "        x = (x * 31 + i) % 1000003\n"
        "    return x\n"
        "spin(1)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which a shell's background has not
        "@guarded\n"
        "def command():\n"
        "    print('begun', flush=True)\n"
        "    for _ in range(40): spin(300_000_000)\n"
        "command()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED and said == "interrupted\n"


def test_a_full_disk_is_no_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for work in (full, lambda: container.replace_file(tmp_path / "a", [b"x"])):
        with pytest.raises(SystemExit) as raised:
            guarded(work)()
        assert raised.value.code == BAD_INPUT
    assert not list(tmp_path.iterdir())


_LOST = (
    "import ctypes, signal, sys, time\n"
    "from toolc.compiler.commands.signals import end_on_signals\n"
    "from toolc.compiler.commands.terminal import guarded\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which a shell's background has not
    "end_on_signals()\n"
    "class Odd:\n"
    "    def __set_name__(self, owner, name): wait()\n"
    "def wait():\n"
    "    print('begun', flush=True)\n"
    "    time.sleep(0.5)\n"
    "def _raw_object_cache_notify():\n"
    "    wait()\n"
    "def other():\n"
    "    wait()\n"
    "@guarded\n"
    "def command():\n"
    "    if sys.argv[1] == 'import': type('Owner', (), {'odd': Odd()})\n"
    "    else: ctypes.CFUNCTYPE(None)(globals()[sys.argv[1]])()\n"
    "    time.sleep(60)\n"
    "command()\n"
)


@pytest.mark.parametrize("where", ["import", "_raw_object_cache_notify", "other"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_not_lost(where: str, number: signal.Signals) -> None:
    """In a function that C calls, whose errors are dropped; and in one whose errors Python turns into others."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _LOST, where], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    if where != "other":
        assert said == ("interrupted\n" if number == signal.SIGINT else "")


@pytest.mark.parametrize("error", [RuntimeError("another"), SpecError("another")])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_error_that_stands_for_a_signal(error: Exception, number: signal.Signals, tmp_path: Path) -> None:
    """C code may put its own in the place of what a signal raised, as numpy does while it is imported."""
    code = (
        "import contextlib, os, signal, time\n"
        "from toolc.compiler.commands.signals import end_on_signals\n"
        "from toolc.compiler.commands.terminal import guarded\n"
        f"from {type(error).__module__} import {type(error).__name__}\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which a shell's background has not
        "end_on_signals()\n"
        "@guarded\n"
        "def command():\n"
        "    with contextlib.suppress(KeyboardInterrupt, SystemExit):\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "        time.sleep(60)\n"
        f"    raise {type(error).__name__}('another')\n"
        "command()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 128 + number
    assert done.stderr == ("interrupted\n" if number == signal.SIGINT else "")


def test_a_ctrl_c_between_commands() -> None:
    """While click reads the arguments, which calls it an error."""
    code = (
        "import os, signal, time\n"
        "import toolc.compiler.cli as module\n"
        "def parse(*_):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(60)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which a shell's background has not
        "module.cli.parse_args = parse\n"
        "module.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == INTERRUPTED and "Traceback" not in done.stderr


def test_a_stderr_that_is_full_changes_no_exit_code(spec: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    command = [sys.executable, "-m", "toolc.compiler.cli"]
    read, write = os.pipe()
    os.close(read)
    with open("/dev/full", "w") as full:
        for stderr in (full, write):
            for arguments, code in ((["inspect", "nothing"], BUNDLE), (["compile", "spec.json"], 0)):
                assert subprocess.run([*command, *arguments], stderr=stderr).returncode == code
    os.close(write)


def test_a_stranger_does_not_steer_the_terminal(spec: Path) -> None:
    """Titles, cleared screens and text that runs backwards, in whatever a bundle or a spec names."""
    bad = "\x1b]0;pwned\x07\x1b[2J\x9b2J\u202eevil"
    tool = {"name": "f", "description": bad, "parameters": {"type": "object", "properties": {bad: {"enum": [bad]}}}}
    Path(f"{bad}.json").write_text(json.dumps([tool]))
    (wrong := Path("wrong.json")).write_text(json.dumps({"properties": {bad: {"type": bad}}}))
    Path("b.lark").write_text('start: "a\u202eevil"\n')
    assert (
        toolc("compile", "b.lark")[0]
        == toolc("compile", f"{bad}.json", "-o", "a.toolc")[0]
        == toolc("push", "s", "a.toolc")[0]
        == 0
    )
    for arguments, code in (
        (("inspect", "a.toolc"), 0),
        (("inspect", "a.toolc", "--keywords"), 0),
        (("list", "s"), 0),
        (("check", "b.toolc", "a"), NOT_ACCEPTED),
        (("compile", str(wrong)), BAD_INPUT),
        (("compile", "wrong.json", "--store", "s", "--jobs", "1"), BAD_INPUT),
    ):
        found, said = toolc(*arguments)
        assert found == code and said.count("\\u202e") and not {*"\x1b\x07\x9b\u202e"} & {*said}, (arguments, said)


def test_a_closed_stdin_and_a_reader_that_has_gone(spec: Path) -> None:
    run = partial(subprocess.run, capture_output=True, text=True)
    command = [sys.executable, "-m", "toolc.compiler.cli"]
    assert toolc("compile", "spec.json", "-o", "v1.toolc")[0] == 0
    for arguments in (["compile", "-"], ["check", "v1.toolc", "-"]):
        done = run([*command, *arguments], stdin=None, preexec_fn=lambda: os.close(0))
        assert done.returncode == USAGE and "standard input is closed" in done.stderr
    read, write = os.pipe()
    os.close(read)
    for text, code in (('"abc"', NO_READER), ("null", NOT_ACCEPTED)):  # which is said on stderr
        done = subprocess.run([*command, "check", "v1.toolc", text], stdout=write, stderr=subprocess.PIPE, text=True)
        assert done.returncode == code
    done = subprocess.run([*command, "inspect", "v1.toolc"], stdout=write, stderr=subprocess.PIPE, text=True)
    assert done.returncode == NO_READER and done.stderr == ""
    done = subprocess.run([*command, "inspect", "nothing", "--json"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.returncode == BUNDLE and "nothing" in done.stderr
    if os.path.exists("/dev/full"):
        for unbuffered in ("", "1"):  # what is buffered fails again where the process ends
            environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
            with open("/dev/full", "w") as full:
                done = subprocess.run([*command, "--help"], stdout=full, stderr=-1, text=True, env=environment)
            assert done.returncode == BAD_INPUT and "Exception" not in done.stderr


def test_a_damaged_pointer_in_the_cache_is_passed_over(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolc.compiler.lift import vocab

    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path))
    monkeypatch.setattr(vocab, "_opened", {})
    digest = vocab.load_vocab("builtin").digest
    (pointer,) = tmp_path.glob("*.key")
    for damaged in (b"", b"\0" * 40, b"../../etc/passwd", b"\xff\xfe"):
        pointer.write_bytes(damaged)
        monkeypatch.setattr(vocab, "_opened", {})
        assert vocab.load_vocab("builtin").digest == digest
        assert pointer.read_text() == digest
