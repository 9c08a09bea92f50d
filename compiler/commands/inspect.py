"""``toolc inspect``: what a bundle holds.

Leaves out   checking it: opening a bundle does that.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from toolc.runtime.device.relocate import device_bytes
from toolc.runtime.format.bundle import Bundle

from ..paths import path_text
from .outputs import output_file
from .restrictions import explained
from .terminal import console, counted, facts, figures, left_out, listed, many_keys, print_json, size


def run(bundle: str, vocab: str | None, keywords: bool, html: str | None, as_json: bool) -> None:
    """Open, verify and describe."""
    opened = Bundle.open(bundle, vocab)
    if html is not None:
        _page(opened, bundle, output_file(html, (bundle, vocab)))
        if as_json:
            print_json({"ok": True, "output": html, "file_bytes": os.path.getsize(html)})
        return
    if keywords:
        _keywords(opened, as_json)
        return
    if as_json:
        print_json({"ok": True, **describe(opened, bundle)})
        return
    about = describe(opened, bundle)
    meta = opened.meta
    spec = meta.get("spec") or {}
    rows = [
        ("bundle", f"{bundle} ({size(about['file_bytes'])}), digest {about['digest']}"),
        ("compiled by", str(meta.get("compiler", "unknown"))),
        (
            "from",
            f"{spec.get('name', 'unknown')}: {spec.get('kind', 'unknown')}, digest {spec.get('digest', 'unknown')}",
        ),
        ("options", ", ".join(f"{key} {value}" for key, value in (meta.get("options") or {}).items())),
        ("tokenizer", f"{about['tokenizer']['source']}: {opened.vocab.size:,} tokens, digest {opened.vocab.digest}"),
        ("end of turn", listed(about["end_of_turn"])),
        ("protocol", str(meta.get("protocol") or "none")),
        ("entries", listed(list(opened.entry), 16)),
        *([("begins at", str(spec["begins"]))] if "begins" in spec else []),
        ("least budget", listed([f"{name} {need or 'none known'}" for name, need in opened.min_tokens.items()], 16)),
        (
            "delimiters",
            listed(
                [
                    f"{name} {'text' if t is None else f'token {t}'}"
                    for name, t in (meta.get("delimiters") or {}).items()
                ]
            ),
        ),
        ("figures", figures(about["counts"])),
        ("arrays", f"{size(about['bytes'])} in {len(about['arrays'])} arrays"),
        ("on a device", _device(about["device"])),
        ("restrictions", "\n".join(f"{name}: {explained(name)}" for name in meta.get("restrictions") or []) or "none"),
        ("keywords", listed([f"{key} {status} {count}" for key, status, count in meta.get("keywords") or []], 40)),
    ]
    if meta.get("many_keys"):
        rows.append(("key order", many_keys(list(meta["many_keys"]), 40)))
    if about["unwritable"]:
        rows.append(("never written", listed([f"{one['pointer']}: {one['why']}" for one in about["unwritable"]], 40)))
    if about["skipped"]:
        rows.append(("left out", listed(list(map(left_out, about["skipped"])), 40)))
    if meta.get("dropped"):
        rows.append(("dropped", listed(list(meta["dropped"]), 40)))
    out = console()
    out.print(facts(rows))
    if opened.tools:
        from rich.table import Table

        table = Table(title=counted(len(opened.tools), "tool"), title_justify="left", box=None, pad_edge=False)
        table.add_column("name", no_wrap=True)
        table.add_column("place", overflow="ellipsis", no_wrap=True)
        table.add_column("description", overflow="ellipsis", no_wrap=True)
        for tool in opened.tools:
            lines = str(tool.get("description", "")).strip().splitlines() or [""]
            table.add_row(str(tool.get("name", "")), str(tool.get("pointer", "")), lines[0])
        out.print(table)


def _page(opened: Bundle, bundle: str, target: Path) -> None:
    """Write the page for a browser."""
    from toolc.runtime.format.container import replace_file

    from .page import page

    replace_file(target, [page(opened, path_text(os.path.basename(bundle)), os.path.getsize(bundle)).encode()])


def _keywords(opened: Bundle, as_json: bool) -> None:
    """The keyword report: one row for every keyword at every place."""
    from toolc.runtime.format.keyword_report import unpack

    rows = unpack(opened.meta.get("report") or [[], []])
    if as_json:
        names = ("place", "keyword", "status", "restrictions")
        print_json({"ok": True, "keywords": [dict(zip(names, (*row[:3], list(row[3])))) for row in rows]})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("place", overflow="fold")
    for name in ("keyword", "status", "narrowed by"):
        table.add_column(name, no_wrap=name != "narrowed by", overflow="fold")
    for place, keyword, status, names_ in rows:
        table.add_row(place, keyword, status, ", ".join(names_))
    console().print(table)


def _device(memory: dict[str, int]) -> str:
    rows = f"{memory['rows']:,} rows, {size(memory['row_bytes'])}; other tables {size(memory['table_bytes'])}"
    return f"{size(memory['total_bytes'])}: {rows}; the vocabulary {size(memory['vocab_bytes'])}"


def describe(opened: Bundle, path: str) -> dict[str, Any]:
    """What ``--json`` prints."""
    arrays = opened.tables.arrays()
    spec = opened.meta.get("spec") or {}
    special = opened.tables.special_token[opened.tables.special_symbol == 256]
    return {
        "bundle": path,
        "digest": opened.digest,
        "file_bytes": os.path.getsize(path),
        "bytes": sum(array.nbytes for array in arrays.values()),
        "arrays": {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()},
        "device": device_bytes(opened),
        "tools": opened.tools,
        "tokenizer": {
            "source": opened.vocab.meta.get("source"),
            "size": opened.vocab.size,
            "digest": opened.vocab.digest,
        },
        "min_tokens": opened.min_tokens,
        "end_of_turn": [opened.vocab.shown(int(token)) for token in special],
        "counts": opened.meta.get("counts") or {},
        "meta": {key: value for key, value in opened.meta.items() if key not in ("counts", "spec", "report")},
        "spec": {key: value for key, value in spec.items() if key not in ("tools", "unwritable", "skipped")},
        "unwritable": spec.get("unwritable", []),
        "skipped": spec.get("skipped", []),
    }
