"""Show bundles and vocabularies in a line, and in a notebook as a small page.

Leaves out   the whole page: `toolc inspect --html`.
Invariants   a line has at most some hundred characters, whatever the bundle; in HTML all that came from a spec or a
             tokenizer is escaped.
"""

from __future__ import annotations

import html
from typing import Any

MOST_ROWS = 24
_CUT = 60


def _short(text: Any, most: int = _CUT) -> str:
    shown = "".join(c if c.isprintable() else "·" for c in str(text))
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def vocab_line(vocab: Any) -> str:
    """A vocabulary in a line."""
    return f"<Vocab {_short(vocab.meta.get('source', vocab.name))}: {_counted(vocab.size, 'token')}>"


def bundle_line(bundle: Any) -> str:
    """A bundle in a line."""
    parts = [_counted(len(bundle.tools), "tool")] if bundle.tools else []
    if protocol := bundle.meta.get("protocol"):
        parts.append(f"protocol {_short(protocol, 30)}")
    parts.append(f"tokenizer {_short(bundle.vocab.meta.get('source', ''))} of {_counted(bundle.vocab.size, 'token')}")
    parts.append(_counted(int(bundle.tables.state_cell.size) - 1, "state"))
    name = bundle.name.strip("<>")
    return f"<Bundle {_short(name)}: {', '.join(parts)}>"


def bundle_html(bundle: Any) -> str:
    """A bundle as a table of facts, and one of its tools."""
    meta, spec = bundle.meta, bundle.meta.get("spec") or {}
    sizes = sum(array.nbytes for array in bundle.tables.arrays().values())
    entries = list(bundle.entry)
    more = f" and {len(entries) - MOST_ROWS} more" if len(entries) > MOST_ROWS else ""
    facts = [
        ("from", f"{spec.get('name', 'unknown')} ({spec.get('kind', 'unknown')})"),
        ("tokenizer", f"{bundle.vocab.meta.get('source')}, {bundle.vocab.size:,} tokens"),
        ("protocol", meta.get("protocol") or "none"),
        ("entries", ", ".join(entries[:MOST_ROWS]) + more),
        ("least budget", ", ".join(f"{name} {need or '–'}" for name, need in list(bundle.min_tokens.items())[:8])),
        ("tables", f"{sizes:,} bytes, {int(bundle.tables.state_cell.size) - 1:,} states"),
        ("restrictions", ", ".join(meta.get("restrictions") or []) or "none"),
    ]
    rows = "".join(f"<tr><th>{_escaped(key)}</th><td>{_escaped(value)}</td></tr>" for key, value in facts)
    out = f"<b>{_escaped(bundle.name)}</b><table>{rows}</table>"
    if not bundle.tools:
        return out
    shown = [
        (_escaped(tool.get("name", "")), _escaped(tool.get("description") or "")) for tool in bundle.tools[:MOST_ROWS]
    ]
    tools = "".join(f"<tr><td><code>{name}</code></td><td>{about}</td></tr>" for name, about in shown)
    left = len(bundle.tools) - MOST_ROWS
    rest = f"<tr><td colspan=2>and {left:,} more</td></tr>" if left > 0 else ""
    return f"{out}<table><tr><th>tool</th><th>description</th></tr>{tools}{rest}</table>"


def _escaped(value: Any) -> str:
    return html.escape(_short(value, 400))
