"""``toolc test``: decode at random under a spec, validate with the user's own validator, show the smallest failure.

Leaves out   decoding and validating: see ../random_tests.py.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from ..errors import SpecError
from ..options import BUILTIN, Options
from ..source import read_file
from .terminal import NOT_ACCEPTED, counted, print_json


def run(
    spec: str,
    tokenizer: str | None,
    protocol: str | None,
    response: str | None,
    validator: str | None,
    examples: int,
    budget: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Compile, decode, validate and say so."""
    try:
        import hypothesis  # noqa: F401
    except ImportError:
        raise SpecError("`toolc test` needs the package hypothesis", hint="pip install 'toolc[testing]'") from None
    from ..random_tests import check_target, compiled_targets, load_validator

    read, _ = read_file(spec, None)
    if isinstance(read, str):
        raise SpecError(
            "a grammar says no values to validate",
            place=spec,
            hint="toolc.compiler.testing has strategies of its texts",
        )
    options = Options(protocol=protocol, response=response)
    judge = None if validator is None else load_validator(validator)
    bundle, targets = compiled_targets(read, tokenizer or BUILTIN, options)
    failures: list[Any] = []
    for target in targets:
        failure = check_target(bundle, target, judge, examples, budget, seed)
        if failure is not None:
            failures.append(failure)
        if not as_json:
            name = target.name or "the schema"
            click.echo(
                f"{name}: {counted(examples, 'example')}, all valid" if failure is None else f"not valid: {failure}"
            )
    if as_json:
        found = [{"tool": one.target.name, "example": one.example, "error": one.error} for one in failures]
        print_json({"ok": not failures, "targets": len(targets), "examples": examples, "failures": found})
    if failures:
        sys.exit(NOT_ACCEPTED)
