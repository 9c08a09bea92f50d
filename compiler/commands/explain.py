"""``toolc explain``: why a text, or a list of token ids, cannot go on where it stops under a bundle.

Leaves out   the explanation: see runtime/calls/explain.py. Whether a whole text is accepted: check.py.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from toolc.runtime.calls.explain import explain
from toolc.runtime.format.bundle import Bundle

from .check import known_entry, text_of
from .terminal import NOT_ACCEPTED, print_json, refuse_usage


def run(bundle: str, text: str, vocab: str | None, entry: str, tokens: bool, as_json: bool) -> None:
    """Explain and say so."""
    data: bytes | list[int] = text_of(text)
    if tokens:
        data = _ids(bytes(data))
    opened = Bundle.open(bundle, vocab)
    known_entry(opened, entry)
    found = explain(opened, data, entry)
    if as_json:
        print_json({"ok": found.allowed, **asdict(found)})
    else:
        click.echo(str(found))
    if not found.allowed:
        sys.exit(NOT_ACCEPTED)


def _ids(text: bytes) -> list[int]:
    """The ids in a JSON array, or parted by blanks or commas."""
    try:
        found = (
            json.loads(text) if text.lstrip()[:1] == b"[" else [int(one) for one in text.replace(b",", b" ").split()]
        )
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, int) and not isinstance(one, bool) for one in found):
        refuse_usage("--tokens reads ids of tokens, as 12 5 812 or [12, 5, 812]")
    return found
