"""Tell where a prompt leaves the model: before its reasoning, inside of it, or after.

    outside   nothing is said yet: the model may think first
    inside    the prompt ends with the mark that opens reasoning
    ""        the prompt holds reasoning that is over (empty, where a template turns it off)

Leaves out   the entries of bundles that begin there (docs/protocols.md, "Entries"); rendering: see the adapters.
Source       the marks: rules `think` and `thought` of grammars/*.lark.
"""

from __future__ import annotations

MARKS = (
    ("<think>", "</think>"),
    ("<mm:think>", "</mm:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought", "<channel|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ("<|channel|>analysis", "<|end|>"),
)
OUTSIDE, INSIDE, OVER = "outside", "inside", ""


def reasoning_after(prompt_end: str) -> str:
    """OUTSIDE, INSIDE or OVER, from what a template writes after the last message."""
    last = max(((prompt_end.rfind(mark), mark) for marks in MARKS for mark in marks), default=(-1, ""))
    if last[0] < 0:
        return OUTSIDE
    return INSIDE if any(last[1] == opens for opens, _ in MARKS) else OVER


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
