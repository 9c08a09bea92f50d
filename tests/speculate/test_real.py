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
from benchmarks.speculate_real import Task, figures

CALL_S, GUESS_S, ANSWER_S = 0.4, 0.1, 0.05
OTHER = 1
"""The question that the guesser answers with another call than the main model."""


def test_figures() -> None:
    """Two tasks of 4 + 1 + 2 seconds; a hit saves all of the tool's 2 s, as a guess takes 1."""
    plain = [Task(7.0, 4.0, 1.0, 0), Task(7.0, 4.0, 1.0, 0)]
    row = figures(2.0, 1.0, {"plain": plain, "guesser": [Task(5.0, 4.0, 1.0, 1), Task(7.0, 4.0, 1.0, 0)]})
    assert (row["T"], row["G"], row["F"], row["plain"]) == (2.0, 4.0, 1.0, 7.0)
    assert row["guesser"] == {
        "hits": 0.5, "saved": 0.143, "by task": [0.286, 0.0], "G": 4.0, "equation": 0.143,
    }  # fmt: skip


@pytest.mark.parametrize(("tool_s", "guess_s", "equation"), [(9.0, 1.0, 3 / 14), (2.0, 5.0, 0.0), (0.0, 1.0, 0.0)])
def test_what_a_hit_saves_at_most(tool_s: float, guess_s: float, equation: float) -> None:
    """No more than the rest of the turn when the guess is there, and nothing where the guess is the slower."""
    task = Task(5.0 + tool_s, 4.0, 1.0, 1)
    row = figures(tool_s, guess_s, {"plain": [task], "recorded": [task]})
    assert row["recorded"]["equation"] == pytest.approx(equation, abs=0.001)


class Scripted(ThreadingHTTPServer):
    """An endpoint whose call names the question's number, after a fixed time; then a short answer."""

    def __init__(self, call_s: float, other: int | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.call_s, self.other = call_s, other
        self.seen: list[dict[str, Any]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: Scripted
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append(asked)
        message: dict[str, Any] = {"role": "assistant", "content": "done"}
        if asked["tool_choice"] == "required":
            time.sleep(self.server.call_s)
            number = int(asked["messages"][0]["content"])
            arguments = json.dumps({"n": number + (number == self.server.other)})
            function = {"name": f"tool_{number}", "arguments": arguments}
            message = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        else:
            time.sleep(ANSWER_S)
        body = json.dumps({
            "id": "a", "object": "chat.completion", "created": 0, "model": "toolc",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        }).encode()  # fmt: skip
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


@pytest.mark.parametrize("agents", [1, 2])
def test_a_run(servers: list[Scripted], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agents: int) -> None:
    """The guesser is right but for one question, and a right guess takes the tool's time out of the task."""
    monkeypatch.setattr(speculate_real, "normal", lambda mean: lambda _: mean)
    monkeypatch.setattr(speculate_real, "HIT_RATE", 1.0)
    words = ["--model", "builtin", "--data", str(questions(tmp_path, 2)), "--tasks", "2", "--agents", str(agents)]
    ports = [str(one.server_address[1]) for one in servers]
    a = speculate_real.parser().parse_args([*words, "--tools", "0.5", "--ports", *ports])
    found = asyncio.run(speculate_real.measure(a))
    assert found["alpha"] == [1, 2]
    assert found["G alone"] >= CALL_S and found["g alone"] >= GUESS_S
    (row,) = found["tools"]
    assert len(servers[0].seen) == agents + 2 + 3 * 2 * 2  # a slot each, alone, and two turns of each task and arm
    assert row["G"] >= CALL_S and row["F"] >= ANSWER_S
    assert row["plain"] >= CALL_S + found["G alone"] / 2 + ANSWER_S
    assert row["guesser"]["hits"] == 0.5 and row["recorded"]["hits"] == 1.0
    for arm in ("guesser", "recorded"):
        overlap_s = min(row["T"], row["G"] - found["g alone"])
        wanted = row[arm]["hits"] * overlap_s / (row["G"] + row["F"] + row["T"])
        assert row[arm]["equation"] == pytest.approx(wanted, abs=0.03)  # of rounded times
    assert row["recorded"]["saved"] > 0  # by the times above 31%, on a machine with nothing else to do
    assert [one["name"] for one in (each["function"] for each in servers[0].seen[0]["tools"])] == [
        f"tool_{n}" for n in range(2)
    ]
    assert all("x-toolc" not in each["function"] for each in servers[0].seen[0]["tools"])


def test_alpha_may_be_given(servers: list[Scripted], tmp_path: Path) -> None:
    """With the times of an earlier run nothing is asked of the guesser, and recorded guesses need none."""
    ports = [str(one.server_address[1]) for one in servers]
    words = ["--model", "builtin", "--data", str(questions(tmp_path, 2)), "--tasks", "2", "--first", "1"]
    more = ["--arms", "plain", "recorded", "--alone", "0.4", "0.1", "--tools", "0", "--ports", *ports]
    found = asyncio.run(speculate_real.measure(speculate_real.parser().parse_args([*words, *more])))
    assert "alpha" not in found and not servers[1].seen
    assert [list(row) for row in found["tools"]] == [["T", "G", "F", "plain", "recorded"]]
    assert len(found["tools"][0]["recorded"]["by task"]) == 1
