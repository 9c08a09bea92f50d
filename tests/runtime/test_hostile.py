"""Hostile and damaged files: each is refused for its own reason, before any kernel sees an index.

A row of `EDITS` changes arrays or meta of a good bundle and writes a file with right digests; a row of `DAMAGE` changes
the bytes of a good file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from toolc.runtime import Bundle, BundleError, Matcher
from toolc.runtime.format import container as c
from toolc.runtime.format.bundle import MAGIC, VERSION
from toolc.runtime.format.checks import _check_numbers, _check_shapes, plain_checks
from toolc.runtime.format.kernels.check import sound
from toolc.runtime.format.meta import check_meta_of
from toolc.runtime.format.tables import TABLES, Tables, counts_of
from toolc.runtime.format.vocab import MAGIC as VOCAB_MAGIC
from toolc.runtime.format.vocab import Vocab
from toolc.runtime.selection.trie_walk import Walker

from .handmade import bundle, tiny_vocab

Arrays = dict[str, np.ndarray]
BASE = "brackets"


def setter(name: str, index: Any, value: int) -> Callable[[Arrays, dict[str, Any]], None]:
    def change(arrays: Arrays, meta: dict[str, Any]) -> None:
        arrays[name][index] = value

    return change


def meta_setter(**values: Any) -> Callable[[Arrays, dict[str, Any]], None]:
    return lambda arrays, meta: meta.update(values)


def cut(name: str, keep: int = -1) -> Callable[[Arrays, dict[str, Any]], None]:
    def change(arrays: Arrays, meta: dict[str, Any]) -> None:
        arrays[name] = arrays[name][:keep].copy()

    return change


def recast(name: str, dtype: str) -> Callable[[Arrays, dict[str, Any]], None]:
    def change(arrays: Arrays, meta: dict[str, Any]) -> None:
        arrays[name] = arrays[name].astype(dtype)

    return change


def drop(name: str) -> Callable[[Arrays, dict[str, Any]], None]:
    return lambda arrays, meta: (arrays if name in arrays else meta).__delitem__(name)


def cyclic(arrays: Arrays, meta: dict[str, Any]) -> None:
    """Every record leads to the first profile."""
    arrays["chain_exit"][:] = 0


def longer(arrays: Arrays, meta: dict[str, Any]) -> None:
    meta["max_chain"] -= 1


def unowned(name: str) -> Callable[[Arrays, dict[str, Any]], None]:
    """Every entry of a comb belongs to nobody, and has a value."""

    def change(arrays: Arrays, meta: dict[str, Any]) -> None:
        arrays[name][:] = (-1, 0x7FFFFFF0)

    return change


def cells_of_nobody(arrays: Arrays, meta: dict[str, Any]) -> None:
    for name in ("close_bound", "close_token", "close_after"):
        arrays[name] = np.concatenate([arrays[name], arrays[name][-1:]])


def no_close(arrays: Arrays, meta: dict[str, Any]) -> None:
    """All states share a close cell, which has a bound."""
    for name in ("close_bound", "close_token", "close_after"):
        arrays[name] = arrays[name][:1].copy()
    arrays["state_close"][:] = arrays["close_break"][:] = 0
    arrays["close_bound"][0] = 7


def of_tool(**values: Any) -> Callable[[Arrays, dict[str, Any]], None]:
    return meta_setter(spec={"tools": [{"name": "a", **values}]})


def of_parts(*parts: list[str]) -> Callable[[Arrays, dict[str, Any]], None]:
    return meta_setter(arguments={"encoding": "elements", "parts": list(parts)})


def entry_of(kind: int) -> int:
    delta = bundle(BASE).tables.delta
    return int(np.flatnonzero((delta[:, 0] >= 0) & (delta[:, 1] & 7 == kind))[0])


def swap_tokens(arrays: Arrays, meta: dict[str, Any]) -> None:
    offset = arrays["list_offset"]
    row = int(np.flatnonzero(np.diff(offset) >= 2)[0])
    a = offset[row]
    arrays["list_tokens"][[a, a + 1]] = arrays["list_tokens"][[a + 1, a]]


EDITS: list[tuple[str, Callable[[Arrays, dict[str, Any]], None], tuple[str, ...]]] = [
    ("array-missing", drop("push"), ("#push", "no such array")),
    ("array-unknown", lambda a, m: a.update(extra=np.zeros(1, np.int32)), ("#extra", "none of that name")),
    ("array-dtype", recast("push", "uint32"), ("#push/dtype", "int32")),
    ("array-rank", lambda a, m: a.update(cell_row=a["cell_row"].reshape(-1)), ("#cell_row/shape",)),
    ("pair-width", lambda a, m: a.update(delta=a["delta"].reshape(-1, 1)), ("#delta/shape",)),
    (
        "break-width",
        lambda a, m: a.update(chain_break=np.zeros((a["chain_cell"].size, 9, 2), np.int32)),
        ("#chain_break/shape",),
    ),
    (
        "breaks-many",
        lambda a, m: a.update(breaks=np.zeros((a["breaks"].shape[0], 65, 2), np.int32)),
        ("#breaks/shape", "at most 64 breakpoints"),
    ),
    ("breaks-none", cut("breaks", 0), ("#state_break", "out of range")),
    ("breaks-first", setter("breaks", (0, 0, 0), 1), ("#breaks/0", "without breakpoints")),
    ("close-breaks-first", setter("close_breaks", (0, 0, 1), 1), ("#close_breaks/0", "without breakpoints")),
    ("break-list-past", setter("state_break", 3, 1 << 20), ("#state_break", "out of range")),
    ("break-list-negative", setter("chain_break", 0, -1), ("#chain_break", "out of range")),
    ("close-break-list-past", setter("close_break", 3, 1 << 20), ("#close_break", "out of range")),
    (
        "owed-break-list-past",
        setter("owed_break", 0, 1 << 20),
        ("#owed_break", "out of range"),
    ),
    (
        "no-states",
        lambda a, m: a.update({name: a[name][:1] for name in a if a[name].shape[0] == 13}),
        ("#state_cell/shape", "at least 2"),
    ),
    ("lengths-differ", cut("cell_delta"), ("#cell_delta/shape", "as cell_row")),
    ("symbols-few", cut("symbol_class", 256), ("#symbol_class/shape", "end of turn")),
    ("class-negative", setter("symbol_class", 65, -1), ("#symbol_class", "out of range")),
    ("class-huge", setter("symbol_class", 65, 1 << 30), ("#symbol_class", "out of range")),
    ("class-too-wide", setter("symbol_class", 65, 200), ("#cell_delta", "out of range")),
    ("special-past-vocab", setter("special_token", -1, 96), ("#special_token", "out of range")),
    ("special-unsorted", setter("special_token", 1, 0), ("#special_token", "unsorted")),
    ("special-symbol-byte", setter("special_symbol", 0, 255), ("#special_symbol", "out of range")),
    ("special-symbol-past", setter("special_symbol", 0, 258), ("#special_symbol", "out of range")),
    ("cell-past", setter("state_cell", 3, 10_000), ("#state_cell", "out of range")),
    ("cell-negative", setter("state_cell", 3, -1), ("#state_cell", "out of range")),
    ("phases-past", setter("breaks", (13, 0, 1), 1000), ("#state_cell", "phases reach past")),
    ("phases-overflow", setter("breaks", (13, 0, 1), (1 << 30) - 1), ("#state_cell", "phases reach past")),
    ("break-negative", setter("breaks", (3, 0, 0), -5), ("#breaks", "out of range")),
    ("break-huge", setter("breaks", (3, 0, 0), (1 << 31) - 1), ("#breaks", "out of range")),
    ("row-past", setter("cell_row", (4, 1), 10_000), ("#cell_row", "out of range")),
    ("row-negative", setter("cell_row", (4, 1), -1), ("#cell_row", "out of range")),
    ("exit-past", setter("cell_exit", (4, 0), 10_000), ("#cell_exit", "out of range")),
    ("comb-past", setter("cell_delta", 5, 1 << 20), ("#cell_delta", "out of range")),
    ("comb-negative", setter("cell_delta", 5, -1), ("#cell_delta", "out of range")),
    ("comb-cut", cut("delta", -1), ("#cell_delta", "out of range")),
    ("default-past", setter("cell_default", 5, 1 << 20), ("#cell_default", "out of range")),
    ("default-negative", setter("cell_default", 5, -1), ("#cell_default", "out of range")),
    ("mark-past", setter("state_mark", 3, 1), ("#state_mark", "out of range")),
    ("mark-negative", setter("state_mark", 3, -1), ("#state_mark", "out of range")),
    ("mark-of-symbol-past", setter("symbol_mark", 0, 1), ("#symbol_mark", "out of range")),
    ("marks-few", cut("state_mark"), ("#state_mark/shape", "as state_cell")),
    ("mark-kind", setter("mark", (0, 0), 8), ("#mark/kind", "out of range")),
    ("mark-age", setter("mark", (0, 1), 1 << 20), ("#mark/age", "out of range")),
    ("mark-tools", setter("mark", (0, 2), 0), ("#mark/tools", "out of range")),
    ("mark-ended", setter("mark", (0, 3), 2), ("#mark/ended", "out of range")),
    ("tool-offsets-none", cut("tool_offset", 0), ("#tool_offset/shape",)),
    (
        "tool-past",
        lambda a, m: a.update(tool_offset=np.array([0, 1], np.int32), tool_members=np.array([0], np.int32)),
        ("#tool_members", "out of range"),
    ),
    ("narrowing-past", lambda a, m: a.update(narrowing=np.array([1000], np.int32)), ("#narrowing", "out of range")),
    ("narrowing-twice", lambda a, m: a.update(narrowing=np.array([3, 3], np.int32)), ("#narrowing", "unsorted")),
    ("op-kind", setter("delta", (0, 1), 6), ("#delta/op", "kinds 0 to 5")),
    ("op-negative", setter("delta", (0, 1), -8), ("#delta/op", "kinds 0 to 5")),
    ("op-state", setter("delta", (0, 1), 13 << 3), ("#delta/state", "out of range")),
    ("op-dead-action", setter("delta", (0, 1), 1), ("#delta/op", "dead state")),
    ("op-push", setter("delta", (0, 1), 99 << 3 | 4), ("#delta/push", "out of range")),
    ("op-pop", setter("delta", (0, 1), 99 << 3 | 5), ("#return", "past the comb")),
    ("push-symbol", setter("push", (0, 0), 2), ("#push/stack symbol", "out of range")),
    ("push-state", setter("push", (0, 1), 13), ("#push/state", "out of range")),
    ("push-shallow", setter("push", (0, 2), -1), ("#push/state", "out of range")),
    ("push-action", setter("push", (0, 3), 4), ("#push/action", "out of range")),
    ("return-offset", setter("return_offset", 0, -1), ("#return_offset", "out of range")),
    ("return-past", setter("return_offset", 1, 2), ("#return", "past the comb")),
    ("return-far", setter("return_offset", 1, 1 << 20), ("#return_offset", "out of range")),
    ("return-state", setter("return", (0, 1), 13 * 4), ("#return/value", "out of range")),
    ("return-negative", setter("return", (0, 1), -1), ("#return/value", "out of range")),
    ("chain-offset", setter("chain_offset", 0, 1 << 20), ("#chain_offset", "out of range")),
    ("chain-number", setter("chain", (0, 1), 1 << 20), ("#chain/number", "out of range")),
    ("chain-cell", setter("chain_cell", -1, 1 << 20), ("#chain_cell", "out of range")),
    ("chain-phases", setter("breaks", (-1, 0, 1), 1 << 20), ("#chain_cell", "phases reach past")),
    ("chain-row", setter("chain_row", 0, 1 << 20), ("#chain_row", "out of range")),
    ("chain-exit", setter("chain_exit", 0, 1 << 20), ("#chain_exit", "out of range")),
    ("chain-cyclic", cyclic, ("#chain_exit", "cycle")),
    ("chain-longer", longer, ("#chain_exit", "meta/max_chain")),
    ("slice-past", setter("row_slice", 1, 2), ("#row_slice", "out of range")),
    ("slice-negative", setter("row_slice", 1, -2), ("#row_slice", "out of range")),
    ("dense-past", setter("row_dense", 1, 1 << 20), ("#row_dense", "out of range")),
    ("list-past", setter("row_list", 0, 1 << 20), ("#row_list", "out of range")),
    ("close-cell-past", setter("state_close", 3, 10_000), ("#state_close", "out of range")),
    ("close-token-past", setter("close_token", (2, 0), 96), ("#close_token", "out of range")),
    ("close-bound-negative", setter("close_bound", 2, -1), ("#close_bound", "out of range")),
    ("close-cells-differ", cut("close_after"), ("#close_after/shape", "as close_bound")),
    ("owed-past", setter("owed_first", 0, 10_000), ("#owed_first", "out of range")),
    ("chain-after-huge", setter("chain_after", 0, 1 << 30), ("#chain_after", "out of range")),
    ("forced-list-past", setter("state_forced", 3, 1), ("#state_forced", "out of range")),
    ("forced-offsets", setter("forced_offset", 1, 5), ("#forced_offset",)),
    ("token-past", setter("list_tokens", 0, 96), ("#list_tokens", "out of range")),
    ("token-negative", setter("list_tokens", 0, -1), ("#list_tokens", "out of range")),
    ("tokens-unsorted", swap_tokens, ("#list_tokens", "unsorted")),
    ("offsets-fall", setter("list_offset", 1, 1 << 20), ("#list_offset", "never fall")),
    ("offsets-start", setter("list_offset", 0, 1), ("#list_offset", "0 first")),
    (
        "offsets-end",
        lambda a, m: a.update(list_tokens=np.append(a["list_tokens"], np.int32(5))),
        ("#list_offset", "last"),
    ),
    ("offsets-short", cut("list_offset"), ("#list_base/shape", "as list_offset")),
    ("base-past", setter("list_base", 0, 1 << 20), ("#list_base", "out of range")),
    ("base-negative", setter("list_base", 0, -2), ("#list_base", "out of range")),
    ("base-of-itself", setter("list_base", 0, 0), ("#list_base", "a base that has a base")),
    ("bases-short", cut("list_base"), ("#list_base/shape", "as list_offset")),
    (
        "dense-width",
        lambda a, m: a.update(dense=np.zeros((a["dense"].shape[0], 2), np.uint32)),
        ("#dense/shape", "3 words"),
    ),
    ("meta-modes", meta_setter(modes=1), ("#cell_row/shape", "meta/modes")),
    ("meta-symbols", meta_setter(stack_symbols=3), ("#return_offset/shape", "meta/stack_symbols")),
    ("meta-soft-depth", meta_setter(soft_depth=-1), ("#meta/soft_depth",)),
    ("meta-capacity", meta_setter(capacity=1 << 40), ("#meta/capacity",)),
    ("meta-capacity-type", meta_setter(capacity="8"), ("#meta/capacity", "str", "int")),
    ("meta-capacity-bool", meta_setter(capacity=True), ("#meta/capacity", "bool")),
    ("meta-missing", drop("max_chain"), ("#meta/max_chain", "nothing")),
    ("entry-none", meta_setter(entry={}), ("#meta/entry", "at least one")),
    ("entry-past", meta_setter(entry={"start": 13}), ("#meta/entry/start", "13")),
    ("entry-dead", meta_setter(entry={"start": 0}), ("#meta/entry/start", "2 to 12")),
    ("entry-type", meta_setter(entry={"start": "2"}), ("#meta/entry/start",)),
    ("cells-shared", setter("state_cell", 3, 0), ("#state_cell/3", "one after the other")),
    ("close-cells-shared", setter("state_close", 3, 0), ("#state_close/3", "one after the other")),
    ("chain-cells-shared", setter("chain_cell", 1, 0), ("#chain_cell/1", "one after the other")),
    ("owed-cells-shared", setter("owed_first", 1, 0), ("#owed_first/1", "one after the other")),
    ("cells-of-nobody", cells_of_nobody, ("#state_close", "68 cells", "expected 69", "cells of nobody")),
    ("close-phases-twice", setter("close_breaks", (1, 0, 0), 0), ("#close_breaks/1", "one after the other")),
    ("op-unowned", setter("delta", (entry_of(0), 0), -1), ("#delta/", "an entry of nobody")),
    ("op-owner-after", setter("delta", (0, 0), 1), ("#delta/0", "an entry of nobody")),
    ("op-owner-far", setter("delta", (-1, 0), 0), ("#delta/", "an entry of nobody")),
    ("op-owner-huge", setter("delta", (5, 0), (1 << 31) - 1), ("#delta/owner", "out of range")),
    ("return-unowned", unowned("return"), ("#return/0", "an entry of nobody")),
    ("return-owner-after", setter("return", (0, 0), 1), ("#return/0", "an entry of nobody")),
    ("chain-unowned", unowned("chain"), ("#chain/0", "an entry of nobody")),
    ("chain-owner-far", setter("chain", (-1, 0), 0), ("#chain/", "an entry of nobody")),
    ("no-close-but-a-bound", no_close, ("#close_bound", "out of range")),
    ("meta-unknown", meta_setter(bomb=[]), ("#meta/bomb", "none of that name")),
    ("meta-ends-number", meta_setter(ends=7), ("#meta/ends", "int", "list")),
    ("meta-ends-text", meta_setter(ends="abc"), ("#meta/ends", "str", "list")),
    ("meta-ends-flat", meta_setter(ends=[5]), ("#meta/ends", "a state, and tools")),
    ("meta-ends-nested", meta_setter(ends=[[[1], [0]]]), ("#meta/ends", "a state, and tools")),
    ("meta-ends-tool", meta_setter(ends=[[2, [0]]]), ("#meta/ends", "a state, and tools")),
    ("meta-ends-state", meta_setter(ends=[[13, []]]), ("#meta/ends", "a state, and tools")),
    ("meta-separable", meta_setter(separable=1), ("#meta/separable", "int", "bool")),
    ("meta-subset", meta_setter(subset=[7]), ("#meta/subset", "texts")),
    ("meta-spec", meta_setter(spec=[]), ("#meta/spec", "list", "dict")),
    ("meta-tools", meta_setter(spec={"tools": {}}), ("#meta/spec/tools", "dict", "list")),
    ("meta-unwritable", meta_setter(spec={"unwritable": 3}), ("#meta/spec/unwritable", "3", "places, keywords")),
    (
        "meta-unwritable-row",
        meta_setter(spec={"unwritable": [{"pointer": "#", "keywords": [1], "why": ""}]}),
        ("#meta/spec/unwritable", "places, keywords"),
    ),
    ("meta-tool", meta_setter(spec={"tools": ["a"]}), ("#meta/spec/tools/0", "str", "dict")),
    ("meta-tool-name", meta_setter(spec={"tools": [{}]}), ("#meta/spec/tools/0/name", "NoneType", "str")),
    ("meta-tool-parameters", of_tool(parameters=[["a"]]), ("#meta/spec/tools/0/parameters", "with their types")),
    ("meta-tool-request", of_tool(request=["GET", "/", [["a"]]]), ("#meta/spec/tools/0/request", "a method")),
    ("meta-tool-elements", of_tool(elements=[[None, {}, [], 1, ""]]), ("#meta/spec/tools/0/elements", "nodes")),
    *(
        (f"meta-tool-unions-{n}", of_tool(unions=unions), ("#meta/spec/tools/0/unions", "nodes"))
        for n, unions in enumerate(
            (
                [],
                [1],
                [{"x": 1}],
                [{"tag": ["a"]}],
                [{"tag": ["a", [["b", "B", 1]]]}],
                [{"tag": ["a", [["b", 1, 0]]]}],
                [{"also": [-1]}],
                [{"also": 0}],
                [{"members": {"a": 1}}],
                [{"members": []}],
                [{"rest": True}],
                [{"items": 1}],
            )
        )
    ),
    ("meta-arguments", meta_setter(arguments={"encoding": 1}), ("#meta/arguments/encoding", "int")),
    ("meta-constants", meta_setter(arguments={"encoding": "json", "constants": [1]}), ("#meta/arguments/constants",)),
    ("meta-quote", meta_setter(arguments={"encoding": "bare", "quote": [""]}), ("#meta/arguments/quote", "around")),
    ("meta-indent", meta_setter(arguments={"encoding": "json", "indent": "2"}), ("#meta/arguments/indent", "blanks")),
    ("meta-far", meta_setter(arguments={"encoding": "json", "indent": 1 << 33}), ("#meta/arguments/indent", "1 to 64")),
    ("meta-parts", of_parts(["item", "", "", "", "", ""]), ("#meta/arguments/parts", "six texts")),
    ("meta-parts-few", of_parts(["item", "text", "<", "", "", ""]), ("#meta/arguments/parts", "every kind of")),
    ("meta-delimiters", meta_setter(delimiters={"<x>": "1"}), ("#meta/delimiters", "ids of tokens")),
    ("vocab-size", meta_setter(vocab_size=95), ("#meta/vocab_size", "95")),
    ("vocab-digest", meta_setter(vocab_digest="0" * 32), ("#meta/vocab_digest", "another tokenizer", "0" * 32)),
    ("vocab-digest-path", meta_setter(vocab_digest="../../../etc/passwd"), ("#meta/vocab_digest", "hexadecimal")),
]


def copies() -> tuple[Arrays, dict[str, Any]]:
    made = bundle(BASE)
    return {k: a.copy() for k, a in made.tables.arrays().items()}, dict(made.meta)


@pytest.mark.parametrize(("change", "fragments"), [pytest.param(f, p, id=i) for i, f, p in EDITS])
def test_edited_tables(
    change: Callable[[Arrays, dict[str, Any]], None], fragments: tuple[str, ...], tmp_path: Path
) -> None:
    arrays, meta = copies()
    change(arrays, meta)
    path = tmp_path / "bad.toolc"
    c.Contents(MAGIC, VERSION, meta, arrays).write(path)
    with pytest.raises(BundleError) as caught:
        Bundle.open(path, vocab=tiny_vocab())
    assert caught.value.hint
    for fragment in ("bad.toolc", *fragments):
        assert fragment in str(caught.value)


def _counts(tables: Tables, vocab: Vocab) -> dict[str, int]:
    return counts_of(tables, vocab.size, vocab.slice_token_offset.size - 1, 0)


@pytest.mark.parametrize("kind", [BASE, "counted", "words", *(f"scrambled-{n}" for n in range(12))])
def test_one_pass_is_content_with_good_tables(kind: str) -> None:
    """What it lets pass of the edits above, the plain passes do, too: of the tables they were made for, none."""
    made = bundle(kind)
    assert sound(made.tables, made.meta, _counts(made.tables, made.vocab))
    passed = 0
    for name, change, _ in EDITS:
        if name.startswith(("array-unknown", "entry", "vocab")):
            continue  # not about tables
        arrays = {k: a.copy() for k, a in made.tables.arrays().items()}
        try:
            change(arrays, meta := dict(made.meta))
            tables = Tables.from_arrays(arrays)
            _check_shapes("", tables)
            _check_numbers("", tables, meta)
            check_meta_of("", meta, tables.states)
        except (BundleError, IndexError, KeyError, ValueError):
            continue  # not for these tables, or refused before
        if sound(tables, meta, _counts(tables, made.vocab)):
            passed += 1
            plain_checks("", tables, meta, _counts(tables, made.vocab))
    assert kind != BASE or passed == 0


def test_walks_ask_whose_a_return_is() -> None:
    """Where a frame has no way back, a walk of the vocabulary ends as reading a token does."""
    made = bundle(BASE)
    found = []
    for change in (False, True):
        return_ = made.tables.return_.copy()
        if change:
            return_[made.tables.return_offset[0]] = (-1, 0)
        less = Bundle(made.tables.but(return_=return_), made.meta, made.vocab)
        jobs = np.array([[less.entry["start"], 0, 0]], np.int32)
        tokens, _, _ = next(Walker(less.tables, less.vocab, less.tables.delta).states(jobs))
        read = [token for token in range(less.vocab.size) if Matcher(less).try_advance(token)]
        assert tokens.tolist() == read
        found.append(read)
    assert len(found[1]) < len(found[0])


def test_dense_bits_past_the_vocabulary(tmp_path: Path) -> None:
    made = bundle(BASE, 65)
    arrays = {k: a.copy() for k, a in made.tables.arrays().items()}
    assert arrays["dense"].shape[0]
    arrays["dense"][0, -1] |= 2
    c.Contents(MAGIC, VERSION, made.meta, arrays).write(tmp_path / "bad.toolc")
    with pytest.raises(BundleError, match="a bit past the vocabulary"):
        Bundle.open(tmp_path / "bad.toolc", vocab=made.vocab)


# ---------------------------------------------------------------- bytes

Entries = list[dict[str, Any]]


def reheaded(data: bytes, change: Callable[[Any], Any]) -> bytes:
    """A file whose header was changed and whose header digest is right."""
    length = c.PREFIX.unpack(data[:SIZE])[2]
    value = msgpack.unpackb(data[SIZE : SIZE + length])
    start = -(-(SIZE + length) // 64) * 64
    value = change(value) or value
    header = value if isinstance(value, bytes) else msgpack.packb(value)
    file = prefixed(data, length=len(header), digest=c.blake(data[:12], header))[:SIZE] + header
    return file + bytes(-len(file) % 64) + data[start:]


SIZE = c.PREFIX.size
PREFIX = ("magic", "version", "length", "stored", "checksum", "digest")
ARRAYS = ("names", "kinds", "sizes", "digests")
PACKED = ("size", "digest", "forms")


def prefixed(data: bytes, **values: Any) -> bytes:
    """A file with other numbers before its header."""
    found = dict(zip(PREFIX, c.PREFIX.unpack(data[:SIZE]), strict=True)) | values
    return c.PREFIX.pack(*found.values()) + data[SIZE:]


def prefix(**values: Any) -> Callable[[bytes], bytes]:
    return lambda data: prefixed(data, **values)


def changed(item: list[Any], fields: tuple[str, ...], values: dict[str, Any]) -> None:
    for key, value in values.items():
        item[fields.index(key)] = value


def listed(**values: Any) -> Callable[[bytes], bytes]:
    """Other names, kinds, sizes or digests of all arrays."""
    return lambda data: reheaded(data, lambda v: changed(v["arrays"], ARRAYS, values))


def entry(index: int, **values: Any) -> Callable[[bytes], bytes]:
    """Another name, kind or digest of one array, or another size of the first."""

    def change(v: Any) -> None:
        for key, value in values.items():
            column = v["arrays"][ARRAYS.index(key + "s")]
            if key == "kind":
                v["arrays"][1] = column[:index] + bytes([value]) + column[index + 1 :]
            else:
                column[index] = value

    return lambda data: reheaded(data, change)


def packed(**values: Any) -> Callable[[bytes], bytes]:
    return lambda data: reheaded(data, lambda v: changed(v["packed"], PACKED, values))


def unpacked(data: bytes) -> int:
    size: int = msgpack.unpackb(data[SIZE : SIZE + c.PREFIX.unpack(data[:SIZE])[2]])["packed"][0]
    return size


def bomb(count: int, item: bytes) -> Callable[[bytes], bytes]:
    """One more field of the meta: a list of so many items, each in bytes of msgpack."""

    def change(value: Any) -> bytes:
        value["meta"]["bomb"] = None
        text: bytes = msgpack.packb(value)
        mark = msgpack.packb("bomb") + b"\xc0"
        return text.replace(mark, mark[:-1] + b"\xdd" + struct.pack(">I", count) + item, 1)

    return lambda data: reheaded(data, change)


def form(column: int, kind: int, marked: int = 0) -> Callable[[bytes], bytes]:
    """Another form of one column."""

    def change(v: Any) -> None:
        forms = v["packed"][2]
        v["packed"][2] = forms[: 12 * column] + struct.pack("<III", kind, 0, marked) + forms[12 * column + 12 :]

    return lambda data: reheaded(data, change)


def deep(depth: int) -> bytes:
    return b"\x82\xa6arrays\x90\xa4meta\x81\xa1x" + b"\x91" * depth + b"\xc0"


def at(position: int, value: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data[:position] + value + data[position + len(value) :]


def edited_last(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def dirty_padding(data: bytes) -> bytes:
    length = c.PREFIX.unpack(data[:SIZE])[2]
    end = SIZE + length
    assert end % 64
    return data[:end] + b"\x01" + data[end + 1 :]


def grown(arrays: Arrays, meta: dict[str, Any]) -> None:
    """A mapped array, so that there is a gap before it."""
    arrays["forced_tokens"] = np.zeros(c.MAX_PACKED // 4 + 1, np.int32)
    arrays["forced_offset"][-1] = c.MAX_PACKED // 4 + 1


def resized(number: int, size: int) -> Callable[[bytes], bytes]:
    """Another size of an array of one dimension."""

    def change(v: Any) -> None:
        v["arrays"][2][sum(kind // c.DIMENSIONS for kind in v["arrays"][1][:number])] = size

    return lambda data: reheaded(data, change)


def dirty_gap(data: bytes) -> bytes:
    end = len(data) - c.MAX_PACKED - 4
    assert data[end - 1] == 0
    return data[: end - 1] + b"\x01" + data[end:]


DAMAGE: list[tuple[str, Callable[[bytes], bytes], tuple[str, ...]]] = [
    ("empty", lambda d: b"", ("#size", "0 bytes")),
    ("text", lambda d: b"hello", ("#magic", "begins with TOOLCBND")),
    (
        "json",
        lambda d: b'{"type": "object", "properties": {}}' + bytes(100),
        ("#magic", "begins with TOOLCBND", "toolc compile"),
    ),
    ("a-vocab", lambda d: VOCAB_MAGIC + d[8:], ("#magic", "a vocab of toolc")),
    ("prefix-only", lambda d: d[:20], ("#size", "cut off")),
    (
        "newer",
        at(8, struct.pack("<I", VERSION + 1)),
        ("#version", f"found {VERSION + 1}", f"expected {VERSION}", "newer toolc", "upgrade"),
    ),
    ("older", at(8, struct.pack("<I", 0)), ("#version", "older toolc", "compile again")),
    ("header-huge", at(12, struct.pack("<I", 0xFFFFFFFF)), ("#header length", "4294967295", "at most")),
    ("header-longer", at(12, struct.pack("<I", 10**9)), ("#header length",)),
    ("header-shorter", at(12, struct.pack("<I", 10)), ("#header digest",)),
    ("header-edited", at(60, b"\xff"), ("#header digest", "damaged")),
    ("header-cut", lambda d: d[:200], ("#header length", "cut off")),
    ("cut", lambda d: d[:-1], ("#size", "cut off")),
    ("cut-half", lambda d: d[: len(d) // 2 // 64 * 64], ("cut off",)),
    ("appended", lambda d: d + b"\0", ("#size", "appended")),
    ("appended-block", lambda d: d + bytes(64), ("#size", "appended")),
    ("byte-edited", edited_last, ("#packed/checksum", "damaged")),
    ("padding", dirty_padding, ("#packed/padding", "zeros")),
    ("header-not-msgpack", lambda d: reheaded(d, lambda v: b"\xc1\xc1"), ("#header",)),
    ("header-trailing", lambda d: reheaded(d, lambda v: msgpack.packb(v) + b"\xc0"), ("#header", "ExtraData")),
    ("header-deep", lambda d: reheaded(d, lambda v: deep(100_000)), ("#header",)),
    ("header-list", lambda d: reheaded(d, lambda v: [1]), ("#header", "list")),
    ("header-more", lambda d: reheaded(d, lambda v: {**v, "code": 1}), ("#header", "code")),
    ("meta-list", lambda d: reheaded(d, lambda v: {**v, "meta": []}), ("#meta", "list", "dict")),
    (
        "meta-extension",
        lambda d: reheaded(d, lambda v: v["meta"].update(x=msgpack.ExtType(5, b"x"))),
        ("#meta/x", "ExtType"),
    ),
    ("meta-many-lists", bomb(1_000_000, 1_000_000 * b"\x90"), ("#header", "maps and lists, or")),
    ("meta-many-maps", bomb(500_000, 500_000 * b"\x81\xa0\xc0"), ("#meta/bomb", "none of that name")),
    ("meta-many-texts", bomb(5_000_000, 5_000_000 * b"\xa2ab"), ("#header", "exceeds max_array_len")),
    ("meta-long-list", bomb(1 << 31, b"\x90"), ("#header", "OutOfData")),
    ("arrays-map", lambda d: reheaded(d, lambda v: {**v, "arrays": {}}), ("#arrays", "names, kinds")),
    ("arrays-short", lambda d: reheaded(d, lambda v: v["arrays"].pop() and None), ("#arrays", "digests")),
    ("names-map", listed(names={}), ("#arrays/names", "dict", "list")),
    ("kinds-list", listed(kinds=[9] * 45), ("#arrays/kinds", "list", "bytes")),
    ("kinds-few", listed(kinds=b"1"), ("#arrays", "1 kinds", f"{len(TABLES)} of each")),
    ("digests-few", listed(digests=[None] * 44), ("#arrays", "44 digests", f"{len(TABLES)} of each")),
    ("sizes-few", listed(sizes=[3, 4]), ("#arrays/sizes", "for these kinds")),
    ("kind-none", entry(0, kind=11), ("#symbol_class/kind", "found 11", "uint8, int32, uint32")),
    ("kind-dimensions", entry(0, kind=41), ("#symbol_class/kind", "4 dimensions")),
    ("kind-larger", entry(0, kind=17), ("#arrays/sizes", "for these kinds")),
    ("kind-other", entry(0, kind=10), ("#symbol_class/dtype", "uint32", "int32")),
    ("name-twice", entry(1, name="symbol_class"), ("#arrays/1/name", "not used before")),
    ("name-long", entry(1, name="x" * 100), ("#arrays/1/name",)),
    ("name-empty", entry(1, name=""), ("#arrays/1/name",)),
    ("name-not-ascii", entry(1, name="\xe4"), ("#arrays/1/name", "ASCII")),
    ("name-number", entry(1, name=7), ("#arrays/1/name", "found 7")),
    ("name-list", entry(1, name=["x"]), ("#arrays/1/name",)),
    ("size-negative", entry(0, size=-1), ("#arrays/sizes", "found -1")),
    ("size-huge", entry(0, size=1 << 63), ("#arrays/sizes",)),
    ("size-bool", entry(0, size=True), ("#arrays/sizes", "found True")),
    ("size-float", entry(0, size=1.0), ("#arrays/sizes", "found 1.0")),
    ("size-text", entry(0, size="1"), ("#arrays/sizes",)),
    ("shape-too-large", entry(0, size=1 << 29), ("#symbol_class/shape", "of a packed array")),
    ("shape-product", listed(kinds=b"\x21", names=["x"], sizes=[1 << 20] * 4, digests=[None]), ("#x/shape", "bytes")),
    ("shape-mapped", listed(kinds=b"\x11", names=["x"], sizes=[1 << 31] * 2, digests=[b""]), ("#x/shape", "bytes")),
    ("digest-short", entry(0, digest=b"1"), ("#symbol_class/digest",)),
    ("digest-text", entry(0, digest="1" * 16), ("#symbol_class/digest",)),
    ("digest-of-packed", entry(0, digest=bytes(16)), ("#size", "cut off")),
    ("arrays-many", listed(names=["x"] * 300), ("#arrays", "at most 256")),
    (
        "unpacked-much",
        listed(names=[*"abcdef"], kinds=bytes([9]) * 6, sizes=[1 << 26] * 6, digests=[None] * 6),
        ("#packed", "of packed arrays"),
    ),
    ("packed-map", lambda d: reheaded(d, lambda v: {**v, "packed": {}}), ("#packed", "forms")),
    ("packed-short", lambda d: reheaded(d, lambda v: v["packed"].pop() and None), ("#packed", "forms")),
    ("stored-more", prefix(stored=1 << 20), ("#size", "cut off")),
    ("stored-less", prefix(stored=7), ("#size", "appended")),
    ("checksum", prefix(checksum=7), ("#packed/checksum", "00000007", "damaged")),
    ("packed-size-more", packed(size=1 << 20), ("#packed/size", "1048576", "for the arrays that it holds")),
    ("packed-size-one-more", lambda d: packed(size=unpacked(d) + 1)(d), ("#packed/stream", "another size")),
    ("packed-size-bool", packed(size=True), ("#packed/size",)),
    ("packed-digest-short", packed(digest=b"1"), ("#packed/digest",)),
    ("packed-digest-wrong", packed(digest=bytes(16)), ("#packed/digest", "damaged")),
    ("forms-none", packed(forms=b""), ("#packed/forms",)),
    ("forms-odd", packed(forms=bytes(16)), ("#packed/forms", "three numbers")),
    ("forms-list", packed(forms=[1, 2]), ("#packed/forms", "list", "bytes")),
    ("form-width", form(0, 5), ("#packed/forms",)),
    ("form-wider", form(0, 2), ("#packed/forms",)),
    ("form-other-bits", form(0, 1 | 64), ("#packed/forms",)),
    ("form-marked-wide", form(0, 4 | 16), ("#packed/forms",)),
    ("form-marked-more", form(0, 1 | 16, 1 << 31), ("#packed/forms",)),
    ("form-comb-of-one-column", form(0, 32), ("#packed/forms",)),
]


@pytest.mark.parametrize(("change", "fragments"), [pytest.param(f, p, id=i) for i, f, p in DAMAGE])
def test_damaged_bytes(change: Callable[[bytes], bytes], fragments: tuple[str, ...], tmp_path: Path) -> None:
    arrays, meta = copies()
    path = tmp_path / "bad.toolc"
    c.Contents(MAGIC, VERSION, meta, arrays).write(path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BundleError) as caught:
        Bundle.open(path, vocab=tiny_vocab())
    for fragment in ("bad.toolc", *fragments):
        assert fragment in str(caught.value)


def test_mapped_arrays(tmp_path: Path) -> None:
    arrays, meta = copies()
    grown(arrays, meta)
    path = tmp_path / "bad.toolc"
    c.Contents(MAGIC, VERSION, meta, arrays).write(path)
    assert not Bundle.open(path, vocab=tiny_vocab()).tables.forced_tokens.flags.owndata
    good = path.read_bytes()
    number = list(arrays).index("forced_tokens")
    for change, message in (
        (dirty_gap, "#forced_tokens/padding"),
        (edited_last, "#forced_tokens/digest"),
        (lambda d: d[:-1], "cut off"),
        (lambda d: d + bytes(64), "appended"),
        (entry(number, digest=bytes(16)), "#forced_tokens/digest"),
        (resized(number, 1 << 20), "cut off"),
        (resized(number, 1 << 18), "appended"),
    ):
        path.write_bytes(change(good))
        with pytest.raises(BundleError, match=message):
            Bundle.open(path, vocab=tiny_vocab())


def test_streams(tmp_path: Path) -> None:
    """A stream must be whole, of the right size, and of the content that the header promises."""
    good = np.arange(500, dtype=np.int32) % 251
    data = c.Contents(MAGIC, 1, {}, {"x": good}).encode()
    start = -(-(SIZE + c.PREFIX.unpack(data[:SIZE])[2]) // 64) * 64
    stream, raw = data[start:], good.astype(np.uint8).tobytes()
    assert len(stream) < good.nbytes and (c.open_container(data, MAGIC, 1).arrays["x"] == good).all()

    def stored(stream: bytes) -> bytes:
        return prefixed(data, stored=len(stream), checksum=zlib.crc32(stream))[:start] + stream

    def deflated(data: bytes) -> bytes:
        return zlib.compress(data, wbits=-15)

    assert stored(stream) == data
    for bad, message in (
        (stream[:-1], "another size"),
        (stream + b"\0", "another size"),
        (deflated(raw + b"\0"), "another size"),
        (deflated(raw[:-1]), "another size"),
        (deflated(bytes(1 << 26)), "another size"),
        (b"", "another size"),
        (b"\xff" * 20, "no stream of deflate"),
        (stream[:50] + b"\xff" + stream[51:], "packed/stream|packed/digest"),
        (deflated(raw[1:] + raw[:1]), "packed/digest"),
    ):
        with pytest.raises(BundleError, match=message):
            c.open_container(stored(bad), MAGIC, 1)
    for i in range(0, len(data), 3):
        with pytest.raises(BundleError):
            c.open_container(data[:i] + bytes([data[i] ^ 0x10]) + data[i + 1 :], MAGIC, 1)


def test_every_single_byte_matters(tmp_path: Path) -> None:
    """No byte of a small file can change unseen."""
    arrays = {"x": np.arange(5, dtype=np.int32), "y": np.zeros(0, np.uint8), "z": np.ones(3, np.uint8)}
    data = c.Contents(MAGIC, 1, {"a": 1}, arrays).encode()
    c.open_container(data, MAGIC, 1)
    for i in range(len(data)):
        with pytest.raises(BundleError):
            c.open_container(data[:i] + bytes([data[i] ^ 0x10]) + data[i + 1 :], MAGIC, 1)
        with pytest.raises(BundleError):
            c.open_container(data[:i], MAGIC, 1)


def test_size_cap(tmp_path: Path) -> None:
    path = tmp_path / "big.toolc"
    bundle(BASE).write(path)
    for source in (path, path.read_bytes()):
        with pytest.raises(BundleError, match="at most 100"):
            c.open_container(source, MAGIC, VERSION, max_bytes=100)
