"""Hostile vocab files: each is refused for its own reason, as bundles are (test_hostile.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolc.runtime import BundleError, Vocab
from toolc.runtime.format.container import Contents
from toolc.runtime.format.vocab import MAGIC, VERSION

from .handmade import tiny_vocab
from .test_hostile import Arrays, cut, drop, meta_setter, recast, setter

EDITS: list[tuple[str, Callable[[Arrays, dict[str, Any]], None], tuple[str, ...]]] = [
    ("missing", drop("node_skip"), ("#node_skip", "no such array")),
    ("dtype", recast("token_bytes", "int32"), ("#token_bytes/dtype",)),
    ("rank", lambda a, m: a.update(node_skip=a["node_skip"].reshape(1, -1)), ("#node_skip/shape",)),
    ("offsets-fall", setter("token_offset", 5, 9999), ("#token_offset", "never fall")),
    ("offsets-start", setter("token_offset", 0, 1), ("#token_offset", "0 first")),
    ("offsets-none", cut("token_offset", 0), ("#token_offset", "0 first")),
    ("offsets-end", cut("token_bytes"), ("#token_offset", "last")),
    ("depth-first", setter("node_depth", 0, 2), ("#node_depth", "1 first")),
    ("depth-jump", setter("node_depth", 3, 9), ("#node_depth", "preorder")),
    ("depth-zero", setter("node_depth", 3, 0), ("#node_depth", "preorder")),
    ("skip-back", setter("node_skip", 3, 0), ("#node_skip", "out of range")),
    ("skip-past", setter("node_skip", 3, 1 << 20), ("#node_skip", "out of range")),
    ("skip-self", setter("node_skip", 3, 3), ("#node_skip/3",)),
    ("skip-far", setter("node_skip", 3, 40), ("#node_skip/3",)),
    ("bytes-unsorted", setter("node_byte", 0, 255), ("#node_byte", "ascending")),
    ("lengths", cut("node_depth"), ("#node_depth/shape",)),
    ("node-token-past", setter("node_tokens", 0, 96), ("#node_tokens", "out of range")),
    (
        "node-token-other",
        lambda a, m: a["node_tokens"].__setitem__(slice(None), np.roll(a["node_tokens"], 3)),
        ("#node_tokens",),
    ),
    ("node-offsets", setter("node_token_offset", 1, 9999), ("#node_token_offset", "never fall")),
    ("slice-past", setter("slice_tokens", 0, 96), ("#slice_tokens", "out of range")),
    ("slice-unsorted", setter("slice_tokens", 0, 90), ("#slice_tokens", "unsorted")),
    ("slice-units", setter("slice_units", 0, -1), ("#slice_units", "out of range")),
    ("slice-units-unsorted", setter("slice_units", 0, 99), ("#slice_tokens", "unsorted")),
    ("slice-offsets", setter("slice_token_offset", 1, 9999), ("#slice_token_offset", "never fall")),
    ("meta-size", meta_setter(size=95), ("#meta/size", "95")),
    ("meta-special", meta_setter(special={"x": 96}), ("#meta/special/x",)),
    ("meta-end", meta_setter(end_of_turn=[-1]), ("#meta/end_of_turn",)),
    ("meta-end-type", meta_setter(end_of_turn=3), ("#meta/end_of_turn", "list")),
    ("meta-slices", meta_setter(slices=["one"]), ("#meta/slices", "2 names")),
]


@pytest.mark.parametrize(("change", "fragments"), [pytest.param(f, p, id=i) for i, f, p in EDITS])
def test_edited_vocab(
    change: Callable[[Arrays, dict[str, Any]], None], fragments: tuple[str, ...], tmp_path: Path
) -> None:
    vocab = tiny_vocab()
    arrays, meta = {k: a.copy() for k, a in vocab.arrays().items()}, dict(vocab.meta)
    change(arrays, meta)
    path = tmp_path / "bad.vocab"
    Contents(MAGIC, VERSION, meta, arrays).write(path)
    with pytest.raises(BundleError) as caught:
        Vocab.open(path)
    for fragment in ("bad.vocab", *fragments):
        assert fragment in str(caught.value)
