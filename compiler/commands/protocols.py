"""``toolc protocols``: the protocols that toolc brings along."""

from __future__ import annotations

from ..grammar.protocol import load_protocol, protocol_names
from .terminal import console, facts, print_json


def run(as_json: bool) -> None:
    """List them with the comment at the top of each."""
    about = {name: load_protocol(name).about for name in protocol_names()}
    if as_json:
        print_json({"ok": True, "protocols": about})
    else:
        console().print(facts([(name, text.split("\n")[0].partition(": ")[0]) for name, text in about.items()]))
