"""``toolc push``, ``pull``, ``list`` and ``prune``: bundles to and from stores; ``toolc key``: what they are called.

Leaves out   stores: see toolc.runtime.store.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from toolc.runtime.bundle import Bundle
from toolc.runtime.store.key import key_of
from toolc.runtime.store.signing import SigningKey, read_allowed
from toolc.runtime.store.store import BUNDLE, VOCAB, Stored, open_store

from .terminal import console, facts, listed, print_json, size


def push(store: str, bundles: tuple[str, ...], vocab: str | None, sign: str | None, as_json: bool) -> None:
    """Verify bundles and put them into a store."""
    signer = None if sign is None else SigningKey.read(sign)
    opened = open_store(store)
    rows: list[dict[str, Any]] = []
    for path in bundles:
        bundle = Bundle.open(path, vocab)
        key = key_of(bundle.meta, path)
        new = opened.put(bundle, signer)
        rows.append({"bundle": path, "key": key, "new": new})
        if not as_json:
            print(f"{key}  {path}{'' if new else '  (was there)'}")
    if as_json:
        print_json({"ok": True, "store": opened.place, "signed_by": signer.public if signer else None, "pushed": rows})


def pull(
    store: str, keys: tuple[str, ...], output: str, allow: tuple[str, ...], standalone: bool, as_json: bool
) -> None:
    """Fetch bundles, verify them, and write them into a folder with their vocabs."""
    opened, allowed = open_store(store), read_allowed(allow)
    folder = Path(output)
    rows: list[dict[str, Any]] = []
    for key in keys:
        bundle = opened.get(key, allowed)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{key}{BUNDLE}"
        if not standalone:
            beside = folder / f"{bundle.vocab.digest}{VOCAB}"
            if not beside.is_file():
                bundle.vocab.write(beside)
        bundle.write(path, standalone=standalone)
        rows.append({"key": key, "bundle": str(path), "digest": bundle.digest})
        if not as_json:
            print(path)
    if as_json:
        print_json({"ok": True, "store": opened.place, "pulled": rows})


def show(store: str, quick: bool, as_json: bool) -> None:
    """List the bundles of a store."""
    opened = open_store(store)
    rows = opened.list(details=not quick)
    if as_json:
        print_json({"ok": True, "store": opened.place, "bundles": [_plain(row) for row in rows]})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("key", no_wrap=True, min_width=32)
    for name in ("used", "size", "spec", "tokenizer", "signed by"):
        table.add_column(name, no_wrap=name != "spec", overflow="ellipsis")
    for row in rows:
        about = _plain(row)
        table.add_row(
            row.key,
            about["used"][:16],
            size(row.size),
            str(about["spec"] or ""),
            str(about["tokenizer"] or ""),
            listed([signer[:8] for signer in row.signers], 3) if row.signers else "",
        )
    out = console()
    out.print(table)
    out.print(f"{len(rows)} bundles, {size(sum(row.size for row in rows))} without vocabs")


def _plain(row: Stored) -> dict[str, Any]:
    spec = row.meta.get("spec") or {}
    return {
        "key": row.key,
        "bytes": row.size,
        "used": datetime.fromtimestamp(row.used, timezone.utc).isoformat(timespec="seconds"),
        "signers": list(row.signers),
        "spec": spec.get("name"),
        "tools": len(spec.get("tools") or []),
        "tokenizer": row.meta.get("vocab_source"),
        "protocol": row.meta.get("protocol"),
        "compiler": row.meta.get("compiler"),
    }


def prune(store: str, max_bytes: int | None, older_than: float | None, vocabs: bool, as_json: bool) -> None:
    """Remove bundles from a store, the least recently used first."""
    begin = time.perf_counter()
    opened = open_store(store)
    done = opened.prune(max_bytes, None if older_than is None else older_than * 86400.0, vocabs)
    about = {
        "store": opened.place,
        "bundles": list(done.bundles),
        "vocabs": list(done.vocabs),
        "bytes": done.bytes,
        "half_written": done.half_written,
        "seconds": round(time.perf_counter() - begin, 3),
    }
    if as_json:
        print_json({"ok": True, **about})
        return
    removed = f"{len(done.bundles)} bundles and {len(done.vocabs)} vocabs, {size(done.bytes)}"
    console().print(facts([("store", opened.place), ("removed", removed)]))


def key(spec: str, tokenizer: str | None, eos: tuple[str, ...], as_json: bool, **more: Any) -> None:
    """Print the key of what a spec compiles to, without compiling it."""
    from dataclasses import replace

    from ..key import source_key
    from ..lift.vocab import load_vocab
    from ..options import BUILTIN
    from .source import read_source, schema_options

    options = replace(schema_options(more), soft_depth=more["soft_depth"])
    source, _ = read_source(spec, more["max_spec_bytes"])
    vocab = load_vocab(BUILTIN if tokenizer is None else tokenizer, eos)
    found = source_key(source, vocab, options)
    if as_json:
        print_json({"ok": True, "key": found, "vocab_digest": vocab.digest})
    else:
        print(found)
