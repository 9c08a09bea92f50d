"""A recorded trace: turns, times and repeats as they were written down; equation 1 turn by turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolc.compiler.cli import cli
from toolc.runtime.speculate.equations import ClientSide
from toolc.runtime.speculate.errors import SpeculateError
from toolc.runtime.speculate.trace import read_trace


def asked(ids: dict[str, tuple[str, Any]], began: Any, ended: Any, **more: Any) -> dict[str, Any]:
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for id, (name, arguments) in ids.items()
    ]
    return {"role": "assistant", "tool_calls": calls, "started": began, "ended": ended, **more}


def told(id: str, began: Any, ended: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "x", "started": began, "ended": ended, **more}


LINES = [
    {"role": "user", "content": "no times are needed here", "conversation": "a"},
    asked({"1": ("look", {"n": 1}), "2": ("find", {})}, 0, 2, conversation="a"),
    told("1", 2, 3, conversation="a"),
    told("2", 2.5, 5, conversation="a"),
    asked({"1": ("look", {"n": 1.0})}, "2026-11-27T10:00:00Z", "2026-11-27T10:00:01+00:00", conversation="b"),
    told("1", "2026-11-27T10:00:01Z", "2026-11-27T10:00:01.500Z", conversation="b"),
    asked({"3": ("look", {"n": 1})}, 5, 6, conversation="a"),
    told("3", 6, 7.5, conversation="a"),
    asked({"4": ("look", {"n": 2})}, 8, 9, conversation="a"),  # nobody answered
    {"role": "assistant", "content": "an end needs no times", "conversation": "a"},
]


def lines(messages: list[Any]) -> list[str]:
    return [json.dumps(message) for message in messages]


def test_turns_times_and_repeats() -> None:
    trace = read_trace(lines(LINES))
    assert (trace.conversations, trace.unanswered) == (2, 1)
    assert [(turn.main_s, turn.tool_s) for turn in trace.turns] == [(2, 3), (1, 1.5), (1, 0.5)]
    repeats = [[(call.name, call.seen, call.again) for call in turn.calls] for turn in trace.turns]
    assert repeats == [
        [("look", False, False), ("find", False, False)],
        [("look", True, True)],
        [("look", True, False)],  # of another conversation; 1.0 is 1
    ]
    look, find = trace.tools
    assert (look.name, look.calls, look.median_s, look.slow_s) == ("look", 3, 1.0, 1.0)
    assert (look.seen, look.again) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert (find.name, find.seen, find.median_s) == ("find", 0, 2.5)
    assert trace.standard_s == 9
    by_turn = [ClientSide(main, 0.5, tool, 0.5).speculative_s for main, tool in ((2, 3), (1, 1.5), (1, 0.5))]
    assert trace.speculative_s(0.5, 0.5) == pytest.approx(sum(by_turn))


def test_whole_conversations_are_the_same() -> None:
    by_name: dict[str, list[Any]] = {}
    for message in LINES:
        by_name.setdefault(message["conversation"], []).append(message)
    whole = read_trace([*lines([{"messages": messages} for messages in by_name.values()]), "", "  "])
    assert whole.turns == read_trace(lines(LINES)).turns


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "trace:2.*no JSON"),
        ("[]", "trace:2.*not a message"),
        ('{"role": 1}', "trace:2.*not a message"),
        (asked({"1": ("a", {})}, 1, None), "trace:2/ended.*not a time.*None"),
        (asked({"1": ("a", {})}, "yesterday", 1), "trace:2/started.*not a time.*yesterday"),
        (asked({"1": ("a", {})}, 2, 1), "trace:2.*ended before it began"),
        (asked({"1": ("a", [])}, 1, 2), "trace:2.*calls that cannot be read"),
        ({"messages": [told("1", True, 2)]}, "trace:2/messages/0/started.*not a time"),
    ],
    ids=str,
)
def test_a_line_that_cannot_be_read_is_named(line: Any, words: str) -> None:
    with pytest.raises(SpeculateError, match=f"(?s){words}"):
        read_trace([json.dumps(LINES[0]), line if isinstance(line, str) else json.dumps(line)])


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "agent.jsonl"
    path.write_text("\n".join(lines(LINES)))
    given = ["speculate", "--trace", str(path), "--guess-s", "0.5", "--hit-rate", "0.5"]
    done = CliRunner().invoke(cli, [*given, "--json"])
    found = json.loads(done.output)
    trace = read_trace(lines(LINES))
    assert (found["turns"], found["conversations"], found["unanswered"], found["standard_s"]) == (3, 2, 1, 9)
    assert found["speculative_s"] == trace.speculative_s(0.5, 0.5)
    assert found["all_guessed_s"] == trace.speculative_s(0.5, 1.0)
    assert [one["name"] for one in found["tools"]] == ["look", "find"]
    text = " ".join(CliRunner().invoke(cli, given).output.split())
    assert "3 of 2 conversations" in text and "67% made before" in text and "1 call without an answer" in text


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "agent.jsonl"
    path.write_text(json.dumps(LINES[0]))
    rest = ["--guess-s", "0.5", "--hit-rate", "0.5"]
    for given, code, words in (
        ([], 2, "--main-s and --tool-s, or a trace"),
        (["--trace", str(path), "--main-s", "1"], 2, "leave out --main-s"),
        (["--trace", str(path)], 3, "a trace without a turn"),
        (["--trace", str(tmp_path / "none.jsonl")], 2, "cannot read"),
    ):
        done = CliRunner().invoke(cli, ["speculate", *given, *rest])
        assert (done.exit_code, words in " ".join(done.output.split())) == (code, True), done.output
