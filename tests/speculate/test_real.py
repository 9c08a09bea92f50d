"""benchmarks/speculate_real.py without a model: its arithmetic by hand, and runs over HTTP against scripted servers."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from benchmarks import speculate_real
from benchmarks.speculate_real import ANSWER_TOKENS, OneCall
from benchmarks.speculate_real_table import Held, arm_row, read, table
from toolc.runtime import Call

CALL_S, GUESS_S, ANSWER_S = 0.4, 0.1, 0.05
OTHER = 1
"""The question that the guesser answers with another call than the main model."""


def line(arm: str, task: int, repeat: int, whole_s: float, hits: int = 0, guess_s: float | None = 1.0) -> Any:
    """A record of a task with a call of 4 s, an answer of 1 s, and a tool whose mean is 2 s."""
    key = 0.5, repeat, arm, task
    return key, {
        "tool_s": 2.0, "guess_s": None if arm == "plain" else guess_s, "whole_s": whole_s, "call_s": 4.0,
        "answer_s": 1.0, "hits": hits, "stayed": 0,
    }  # fmt: skip


def test_a_row() -> None:
    """Two tasks of 4 + 1 + 2 seconds; a hit saves all of the tool's 2 s, as a guess takes 1."""
    lines = [line("plain", 0, 0, 7.0), line("plain", 1, 0, 7.0), line("recorded", 0, 0, 5.0, 1),
             line("recorded", 1, 0, 7.0)]  # fmt: skip
    row = arm_row(Held(tasks=dict(lines)), 0.5, "recorded")
    assert row[:8] == ["2.0", "recorded", "1", "4.0", "1.0", "1.0", "7.0", "4.0, 1.0"]
    assert row[8:] == ["1 of 2", "14.3%", "14.3%", "14.3%", ""]


def test_an_interval_is_over_repeats() -> None:
    """Savings of 2/8, 0 and 2/8 as means of their repeats: 16.7% ± 4.30 · 14.4% / √3; a repeat without all is left."""
    lines = [
        *(line("plain", 0, repeat, 8.0) for repeat in range(4)),
        *(line("recorded", 0, repeat, whole_s) for repeat, whole_s in enumerate((6.0, 8.0, 6.0))),
    ]
    row = arm_row(Held(tasks=dict(lines)), 0.5, "recorded")
    assert row[2] == "3" and row[9] == "16.7% ± 35.8"
    begun = Held(tasks=dict([line("plain", 0, 0, 8.0), line("plain", 1, 0, 8.0), line("recorded", 0, 0, 8.0)]))
    assert "recorded" not in table(begun)  # its only repeat lacks a task


@pytest.mark.parametrize(("guess_s", "equation"), [(1.0, "28.6%"), (3.0, "14.3%"), (5.0, "0.0%")])
def test_what_a_hit_saves_at_most(guess_s: float, equation: str) -> None:
    """No more than the rest of the turn when the guess is there, and nothing where the guess is the slower."""
    lines = [line("plain", 0, 0, 7.0), line("recorded", 0, 0, 7.0, 1, guess_s)]
    assert arm_row(Held(tasks=dict(lines)), 0.5, "recorded")[10:12] == [equation, equation]


def test_the_equation_by_task() -> None:
    """Tools of 1 and 3 s in tasks of 6 and 8 s, both guessed 3 s before the call is there: 1/6 and 3/8."""
    lines = [line("plain", 0, 0, 6.0), line("plain", 1, 0, 8.0), line("recorded", 0, 0, 5.0, 1),
             line("recorded", 1, 0, 5.0, 1)]  # fmt: skip
    assert arm_row(Held(tasks=dict(lines)), 0.5, "recorded")[10:12] == ["28.6%", "27.1%"]


class Scripted(ThreadingHTTPServer):
    """An endpoint whose call names the question's number, after a fixed time; then a short answer."""

    def __init__(self, call_s: float, other: int | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.call_s, self.other = call_s, other
        self.seen: list[dict[str, Any]] = []
        self.handed: list[tuple[str, Any]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: Scripted
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer({"counts": {"steps": 10 * len(self.server.seen)}})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "cache-tool-output" in self.path:
            self.server.handed.append((self.path.rpartition("/")[2], asked))
            self._answer({"cached": len(asked)})
            return
        self.server.seen.append(asked)
        if asked.get("stream"):
            self._stream(asked)
            return
        message: dict[str, Any] = {"role": "assistant", "content": "done"}
        if asked["tool_choice"] == "required":
            time.sleep(self.server.call_s)
            number = int(asked["messages"][0]["content"])
            arguments = json.dumps({"n": number + (number == self.server.other)})
            function = {"name": f"tool_{number}", "arguments": arguments}
            message = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        else:
            time.sleep(ANSWER_S)
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        self._answer({"id": "a", "object": "chat.completion", "created": 0, "model": "toolc", "choices": [choice]})

    def _stream(self, asked: dict[str, Any]) -> None:
        """The call is answered by the server itself once it is written, if its output is there."""
        id, number = f"id{len(self.server.seen)}", asked["messages"][0]["content"]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self._chunk(id, {"role": "assistant"})
        time.sleep(self.server.call_s)
        function = {"name": f"tool_{number}", "arguments": json.dumps({"n": int(number)})}
        call = {"id": "c", "type": "function", "function": function}
        if id in dict(self.server.handed):
            answered = {"role": "tool", "tool_call_id": "c", "content": "done"}
            self._chunk(id, {"resident": [{"role": "assistant", "content": None, "tool_calls": [call]}, answered]})
            time.sleep(ANSWER_S)
            self._chunk(id, {"content": "done"}, "length")
        else:
            self._chunk(id, {"tool_calls": [{"index": 0, **call}]}, "tool_calls")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _chunk(self, id: str, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        head = {"id": id, "object": "chat.completion.chunk", "created": 0, "model": "toolc"}
        self.wfile.write(f"data: {json.dumps(head | {'choices': [choice]})}\n\n".encode())
        self.wfile.flush()

    def _answer(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


@pytest.fixture
def servers() -> Iterator[list[Scripted]]:
    both = [Scripted(CALL_S), Scripted(GUESS_S, OTHER)]
    yield both
    for one in both:
        one.shutdown()
        one.server_close()


def questions(folder: Path, count: int) -> Path:
    """BFCL's form: question n has the tool of its number."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    lines = [
        {"question": [[{"role": "user", "content": str(n)}]],
         "function": [{"name": f"tool_{n}", "description": "It looks.", "parameters": schema}]}
        for n in range(count)
    ]  # fmt: skip
    (folder / "simple_python.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def run(servers: list[Scripted], folder: Path, *words: str) -> Held:
    """Run what the file does not hold, and read it."""
    out = folder / "real.jsonl"
    ports = [str(one.server_address[1]) for one in servers]
    common = ["run", "--model", "builtin", "--data", str(questions(folder, 2)), "--tasks", "2", "--out", str(out)]
    asyncio.run(speculate_real.measure(speculate_real.parser().parse_args([*common, "--ports", *ports, *words])))
    return read(out)


@pytest.fixture
def certain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools take their mean time, and recorded guesses are right."""
    monkeypatch.setattr(speculate_real, "normal", lambda mean: lambda _: mean)
    monkeypatch.setattr(speculate_real, "HIT_RATE", 1.0)


@pytest.mark.usefixtures("certain")
@pytest.mark.parametrize("agents", [1, 2])
def test_a_run(servers: list[Scripted], tmp_path: Path, agents: int) -> None:
    """The guesser is right but for one question, and a right guess takes the tool's time out of the task."""
    words = ["--agents", str(agents), "--tools", "0.5", "--arms", "plain", "guesser", "recorded"]
    held = run(servers, tmp_path, *words)
    assert held.alpha == (1, 2) and held.setting == {
        "tasks": 2,
        "agents": agents,
        "guesser": "int8-channel",
        "guess": None,
    }
    assert all(one["seconds"] >= CALL_S for one in held.alone["main"].values())
    assert all(one["seconds"] >= GUESS_S for one in held.alone["guesser"].values())
    assert len(servers[0].seen) == agents + 2 + 3 * 2 * 2  # a slot each, alone, and two turns of each task and arm
    tool_s = sum(one["seconds"] for one in held.alone["main"].values()) / 4
    assert len(held.tasks) == 6
    for (share, repeat, arm, n), one in held.tasks.items():
        assert (share, repeat, one["tool_s"]) == (0.5, 0, pytest.approx(tool_s, abs=0.001))
        assert one["call_s"] >= CALL_S and one["answer_s"] >= ANSWER_S
        right = {"plain": False, "guesser": n != OTHER, "recorded": True}[arm]
        assert one["hits"] == right and one["stayed"] == 0
        assert (one["guess_s"] or GUESS_S) >= GUESS_S and (one["guess_s"] is None) == (arm == "plain")
        assert one["whole_s"] >= CALL_S + ANSWER_S + tool_s * (not right)
    saved = 1 - held.tasks[0.5, 0, "recorded", 0]["whole_s"] / held.tasks[0.5, 0, "plain", 0]["whole_s"]
    assert saved > 0  # by the times above 31%, on a machine with nothing else to do
    assert [one["name"] for one in (each["function"] for each in servers[0].seen[0]["tools"])] == [
        f"tool_{n}" for n in range(2)
    ]
    assert all("x-toolc" not in each["function"] for each in servers[0].seen[0]["tools"])
    printed = table(held)
    assert (
        "alpha = 1 of 2" in printed
        and "| guesser | 1 |" in printed
        and "| 20.0 → 20.0 |" in printed
        and "| 2 of 2 |" in printed
    )


@pytest.mark.usefixtures("certain")
def test_outputs_are_handed_in(servers: list[Scripted], tmp_path: Path) -> None:
    """A tool that ends before the call does: the server gets its output, and answers in the same request."""
    held = run(servers, tmp_path, "--arms", "plain", "engine", "--tools", "0.1")
    assert [output[0]["output"] for _, output in servers[0].handed] == ["done"] * 2
    for n in range(2):
        one = held.tasks[0.1, 0, "engine", n]
        assert (one["hits"], one["stayed"]) == (1, 1)
        assert one["call_s"] >= CALL_S and one["answer_s"] >= ANSWER_S
        assert one["whole_s"] >= one["call_s"] + one["answer_s"] - 0.01
    assert sum(bool(asked.get("stream")) for asked in servers[0].seen) == 2
    assert "2 of 2, 2 stayed" in table(held)


@pytest.mark.usefixtures("certain")
def test_an_output_that_is_late(servers: list[Scripted], tmp_path: Path) -> None:
    """A tool that ends after the call: the client has its output, and asks for the answer."""
    held = run(servers, tmp_path, "--arms", "plain", "engine", "--tools", "1.5", "--first", "1")
    one = held.tasks[1.5, 0, "engine", 0]
    assert (one["hits"], one["stayed"]) == (1, 0)
    assert one["whole_s"] >= CALL_S + ANSWER_S


def test_a_run_goes_on(servers: list[Scripted], tmp_path: Path) -> None:
    """What the file holds is not asked again, and a repeat that broke off is run whole."""
    words = ["--tools", "0", "--arms", "plain", "recorded", "--guess", "0.1"]
    first = run(servers, tmp_path, *words)
    guesses, asked = len(servers[1].seen), len(servers[0].seen)
    out = tmp_path / "real.jsonl"
    lines = out.read_text().splitlines(True)
    out.write_text("".join(lines[:-2]))  # without the last task and the counts
    again = run(servers, tmp_path, *words, "--repeats", "2")
    assert len(servers[1].seen) == guesses  # recorded guesses need none
    assert len(servers[0].seen) == asked + 1 + (1 + 2) * 2 * 2  # a warm slot, one task and then two in two arms
    assert again.alone == first.alone and len(again.tasks) == 8 and len(again.counts) == 8
    main_s = sum(one["seconds"] for one in again.alone["main"].values()) / 2
    assert again.tasks[0, 1, "recorded", 0]["guess_s"] == pytest.approx(main_s / 10, abs=0.001)
    assert out.read_text().startswith("".join(lines[:-2]))
    with pytest.raises(SystemExit, match="not of"):
        run(servers, tmp_path, *words, "--agents", "2")


def test_a_port_that_is_taken(servers: list[Scripted], tmp_path: Path) -> None:
    """Another run's server would answer in place of this one's."""
    ports = [str(one.server_address[1]) for one in servers]
    words = ["run", "--model", "builtin", "--out", str(tmp_path / "real.jsonl"), "--ports", *ports]
    with pytest.raises(SystemExit, match=f"port {ports[0]}"):
        speculate_real.main(words)


def test_a_sequence_that_stays_goes_on_with_text() -> None:
    """The main server's engine: behind a call with an output comes a short text, though a call was required."""
    from tests.speculate.small import bias, bundle, causal, encoder
    from toolc.runtime.speculate.causal import CausalModel
    from toolc.runtime.speculate.chat import Chat
    from toolc.runtime.speculate.engine import Sampling
    from toolc.runtime.speculate.service import Request, Service, Turn

    def service() -> Service:
        engine = OneCall(CausalModel(causal(), 1, 1024, bias()), bundle(), encoder())
        return Service(engine, Chat(bundle(), encoder()))

    async def turns(on: Service, call: Call | None) -> list[Turn]:
        running = on.begin(Request([{"role": "user", "content": "hello"}], (), "required/one", Sampling(max_tokens=96)))
        if call is not None:
            on.engine.cache_output(running.id, "", call.name, dict(call.arguments), "fine", 60)
        return [event async for event in on.run(running) if isinstance(event, Turn)]

    (plain,) = asyncio.run(turns(service(), None))
    (call,) = plain.calls
    one, other = asyncio.run(turns(service(), call))
    assert (one.end.tokens, one.end.outputs) == (plain.end.tokens, ("fine",))
    assert not other.calls and 0 < len(other.end.tokens) <= ANSWER_TOKENS
