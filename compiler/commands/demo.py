"""``toolc demo``: a small transformer with random weights decodes tool calls, with a bundle and without.

Leaves out   the model and the loop (runtime/adapters/random_model.py), masks, states.
Invariants   one seed for the weights and one for each side's sampling: a run repeats on the same machine.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..compiled import Compiled
from ..options import BUILTIN
from ..pipeline import compile_spec
from ..specs import Spec, read_spec
from .terminal import NOT_ACCEPTED, Progress, console, note, print_json
from .warmup import warm

if TYPE_CHECKING:
    from toolc.runtime.adapters.random_model import Decoded

SPEC = "weather.json"


@dataclass(frozen=True)
class Side:
    """One side of the table: what its rows wrote, and of each None for a valid call, else what is wrong with it."""

    decoded: Decoded
    verdicts: list[str | None]

    @classmethod
    def of(cls, spec: Spec, decoded: Decoded) -> Side:
        """Judge what was written."""
        written = zip(decoded.texts, decoded.ended, strict=True)
        return cls(decoded, [verdict(spec, text) if ended else "does not end" for text, ended in written])

    @property
    def valid(self) -> int:
        """How many rows are."""
        return sum(verdict is None for verdict in self.verdicts)

    @property
    def tokens_per_second(self) -> float:
        """Of all rows together."""
        return self.decoded.tokens / self.decoded.seconds


def run(rows: int, seed: int, as_json: bool) -> None:
    """Decode both sides and show them; exit code 1 unless every constrained output is valid."""
    from toolc.runtime.adapters.random_model import RandomModel, decode

    with Progress(quiet=as_json) as progress:
        warm(progress)
        progress("compiling the demo's tools")
        spec, compiled = compile_demo()
        bundle = compiled.bundle
        model = RandomModel(bundle.vocab.size, seed)
        for constrained in (True, False):  # so that neither side pays for what happens once
            decode(bundle, model, rows, seed, constrained, steps=2)
        progress("decoding with the bundle")
        held = Side.of(spec, decode(bundle, model, rows, seed, True))
        progress("decoding without")
        free = Side.of(spec, decode(bundle, model, rows, seed, False))
    if as_json:
        sides = {"with": held, "without": free}
        print_json({"ok": held.valid == rows, "rows": rows} | {key: _facts(side) for key, side in sides.items()})
    else:
        note(f"toolc: compiled {SPEC} for the built-in tokenizer of {bundle.vocab.size:,} tokens")
        _print(spec, held, free, model.parameter_count)
    if held.valid != rows:
        sys.exit(NOT_ACCEPTED)


def compile_demo() -> tuple[Spec, Compiled]:
    """The demo's spec and its bundle."""
    spec = read_spec((files("toolc.tools_specs") / SPEC).read_bytes(), SPEC)
    return spec, compile_spec(spec, BUILTIN)


def verdict(spec: Spec, text: str) -> str | None:
    """What is wrong with a call, by Python's json and, where it is installed, jsonschema; None for nothing."""
    try:
        call = json.loads(text)
    except ValueError:
        return "no JSON"
    if not isinstance(call, dict) or call.keys() != {"name", "arguments"}:
        return "no call"
    tool = next((tool for tool in spec.tools if tool.name == call["name"]), None)
    if tool is None:
        return "no such tool"
    try:
        import jsonschema  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        return None if isinstance(call["arguments"], dict) else "arguments are no object"
    wrong = next(jsonschema.Draft202012Validator(tool.schema).iter_errors(call["arguments"]), None)
    return None if wrong is None else f"wrong arguments: {wrong.message[:40]}"


def _facts(side: Side) -> dict[str, Any]:
    return {
        "valid": side.valid,
        "ended": sum(side.decoded.ended),
        "tokens": side.decoded.tokens,
        "tokens_per_second": round(side.tokens_per_second),
        "texts": side.decoded.texts,
        "verdicts": side.verdicts,
    }


def _print(spec: Spec, held: Side, free: Side, parameters: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from toolc.runtime.adapters.random_model import BIAS, BIAS_PER_STEP

    rows = len(held.verdicts)
    table = Table(title=f"{rows} calls by a transformer of {parameters:,} random weights", show_lines=False)
    table.add_column("with the bundle", ratio=3)
    table.add_column("", no_wrap=True)
    table.add_column("without", ratio=2)
    table.add_column("", no_wrap=True)
    for i in range(min(rows, 8)):
        table.add_row(
            _line(held.decoded.texts[i]),
            _mark(held.verdicts[i]),
            _line(free.decoded.texts[i], 40),
            _mark(free.verdicts[i]),
        )
    out = console()
    out.print(table)
    if rows > 8:
        out.print(f"and {rows - 8} more rows")
    totals = Table(show_header=True, box=None, pad_edge=False)
    for name in ("", "valid", "invalid", "ended", "tokens", "tokens/s"):
        totals.add_column(name, justify="left" if not name else "right")
    for name, side in (("with the bundle", held), ("without", free)):
        numbers = (side.valid, rows - side.valid, sum(side.decoded.ended), side.decoded.tokens)
        totals.add_row(name, *(f"{number:,}" for number in numbers), f"{side.tokens_per_second:,.0f}")
    out.print(totals)
    names = ", ".join(tool.name for tool in spec.tools)
    out.print(
        Text(
            f"tools: {names}. On both sides the logits of tokens that close something (quotes, brackets, end of turn) "
            f"are raised by {BIAS:g} + {BIAS_PER_STEP:g} a step, so that random texts end."
        )
    )


def _line(text: str, most: int = 160) -> Any:
    """One text on one line, cut; control characters are shown as dots."""
    from rich.text import Text

    shown = " ".join("".join(c if c.isprintable() or c in "\n\t\r" else "·" for c in text).split())
    return Text(shown if len(shown) <= most else shown[: most - 1] + "…")


def _mark(verdict: str | None) -> Any:
    from rich.text import Text

    return Text("valid", style="green") if verdict is None else Text(verdict.split(":")[0], style="red")
