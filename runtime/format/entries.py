"""Check where a text is to begin, and how many tokens it may have.

Leaves out   which entries a bundle has, and what they need: see bundle.py.
"""

from __future__ import annotations

import operator

from ..errors import DecodeError
from ..expected import did_you_mean, expect, named_kind
from .bundle import Bundle, expect_bundle

MAX_BUDGET = 1 << 62  # tokens: above every length; a larger budget means the same


def entry_state(bundle: Bundle, entry: str) -> int:
    """The local state of an entry."""
    expect_bundle(bundle, "bundle")
    entries = bundle.meta["entry"]
    expect(entry, str, "entry", "the name of an entry: " + ", ".join(sorted(entries)[:12]))
    if entry not in entries:
        raise DecodeError(
            "no such entry",
            found=repr(entry),
            expected="one of " + ", ".join(sorted(entries)),
            hint=did_you_mean(entry, entries),
        )
    return int(entries[entry])


def checked_budget(bundle: Bundle, entry: str, budget: int | None) -> int:
    """A budget of so many tokens from an entry on, as seats hold it: 0 for none."""
    if budget is None:
        return 0
    need = bundle.min_tokens[entry]
    if need is None:
        raise DecodeError(
            "this bundle can keep no budget: no bound on the tokens it needs is known",
            place=f"{bundle.name}, entry {entry}",
            hint="the tokenizer lacks tokens to write the shortest text with, or a count is too large",
        )
    wanted = whole_tokens(budget)
    if wanted < need:
        raise DecodeError(
            "the budget is too small",
            place=f"{bundle.name}, entry {entry}",
            found=f"{budget} tokens",
            expected=f"at least {need}, with the end of turn",
        )
    return min(wanted, MAX_BUDGET)


def whole_tokens(budget: int) -> int:
    """A budget as an integer, or a DecodeError."""
    try:
        return int(operator.index(budget))
    except TypeError:
        shown = named_kind(budget)
        raise DecodeError("a budget is no number of tokens", found=shown, expected="an integer, or None") from None
