"""Ladders: their tables are those of walks from every state, and their masks those of trying every token."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolc.compiler import Options, compile_grammar, compile_schema, compile_tools
from toolc.compiler.errors import VocabError
from toolc.compiler.lift import close, lift
from toolc.compiler.lift.ladders import MOST_STEPS, ends_of_ladders, find_ladders
from toolc.compiler.link import cache
from toolc.runtime import Matcher
from toolc.runtime.bundle import Bundle

from .brute import brute_mask
from .test_counted_grids import runs
from .test_masks import bits, choose, vocab


def up_to(count: int, item: str) -> str:
    """So many copies of an item or fewer: as states, not as a counter."""
    text = ""
    for _ in range(count):
        text = f"({item} {text})?"
    return text


GRAMMARS = {
    "letters": f'start: "<" {up_to(6, "A")} "c" | "[" {up_to(3, "A")} "d"\nA: /[ab]/\n',
    "then anything": f'start: "<" {up_to(5, "A")} X*\nA: /[ab ]/\nX: /[^ab ]/\n',
    "in strings": f'start: "\\"" {up_to(9, "A")} (X S*)? "\\""\nA: /[ax]/\nX: /[^"\\\\ax]/\nS: /[^"\\\\]|\\\\["n]/\n',
    "entered in the middle": f'start: ("x" l "!" | "b" m "!")+\nl: {up_to(12, "A")}\nm: {up_to(5, "A")}\nA: "a"\n',
    "one above the other": f'start: "<" {up_to(4, "A")} {up_to(7, "B")} "c"\nA: "a"\nB: "b"\n',
    "other rungs below": f'start: "<" (B {up_to(5, "B")} | A (A {up_to(4, "B")})?)? "c"\nA: /[ab]/\nB: "b"\n',
    "pushes": f'start: "<" t\nt: {up_to(4, "A")} "[" t? "]" {up_to(3, "A")} ">"\nA: " "\n',
    "ends": f'start: "<" {up_to(20, "A")}\nA: " "\n',
    "special tokens": f'start: "<" {up_to(5, "A")} (_tag{{"</think>"}} {up_to(5, "A")})? "x"\n'
    '%import .protocol (_tag)\nA: " "\n',
    "counters": f'start: "[" s ("," l s)~2..30 "]"\nl: {up_to(8, "A")}\ns: "\\"" B~3..40 "\\"" l\nA: " "\nB: /[ab ]/\n',
    "comes back": f'start: "<" ({up_to(7, "A")} "b")* "c"\nA: "a"\n',
    "more than are counted": f'start: "<" {up_to(MOST_STEPS + 9, "A")} "x"\nA: "a"\n',
}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "string"}, "maxItems": 4}, "b": {"enum": [1, "b", None]}},
    "required": ["b"],
}


TOOLS = [{"name": name, "parameters": SCHEMA} for name in ("one", "other", "two")]  # blanks stand where names decide


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path))


def forget() -> None:
    """Keep no part that was compiled before."""
    cache.forget()
    shutil.rmtree(os.environ["TOOLC_CACHE"], ignore_errors=True)


def compiled(case: str) -> Bundle:
    forget()
    if case == "tools":
        return compile_tools(TOOLS, vocab("builtin")).bundle
    if case.isdigit():
        return compile_schema(SCHEMA, vocab("builtin"), options=Options(whitespace=int(case))).bundle
    return compile_grammar(GRAMMARS[case], vocab("builtin") if "special" in case else runs()).bundle


@pytest.mark.parametrize("case", [*GRAMMARS, "tools", "1", "3", "20", "100"])
def test_masks_and_tables(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heights = []

    def kept(*args: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step, height = find_ladders(*args)
        heights.append(int(height.max()))
        return step, height

    def tried(*args: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ends = ends_of_ladders(*args)
        assert all((end[end] == end).all() for end in ends), "another stands for what stands for others"
        return ends

    monkeypatch.setattr(lift, "find_ladders", kept)
    monkeypatch.setattr(close, "ends_of_ladders", tried)
    held = compiled(case)
    assert max(heights) > (0 if case == "1" else 2)
    rng = random.Random(case)
    for _ in range(20):
        matcher = Matcher(held)
        for _ in range(30):
            allowed = bits(matcher, held.vocab.size)
            np.testing.assert_array_equal(allowed, brute_mask(held, matcher))
            matcher.advance(choose(np.flatnonzero(allowed), held, rng))
            if matcher.is_finished:
                break
    monkeypatch.setattr(lift, "find_ladders", lambda *args: tuple(0 * x for x in find_ladders(*args)))
    assert compiled(case).digest == held.digest


def test_no_step_seems_dearer_than_one_above(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a token costs falls down a ladder to above its foot, where the tokens of slices are not walked, too."""
    monkeypatch.setattr(close, "MOST_EXACT", -1)
    monkeypatch.setattr(close, "_WORTH", 1)
    steps, work_out = [], close._Close._after

    def checked(self: Any, rows: Any) -> np.ndarray:
        after: np.ndarray = work_out(self, rows)
        first, (step, height) = self.a.close_first, self.ladders
        single = np.diff(first) == 1
        for q in np.flatnonzero((height > 0) & (height[step >> 3] > 0) & single & single[step >> 3]).tolist():
            upper, lower = first[q], first[step[q] >> 3]
            if self.a.bound[lower] <= self.a.bound[upper]:
                steps.append(q)
                assert (after[lower] <= after[upper]).all()
        return after

    monkeypatch.setattr(close._Close, "_after", checked)
    numbers = {name: {"type": "number"} for name in ("a", "b")} | {"c": {"type": "array", "items": {"type": "number"}}}
    schema = {"type": "object", "properties": numbers, "required": ["a", "b"], "additionalProperties": False}
    forget()
    compile_schema(schema, vocab("builtin"))
    assert len(steps) > 200


def test_blanks_are_a_slice() -> None:
    """What a gap allows is cut from the tokens of nothing but blanks, and only the others are listed."""
    held = compiled("3")
    t, v, matcher = held.tables, held.vocab, Matcher(held)
    for data, left in ((b"{", 3), (b" ", 2), (b"\n", 1)):
        matcher.advance_bytes(data)
        row = t.cell_row[t.state_cell[matcher.state], 0]
        assert (v.meta["slices"][t.row_slice[row]], t.row_units[row]) == ("blanks", left)
        at = t.row_list[row]
        for token in t.list_tokens[t.list_offset[at] : t.list_offset[at + 1]]:
            assert not v.token_bytes[v.token_offset[token] : v.token_offset[token + 1]].tobytes().isspace()
    matcher.advance_bytes(b"\t")
    assert t.row_slice[t.cell_row[t.state_cell[matcher.state], 0]] == -1


def test_a_vocab_with_other_slices_is_refused() -> None:
    held = vocab("builtin")
    other = replace(held, meta={**held.meta, "slices": [*held.meta["slices"][:-1], "others"]})
    with pytest.raises(VocabError, match="another version"):
        compile_schema(SCHEMA, other)


def test_what_is_a_ladder() -> None:
    """Classes: a rung, another one, a way out that pops."""

    def found(rows: list[list[int]], narrow: list[int] | None = None) -> tuple[list[int], list[int]]:
        ops = np.array([[0, 0, 0], [0, 0, 0], *([8 * a, 8 * b, 8 * c + 5] for a, b, c in rows)], np.int32)
        decides = np.zeros(len(ops), bool)
        decides[narrow or []] = True
        step, height = find_ladders(ops, np.arange(len(ops) + 1, dtype=np.int32), decides)
        return (step >> 3).tolist()[2:], height.tolist()[2:]

    assert found([[3, 0, 9], [4, 0, 9], [0, 0, 9]]) == ([3, 4, 0], [2, 1, 0])
    assert found([[0, 0, 9], [2, 0, 9], [3, 0, 9]]) == ([0, 2, 3], [0, 1, 2]), "from the foot up"
    assert found([[3, 3, 9], [4, 4, 9], [0, 0, 9]]) == ([3, 4, 0], [2, 1, 0])
    assert found([[3, 3, 9], [4, 0, 9], [0, 0, 9]])[1] == [0, 1, 0], "other rungs"
    assert found([[3, 0, 9], [4, 0, 9], [0, 0, 8]])[1] == [0, 0, 0], "another way out"
    assert found([[3, 0, 9], [2, 0, 9]])[1] == [0, 0], "no foot"
    assert found([[2, 0, 9]])[1] == [0], "a loop"
    assert found([[3, 0, 9], [4, 0, 9], [0, 0, 9]], [3])[1] == [0, 0, 0], "one decides"
    assert found([[3, 0, 9], [4, 0, 9], [0, 0, 9]], [2])[1] == [0, 1, 0]
    assert found([[4, 0, 9], [4, 0, 9], [0, 0, 9]])[1] == [1, 1, 0], "two above one"
    assert found([[3, 0, 9], [0, 4, 9], [0, 0, 9]])[1] == [0, 1, 0], "a foot is above another one, which may go on"
    many = MOST_STEPS + 3
    rows = [[q + 3, 0, 900] for q in range(many)] + [[0, 0, 900]]
    assert found(rows)[1] == [0, 0, 0, *range(MOST_STEPS, -1, -1)]
