"""The tables of docs/json-schema.md, made from what the compiler uses.

Leaves out   the text around them. tests/schema/test_docs.py checks that the document is current.
"""

from __future__ import annotations

from .formats import FORMATS
from .keywords import FREE_FORMATS, KEYWORDS, NUMBER_FORMATS
from .report import TYPE_RESTRICTIONS

NARROWED = {
    "type": "; ".join(
        f"{kind}: {', '.join(f'`{one}`' for one in names)}" for kind, names in TYPE_RESTRICTIONS.items() if names
    ),
    "enum": "`minimal-escapes`, `key-order`, `many-keys`, `plain-integers`, `plain-bounds`, `digits`, by its values",
    "const": "`minimal-escapes`, `key-order`, `many-keys`, `plain-integers`, `plain-bounds`, `digits`, by its value",
}
"""Keywords whose restrictions go by their value."""


def keyword_table() -> str:
    """Every keyword: which values it constrains, in which drafts, how far it is enforced, and what narrows it."""
    lines = ["| keyword | constrains | drafts | limits | restrictions that may narrow it |", "|---|---|---|---|---|"]
    for name, known in KEYWORDS.items():
        drafts = "all" if (known.since, known.until) == (4, 2020) else f"{known.since} to {known.until}"
        narrowed = ", ".join(f"`{one}`" for one in known.restrictions) or NARROWED.get(name, "")
        lines.append(f"| `{name}` | {known.kinds or 'any'} | {drafts} | {known.limit} | {narrowed} |")
    return "\n".join(lines)


def format_table() -> str:
    """Every format: where it is defined, what is left out of it."""
    lines = ["| format | by | left out |", "|---|---|---|"]
    for name, known in FORMATS.items():
        besides = f"of the complement {known.besides}" if known.besides else ""
        left = "; ".join(part for part in (known.narrowed, besides, "" if known.widest else "no complement") if part)
        where = " (OpenAPI documents only)" if known.openapi else ""
        where += f" (from draft {known.since} on)" if known.since > 4 else ""
        lines.append(f"| `{name}`{where} | {known.source} | {left} |")
    lines += [f"| `{name}` | OpenAPI: an integer of that size | |" for name in sorted(NUMBER_FORMATS)]
    lines += [f"| `{name}` | OpenAPI: any value of the type | |" for name in sorted(FREE_FORMATS)]
    return "\n".join(lines)
