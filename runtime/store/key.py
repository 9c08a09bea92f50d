"""The key of a bundle: one name per (spec or grammar, protocol, vocab, options, format version, compiler's version).

Whoever has these can work out the key without asking anyone; whoever has the bundle can work it out from its meta, so a
bundle under another's name is found out.

Leaves out   the compiler's side, which knows the fields before there is a bundle: see compiler/key.py.
Invariants   nothing that changes no bundle is in it: neither the name of the spec's file nor limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgpack

from ..errors import StoreError
from ..expected import named_kind
from ..format.bundle import VERSION
from ..format.container import UNSOUND, blake, refuse
from ..format.vocab import check_meta

KEY = re.compile(r"[0-9a-f]{32}\Z")
FIELDS = {"format": int, "recipe": str, "vocab_digest": str}


def key_of(meta: Mapping[str, Any], name: str = "<bundle>") -> str:
    """The key of the bundle with this meta: 32 hexadecimal digits, BLAKE2b-128.

    Args:
        meta: of a bundle, or as much of it as the key depends on: FIELDS, and ``kind`` and ``digest`` of its spec.
        name: the bundle as errors call it.

    Raises:
        BundleError: a field is not there.
    """
    parts = [check_meta(name, dict(meta), key, kind) for key, kind in FIELDS.items()]
    spec = check_meta(name, dict(meta), "spec", dict)
    origin = [spec.get("kind"), spec.get("digest")]
    if not all(isinstance(part, str) for part in origin):
        raise refuse(name, "meta/spec", origin, "a kind and a digest", UNSOUND)
    return blake(msgpack.packb(["toolc bundle", VERSION, *parts, *origin], use_bin_type=True)).hex()


def check_key(key: str) -> str:
    """The key, if it is one."""
    if not isinstance(key, str) or not KEY.match(key):
        raise StoreError(
            "this is no key",
            found=named_kind(key),
            expected="32 hexadecimal digits",
            hint="`toolc key SPEC` and `toolc list STORE` print keys",
        )
    return key
