"""Say in one sentence what each declared restriction leaves out, and which option changes that.

Leaves out   which restrictions a bundle has: the compiler lists them. The details: docs/json-schema.md.
"""

from __future__ import annotations

RESTRICTIONS: dict[str, tuple[str, str]] = {
    "key-order": ("Declared keys of an object stand in the order of the schema.", "--key-order any"),
    "many-keys": (
        "Objects with more keys than any order has room for (10, fewer beside counts) have them in declared order.",
        "",
    ),
    "blanks": (
        "No blanks around a value, and between its tokens only those that --whitespace names.",
        "--whitespace",
    ),
    "digits": ("Numbers have no more digits before and after the point than --digits says, by default 20.", "--digits"),
    "plain-integers": ("Integers are written without a point and an exponent: 12, never 12.0 or 1.2e1.", ""),
    "plain-bounds": ("Numbers that have bounds, and numbers in constants, are written without an exponent.", ""),
    "minimal-escapes": (
        "Keys, constants and strings with a rule have no escapes that JSON does not need.",
        "",
    ),
    "depth": (
        "Recursive values nest no deeper than --soft-depth, except to close what is open.",
        "--soft-depth",
    ),
    "indentation": ("What nests recursively, past 8 levels, stands on one line.", "--whitespace"),
    "open-keys": ("Nothing is left out, but an object may have an undeclared key twice.", ""),
    "formats": (
        "Some values of a format are left out; docs/json-schema.md lists them by format.",
        "",
    ),
    "raw-strings": ("A string that the protocol writes without quotes is never one that reads as another type.", ""),
    "writable": ("Strings that the protocol cannot write, as those that hold its own delimiters, are left out.", ""),
    "closed-arguments": (
        "Undeclared arguments are left out: a call of this protocol cannot name them, or --closed asks for that.",
        "",
    ),
    "positional": ("An optional argument comes only after all those before it.", ""),
    "request-parts": (
        "Headers, cookies, and optional parameters that are no scalars are left out.",
        "",
    ),
    "max-depth": ("Calls that no stack can decide nest no deeper than --max-depth.", "--max-depth"),
}
"""Name → the sentence, and the option that changes it."""


def option_of(name: str) -> str:
    """The option that changes a restriction; empty if there is none."""
    return RESTRICTIONS.get(name, ("", ""))[1]


def explained(name: str) -> str:
    """The sentence of a restriction, with its option; a newer toolc may have named one that is not known here."""
    sentence, option = RESTRICTIONS.get(name, ("See docs/json-schema.md.", ""))
    return sentence + (f" {option} changes this." if option and option not in sentence else "")
