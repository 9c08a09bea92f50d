"""Tell where a prompt leaves the model: before its reasoning, inside of it, or after.

    outside   nothing is said yet: the model may think first
    inside    the prompt ends with the mark that opens reasoning
    ""        the prompt holds reasoning that is over (empty, where a template turns it off)

Leaves out   the entries of bundles that begin there (docs/protocols.md, "Entries"); rendering: see the adapters; the
             marks of parsers: see parser_table.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from .parser_table import REASONING_PARSERS, Marks

MARKS: tuple[Marks, ...] = tuple(
    sorted({marks for parsers in REASONING_PARSERS.values() for marks in parsers.values() if marks is not None})
)
"""Of all parsers, where the engine has none."""
OUTSIDE, INSIDE, OVER = "outside", "inside", ""
_ENDS_MORE = ("<|end|>",)
"""Marks that end other messages, too: alone they say nothing of reasoning."""


def marks_of(parser: str | None, engine: str = "vllm") -> tuple[Marks, ...]:
    """What opens and what ends reasoning for an engine's parser of reasoning; all marks where that is not known."""
    marks = REASONING_PARSERS[engine].get(parser or "")
    return MARKS if marks is None else (marks,)


def reasoning_after(prompt_end: str, marks: Iterable[Marks] = MARKS) -> str:
    """OUTSIDE, INSIDE or OVER, from what a template writes after the last message."""
    last, where = -1, OUTSIDE
    for opens, ends in marks:
        opened, ended = prompt_end.rfind(opens), prompt_end.rfind(ends)
        if ends in _ENDS_MORE and opened < 0:
            continue
        if max(opened, ended) > last:
            last, where = max(opened, ended), INSIDE if opened > ended else OVER
    return where


def asked(entry: str, where: str, parsed: bool) -> str:
    """What reasoning an entry should allow: OUTSIDE, INSIDE or OVER (none).

    Args:
        entry: that the request asks for, without reasoning.
        where: the prompt leaves the model.
        parsed: whether the engine takes reasoning out of the answer (`--reasoning-parser`). If not, reasoning would
            stand in what the client reads as JSON or waits for as a call; free text may hold it.
    """
    if parsed or entry.partition("/")[0] in ("auto", "none"):
        return where
    return OVER
