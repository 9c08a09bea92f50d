"""SGLang's own engine on a CPU with a trained model: mixed requests, and what may go wrong while they wait.

Runs where $TOOLC_SGLANG names the folder of SGLang's wheel, and folders of what it imports, and the model is there:

    pip download --no-deps sglang==0.5.23 && unzip -q sglang-*.whl -d sglang
    pip install --target more --no-deps …       # what its metadata lists, but for torch and all that needs CUDA
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolc.compiler import Options, compile_schema, compile_tools
from toolc.compiler.cli import cli
from toolc.runtime.calls.reader import Reader
from toolc.runtime.format.bundle import Bundle

from .mixed import ALARM, BUDGET, WEATHER, held, judge, messages, requests
from .places import model_folder
from .serving import free_port

FOLDERS = os.environ.get("TOOLC_SGLANG")
if FOLDERS is None:
    pytest.skip("$TOOLC_SGLANG names no folder of SGLang's wheel", allow_module_level=True)
if os.pathsep not in FOLDERS:
    pytest.skip("$TOOLC_SGLANG names only the wheel, and no folder of what its engine imports", allow_module_level=True)


def environment(**more: str) -> dict[str, str]:
    """Variables of a process of SGLang."""
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(Path(__file__).parents[2]), FOLDERS)))
    # On a busy machine torch's threads wait for each other: 100 requests took hours instead of minutes.
    return {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": path, **more}


class Engine:
    """The engine's process."""

    def __init__(self, model: Path, bundles: Path, log: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.sglang_child", str(model)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            env=environment(TOOLC_BUNDLES=str(bundles)),
            text=True,
        )

    def ask(self, asked: list[dict[str, Any]], moves: Sequence[tuple[Path, Path]] = ()) -> list[dict[str, Any]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        wave = {"requests": asked, "moves": [[str(old), str(new)] for old, new in moves]}
        self._process.stdin.write(json.dumps(wave) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the engine died"
        answers: list[dict[str, Any]] = json.loads(line)
        return answers

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()


@pytest.fixture(scope="module")
def model() -> Path:
    return model_folder()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


@pytest.fixture(scope="module")
def engine(model: Path, shelf: Path) -> Iterator[Engine]:
    made = Engine(model, shelf, shelf / "engine.log")
    yield made
    made.close()


def asked(body: dict[str, Any], model: Path, schema: Any) -> dict[str, Any]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    prompt = tokenizer.apply_chat_template(messages(body), add_generation_prompt=True, tokenize=False)
    params = {"temperature": body["temperature"], "max_new_tokens": BUDGET, "json_schema": json.dumps(schema)}
    return {"prompt": prompt, "params": params}


def one(model: Path, schema: Any) -> dict[str, Any]:
    return asked({"messages": [{"role": "user", "content": "Wake me at seven."}], "temperature": 0.0}, model, schema)


def alarms(model: Path, tool: dict[str, Any], **options: Any) -> Bundle:
    return compile_tools([tool], model, options=Options(protocol="hermes"), **options).bundle


def valid(answer: dict[str, Any], tool: dict[str, Any]) -> bool:
    body = {"tools": [tool], "tool_choice": "required"}
    return "error" not in answer and bool(judge(body, answer["text"]))


def test_mixed_requests(engine: Engine, shelf: Path, model: Path) -> None:
    """100 at once, eight running: every answer is valid, and read back as the judge reads it."""
    bodies = requests(100, seed=6)
    found = [held(body, model) for body in bodies]
    waves = []
    for body, (bundle, entry) in zip(bodies, found, strict=True):
        name = bundle.digest
        whole, _ = held({key: value for key, value in body.items() if key != "tool_choice"}, model)
        whole.write(shelf / f"{whole.digest}.toolc", standalone=True)
        choice = {"toolc_bundle": whole.digest, "toolc_entry": entry, "toolc_budget": BUDGET}
        if name != whole.digest:
            choice["toolc_tools"] = [tool["name"] for tool in bundle.tools]
        waves.append(asked(body, model, choice))
    answers = engine.ask(waves)
    calls = 0
    for body, (bundle, entry), answer in zip(bodies, found, answers, strict=True):
        assert "error" not in answer, answer
        assert answer["reason"] == "stop"
        read = Reader(bundle, entry)
        for token in answer["tokens"]:
            read.feed(token)
        read.finish()
        judged = judge(body, answer["text"])
        assert [(call.name, call.arguments) for call in read.calls] == judged
        calls += len(judged)
    assert len(answers) == 100 and calls > 40


def test_exact_numbers(engine: Engine, model: Path) -> None:
    """A JSON Schema as it is written: numbers that no double holds."""
    schemas = ['{"const": 9007199254740993.0}', '{"enum": [0.30000000000000000001, 9007199254740993]}']
    asks = [one(model, {}) for _ in schemas]
    for ask, schema in zip(asks, schemas, strict=True):
        ask["params"]["json_schema"] = schema
    first, second = (answer.get("text", answer) for answer in engine.ask(asks))
    assert first.rstrip("0").rstrip(".") == "9007199254740993"  # a schema has no budget, so zeros may follow
    assert second.rstrip("0").rstrip(".") in ("0.30000000000000000001", "9007199254740993")


def test_a_bundle_of_another_tokenizer(engine: Engine, shelf: Path, model: Path) -> None:
    """It is refused, alone, by the width of the logits; the next request is served."""
    compile_tools([ALARM], "builtin").bundle.write(shelf / "other.toolc", standalone=True)
    alarms(model, ALARM).write(shelf / "right.toolc", standalone=True)
    choice = {"toolc_entry": "required", "toolc_budget": BUDGET}  # SGLang does not tell toolc `max_new_tokens`
    wrong, right = (one(model, {"toolc_bundle": name, **choice}) for name in ("other", "right"))
    wrong["params"]["json_schema"] = json.dumps({"toolc_bundle": "other"})
    refused, served, again = engine.ask([wrong, right, wrong])
    assert "tokenizer" in refused["error"] and "tokenizer" in again["error"]
    assert valid(served, ALARM)


def test_a_bundle_is_renamed_while_requests_wait(engine: Engine, shelf: Path, model: Path) -> None:
    """Requests that wait keep what they got; later ones are refused, until the name is there again."""
    name, aside = shelf / "moved.toolc", shelf / "aside.toolc"
    alarms(model, ALARM).write(name, standalone=True)
    ask = one(model, {"toolc_bundle": "moved", "toolc_entry": "required", "toolc_budget": BUDGET})
    answers = engine.ask([ask] * 24, [(name, aside)])
    assert all(valid(answer, ALARM) for answer in answers), answers
    (gone,) = engine.ask([ask])
    assert "no such bundle" in gone["error"]
    alarms(model, WEATHER).write(name, standalone=True)
    (new,) = engine.ask([ask])
    assert valid(new, WEATHER)


def test_ends_of_turn(engine: Engine, shelf: Path, model: Path) -> None:
    """The engine stops where a grammar is over; a bundle of other ends of turn is refused beside one that is served."""
    alarms(model, ALARM).write(shelf / "right.toolc", standalone=True)
    alarms(model, ALARM, eos=["<|endoftext|>"]).write(shelf / "ends.toolc", standalone=True)
    choice = {"toolc_entry": "required", "toolc_budget": BUDGET}
    right, other = (one(model, {"toolc_bundle": name, **choice}) for name in ("right", "ends"))
    served, refused = engine.ask([right, other])
    assert valid(served, ALARM) and served["reason"] == "stop"
    assert "tokenizer" in refused["error"]


def test_what_is_refused_ends_one_request(engine: Engine, model: Path) -> None:
    asks = [one(model, {"toolc_bundle": "nothing"}), one(model, {"type": "array", "uniqueItems": True})]
    asks.append(one(model, {"enum": ["yes", "no"]}))
    first, second, third = engine.ask(asks)
    assert "no such bundle" in first["error"] and "uniqueItems" in second["error"]
    assert json.loads(third["text"]) in ("yes", "no")


def test_schemas_end(engine: Engine, model: Path) -> None:
    bundle = compile_schema({"type": "integer", "maximum": 99, "minimum": 10}, model).bundle
    assert bundle.min_tokens["start"]
    (answer,) = engine.ask([one(model, {"type": "integer", "maximum": 99, "minimum": 10})])
    assert 10 <= json.loads(answer["text"]) <= 99


def test_the_page(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/serving/sglang.md: its commands, but for pip, with what it says of a CPU; then a request to the server."""
    page = (Path(__file__).parents[2] / "docs" / "serving" / "sglang.md").read_text(encoding="utf-8")
    (shell,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    install, compiling, serving = shell.splitlines()
    assert install.startswith("pip install ")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.json").write_text(json.dumps([ALARM]))
    (tmp_path / "bundles").mkdir()
    words = [str(model) if word == "MODEL" else word for word in shlex.split(compiling)]
    result = CliRunner().invoke(cli, words[1:])
    assert words[0] == "toolc" and result.exit_code == 0, result.output

    variable, *words = [str(model) if word == "MODEL" else word for word in shlex.split(serving)]
    name, _, value = variable.partition("=")
    assert words[:2] == ["python", "-m"] and name == "TOOLC_BUNDLES"
    on_a_cpu = re.findall(r"`(\w+)=(?:\"(\w+)\"|True)`", page)
    assert len(on_a_cpu) == 4
    for option, given in on_a_cpu:
        words += ["--" + option.replace("_", "-"), *filter(None, [given])]
    port = free_port()
    command = [sys.executable, "-m", "tests.engines.sglang_child", *words[2:], "--port", str(port)]
    command += ["--max-running-requests", "4", "--max-total-tokens", "8000", "--context-length", "2048"]
    with (tmp_path / "log.txt").open("wb") as log:
        server = subprocess.Popen(command, env=environment(**{name: value}), stdout=log, stderr=log)
    try:
        schema = re.findall(r"`json_schema` of a request is `(\{.*?\})`", page)[0]
        ask = one(model, json.loads(schema))
        ask["params"]["max_new_tokens"] = json.loads(schema)["toolc_budget"]
        data = json.dumps({"text": ask["prompt"], "sampling_params": ask["params"]}).encode()
        answer = _asked(f"http://127.0.0.1:{port}/generate", data, server)
        assert judge({"tools": [ALARM], "tool_choice": "required"}, answer["text"]), (tmp_path / "log.txt").read_text()
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()


def _asked(url: str, data: bytes, server: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The answer of a server, once it has begun."""
    until = time.monotonic() + 600
    while True:
        try:
            request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=300) as answer:
                found: dict[str, Any] = json.loads(answer.read())
                return found
        except urllib.error.HTTPError:
            raise
        except OSError:
            assert server.poll() is None and time.monotonic() < until, "the server does not begin"
            time.sleep(1)
