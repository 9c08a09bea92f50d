"""``toolc push``, ``pull``, ``list`` and ``prune``: bundles to and from stores; ``toolc key``: what they are called.

Leaves out   stores: see toolc.runtime.store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from toolc.runtime.errors import BundleError, StoreError
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.container import TEMPORARY
from toolc.runtime.store.key import check_key, key_of
from toolc.runtime.store.signing import SigningKey, read_allowed
from toolc.runtime.store.store import BUNDLE, VOCAB, Put, Store, Stored, is_vocab, open_store

from .terminal import console, counted, facts, listed, print_json, refuse_usage, size

BROAD = 10_000  # columns of what is no terminal: files and pipes get every table uncut
DONE = {Put.NEW: "", Put.KEPT: "  (was there)", Put.REPLACED: "  (replaced the one that was there)"}


def push(store: str, bundles: tuple[str, ...], vocab: str | None, sign: str | None, as_json: bool) -> None:
    """Verify bundles and put them into a store."""
    with given("--sign"):
        signer = None if sign is None else SigningKey.read(sign)
    opened = open_store(store)
    rows: list[dict[str, Any]] = []
    for path in bundles:
        bundle = Bundle.open(path, vocab)
        key = key_of(bundle.meta, path)
        done = opened.put(bundle, signer)
        rows.append({"bundle": path, "key": key, "new": done is Put.NEW, "replaced": done is Put.REPLACED})
        if not as_json:
            print(f"{key}  {path}{DONE[done]}")
    if as_json:
        print_json({"ok": True, "store": opened.place, "signed_by": signer.public if signer else None, "pushed": rows})


def pull(
    store: str, keys: tuple[str, ...], output: str, allow: tuple[str, ...], standalone: bool, as_json: bool
) -> None:
    """Fetch bundles, verify them, and write them into a folder with their vocabs; all of them, or nothing."""
    with given("KEY"):
        for key in keys:
            check_key(key)
    with given("--allow"):
        allowed = read_allowed(allow or None)
    opened = _existing(store)
    folder = Path(output)
    rows: list[dict[str, Any]] = []
    vocabs: set[str] = set()
    with _staged(folder) as staging:
        for key in dict.fromkeys(keys):
            bundle = opened.get(key, allowed)
            digest = bundle.vocab.digest
            if not standalone and digest not in vocabs:
                vocabs.add(digest)
                if not is_vocab(folder / f"{digest}{VOCAB}", digest):
                    bundle.vocab.write(staging / f"{digest}{VOCAB}")
            bundle.write(staging / f"{key}{BUNDLE}", standalone=standalone)
            rows.append({"key": key, "bundle": str(folder / f"{key}{BUNDLE}"), "digest": bundle.digest})
    if as_json:
        print_json({"ok": True, "store": opened.place, "pulled": rows})
        return
    for row in rows:
        print(row["bundle"])


@contextmanager
def given(option: str) -> Iterator[None]:
    """What is refused inside is wrong usage of this option or argument: no bundle was looked at."""
    try:
        yield
    except BundleError as error:
        wanted = error.expected and f"expected {error.expected}"
        said = (error.place, error.message, error.found and f"found {error.found}", wanted, error.hint)
        refuse_usage(f"{option}: " + "; ".join(one for one in said if one))


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """A neighbour whose files come into the folder in the end, vocabs first; on any error none does.

    So all are verified before the first is seen, and only one bundle at a time is in memory. The folder is made, and
    on an error taken away again if it was.
    """
    made: list[Path] = []
    try:
        with _writing(folder):
            made += [one for one in (folder, *folder.parents) if not one.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            staging = TemporaryDirectory(prefix=".pull.", suffix=TEMPORARY, dir=folder)
        with staging as name:
            yield Path(name)
            staged = sorted(Path(name).iterdir(), key=lambda path: (path.suffix != VOCAB, path.name))
            for target in (folder / path.name for path in staged):
                if target.is_dir():
                    raise BundleError(
                        "a folder has the name of this file", place=str(target), hint="name another with -o"
                    )
            for path in staged:
                with _writing(folder / path.name):
                    os.replace(path, folder / path.name)
    except BaseException:
        for one in made:
            with suppress(OSError):  # was not made, or another has put a file there
                one.rmdir()
        raise


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(
            "cannot write here",
            place=str(place),
            found=error.strerror or str(error),
            hint="name a folder with -o that can be written",
        ) from error


def _existing(store: str) -> Store:
    """A store that is there: a folder that is not is mistyped, as only push and compile make one."""
    opened = open_store(store)
    if not opened.files.exists():
        raise StoreError(
            "there is no store here",
            place=opened.place,
            expected="a folder",
            hint="check the name; `toolc push` and `toolc compile --store` make stores",
        )
    return opened


def show(store: str, quick: bool, as_json: bool) -> None:
    """List the bundles of a store."""
    opened = _existing(store)
    rows = opened.list(details=not quick)
    if as_json:
        print_json({"ok": True, "store": opened.place, "bundles": [_plain(row) for row in rows]})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name, least in (("key", 32), ("used (UTC)", 16), ("size", None)):
        table.add_column(name, no_wrap=True, min_width=least)
    for name in ("spec", "tokenizer", "signed by"):  # what gives way in a narrow terminal
        table.add_column(name, overflow="ellipsis")
    for row in rows:
        about = _plain(row)
        table.add_row(
            row.key,
            (about["used"] or "?")[:16],
            "?" if row.size is None else size(row.size),
            str(about["spec"] or ""),
            str(about["tokenizer"] or ""),
            listed([signer[:8] for signer in row.signers], 3) if row.signers else "",
        )
    out = console()
    if not out.is_terminal:
        out.width = BROAD
    out.print(table)
    sizes = [row.size for row in rows if row.size is not None]
    together = size(sum(sizes)) if len(sizes) == len(rows) else "?"
    out.print(f"{counted(len(rows), 'bundle')}, {together} without vocabs")


def _plain(row: Stored) -> dict[str, Any]:
    spec = row.meta.get("spec") or {}
    return {
        "key": row.key,
        "bytes": row.size,
        "used": _date(row.used),
        "signers": list(row.signers),
        "spec": spec.get("name"),
        "tools": len(spec.get("tools") or []),
        "tokenizer": row.meta.get("vocab_source"),
        "protocol": row.meta.get("protocol"),
        "compiler": row.meta.get("compiler"),
    }


def _date(used: float | None) -> str | None:
    return None if used is None else datetime.fromtimestamp(used, timezone.utc).isoformat(timespec="seconds")


def prune(store: str, max_bytes: int | None, older_than: float | None, vocabs: bool, as_json: bool) -> None:
    """Remove bundles from a store, the least recently used first."""
    begin = time.perf_counter()
    opened = _existing(store)
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
    what = f"{counted(len(done.bundles), 'bundle')} and {counted(len(done.vocabs), 'vocab')}"
    removed = f"{what}, {size(done.bytes)}"
    console().print(facts([("store", opened.place), ("removed", removed)]))


def key(
    spec: str, tokenizer: str | None, eos: tuple[str, ...], logits_width: int | None, as_json: bool, **more: Any
) -> None:
    """Print the key of what a spec compiles to, without compiling it."""
    from dataclasses import replace

    from ..key import source_key
    from ..lift.vocab import load_vocab
    from ..options import BUILTIN
    from ..protocol_choice import choice_for, with_choice
    from ..source import beside, grammar_name
    from .source import budget_of, read_source, schema_options

    options = replace(
        schema_options(more), soft_depth=more["soft_depth"], max_depth=more["max_depth"], budget=budget_of(more)
    )
    source, _ = read_source(spec, more["max_spec_bytes"], options, more["syntax"])
    vocab = load_vocab(BUILTIN if tokenizer is None else tokenizer, eos, logits_width)
    options = with_choice(options, choice_for(source, tokenizer, options))
    found = source_key(source, vocab, options, grammar_name(spec), beside(spec))
    if as_json:
        print_json({"ok": True, "key": found, "vocab_digest": vocab.digest})
    else:
        print(found)
