"""``toolc grammar``: the Lark text that a spec becomes."""

from __future__ import annotations

from typing import Any

import click

from ..option_checks import check_fit
from ..paths import path_text
from ..pipeline import grammar_of
from ..source import grammar_name
from .source import read_source, schema_options
from .terminal import print_json


def run(spec: str, as_json: bool, **more: Any) -> None:
    """Print it; a grammar is checked, and printed as Lark text."""
    options = schema_options(more)
    source, _ = read_source(spec, more["max_spec_bytes"], options, more["syntax"])
    if isinstance(source, str):
        from ..grammar.reader import read_grammar

        check_fit(source, options, grammar_name(spec))
        read_grammar(source, path_text(spec), in_context=True)
        text, places, restrictions = source, {}, []
    else:
        assembled = grammar_of(source, options)
        text, places, restrictions = assembled.text, assembled.every_place, list(assembled.restrictions)
    if as_json:
        print_json({"ok": True, "grammar": text, "places": places, "restrictions": restrictions})
    else:
        click.echo(text, nl=not text.endswith("\n"))
