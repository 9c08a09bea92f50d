"""Tables for the pages of docs/, as Markdown."""

from __future__ import annotations


def table(head: list[str], lines: list[list[str]]) -> str:
    """A table, ready to be copied."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])
