"""``toolc speculate``: what speculative tool calling is worth for measured figures.

Leaves out   the equations: see toolc.runtime.speculate.equations.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from toolc.runtime.format.container import replace_file
from toolc.runtime.speculate.chart import draw
from toolc.runtime.speculate.equations import ClientSide, EngineSide, Price
from toolc.runtime.speculate.errors import SpeculateError
from toolc.runtime.speculate.trace import read_trace

from .outputs import output_file
from .terminal import console, counted, facts, note, print_json, refuse_usage

POINTS = 60
ENGINE = ("prefill_rate", "decode_rate", "prompt", "reasoning", "call", "output")


def run(plot: str | None, as_json: bool, trace: str | None, **given: Any) -> None:
    """Work out, print, draw."""
    if trace is not None:
        _run_trace(trace, plot, as_json, given)
        return
    missing = [f"--{name.replace('_', '-')}" for name in ("main_s", "tool_s") if given[name] is None]
    if missing:
        refuse_usage(f"give {' and '.join(missing)}, or a trace (--trace FILE)")
    client = ClientSide(
        *(given[name] for name in ("main_s", "guess_s", "tool_s", "hit_rate", "turns")),
    )
    price = Price(given["main_price"], given["guess_price"], given["tool_price"])
    engine = _engine(client, given)
    about = {"ok": True, **_client(client, price, given["samples"]), **({} if engine is None else _about(engine))}
    if plot is not None:
        replace_file(output_file(plot), [_chart(client).encode()])
    if as_json:
        print_json(about | ({"plot": plot} if plot else {}))
        return
    console().print(facts(_rows(client, price, given["samples"], engine)))
    if plot is not None:
        note(f"toolc: the curves are in {plot}")


def _run_trace(path: str, plot: str | None, as_json: bool, given: dict[str, Any]) -> None:
    """The same from a trace, turn by turn."""
    set_too = [name for name in ("main_s", "tool_s", *ENGINE) if given[name] is not None]
    if plot is not None or set_too:
        names = ", ".join("--" + name.replace("_", "-") for name in [*(["plot"] if plot else []), *set_too])
        refuse_usage(f"--trace tells the times of each turn; leave out {names}")
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        refuse_usage(f"cannot read {path}: {error}")
    trace = read_trace(lines, path)
    if not trace.turns:
        raise SpeculateError(
            "a trace without a turn whose calls were answered",
            place=path,
            found=f"{counted(trace.conversations, 'conversation')}, {counted(trace.unanswered, 'unanswered call')}",
            hint="docs/speculate.md shows the lines of a trace",
        )
    standard = trace.standard_s
    speculative, best = (trace.speculative_s(given["guess_s"], hits) for hits in (given["hit_rate"], 1.0))
    if as_json:
        about = {"conversations": trace.conversations, "turns": len(trace.turns), "unanswered": trace.unanswered}
        seconds = {"standard_s": standard, "speculative_s": speculative, "all_guessed_s": best}
        print_json({"ok": True, **about, **seconds, "tools": [asdict(tool) for tool in trace.tools]})
        return
    rows: list[tuple[str, str]] = [
        ("turns with calls", f"{len(trace.turns):,} of {counted(trace.conversations, 'conversation')}"),
        ("standard", f"{standard:.3f} s"),
        ("speculative", f"{speculative:.3f} s, {_share(standard, speculative)} saved"),
        ("if all were guessed", f"{best:.3f} s, {_share(standard, best)} saved"),
    ]
    if trace.unanswered:
        rows.append(("left out", f"{counted(trace.unanswered, 'call')} without an answer"))
    for tool in trace.tools:
        times = f"{tool.median_s:.3f} s, 9 of 10 within {tool.slow_s:.3f} s"
        rows.append((tool.name, f"{counted(tool.calls, 'call')}, {tool.seen:.0%} made before; {times}"))
    console().print(facts(rows))


def _share(standard: float, speculative: float) -> str:
    return f"{1 - speculative / standard:.1%}" if standard else "0.0%"


def _engine(client: ClientSide, given: dict[str, Any]) -> EngineSide | None:
    if all(given[name] is None for name in ENGINE):
        return None
    missing = [name for name in ENGINE if given[name] is None]
    if missing:
        refuse_usage("the engine side also needs " + ", ".join("--" + name.replace("_", "-") for name in missing))
    cached, drafted = _in_time(client, given["reasoning"], given["call"])
    return EngineSide(
        overhead_s=given["overhead_s"],
        **{name: given[name] for name in ENGINE},
        turns=given["turns"],
        tool_s=given["tool_s"],
        cached=cached,
        drafted=drafted,
        prefix_cache=given["prefix_cache"],
    )


def _in_time(client: ClientSide, reasoning: int, call: int) -> tuple[float, float]:
    """Share of turns whose result is there when the turn ends, and of the tokens of calls still to come when it is."""
    there = client.guess_s + client.tool_s
    if there > client.main_s or not client.in_time:
        return 0.0, 0.0
    writes_s = client.main_s * call / (reasoning + call) if reasoning + call else 0.0
    share = min(1.0, (client.main_s - there) / writes_s) if writes_s else 1.0
    return client.hit_rate, client.hit_rate * share


def _client(client: ClientSide, price: Price, samples: int) -> dict[str, Any]:
    return {
        "pays": client.pays,
        "standard_s": client.standard_s,
        "speculative_s": client.speculative_s,
        "speedup": client.speedup,
        "bound": client.bound,
        "saved": client.saved,
        "best_tool_s": client.best_tool_s,
        "price_per_turn": {
            "standard": price.standard(),
            "speculative": _cost(client, price, samples),
        },
    }


def _cost(client: ClientSide, price: Price, samples: int) -> float:
    """A turn's price at most: right guesses fall together, wrong ones are taken to differ, late ones are not run."""
    if not client.in_time:
        return price.speculative(0.0, samples, 0.0)
    return price.speculative(client.hit_rate, samples, min(samples, 1 + (samples - 1) * (1 - client.hit_rate)))


def _about(engine: EngineSide) -> dict[str, Any]:
    return {
        "engine": {
            "vanilla_s": engine.vanilla_s,
            "resident_s": engine.resident_s,
            "speculative_s": engine.speculative_s,
            "prefill_tokens_avoided": engine.prefill_avoided,
        }
    }


def _rows(client: ClientSide, price: Price, samples: int, engine: EngineSide | None) -> list[tuple[str, str]]:
    verdict = "yes" if client.pays else "no: " + _why_not(client)
    cost = _cost(client, price, samples)
    rows = [
        ("does it pay", verdict),
        ("standard", f"{client.standard_s:.3f} s for {counted(client.turns, 'turn')}"),
        ("speculative", f"{client.speculative_s:.3f} s, {client.saved:.1%} saved"),
        ("speed-up", f"{client.speedup:.3f} (never above {client.bound:.3f})"),
    ]
    if client.in_time:
        rows.append(("most is saved", f"with tools of {client.best_tool_s:.3f} s"))
    if price.standard():
        rows.append(("price of a turn", f"{price.standard():g} before, at most {cost:g} with speculation"))
    if engine is not None:
        rows += [
            ("engine, vanilla", f"{engine.vanilla_s:.3f} s"),
            ("engine, resident", f"{engine.resident_s:.3f} s"),
            ("engine, drafted", f"{engine.speculative_s:.3f} s"),
            ("prefill avoided", f"{engine.prefill_avoided:,.0f} tokens"),
        ]
    return rows


def _why_not(client: ClientSide) -> str:
    if not client.turns:
        return "there are no turns"
    if not client.tool_s:
        return "there is no tool time to hide"
    if not client.hit_rate:
        return "no guess is ever right"
    return f"the guess ({client.guess_s:g} s) is not there before the model's own call ({client.main_s:g} s)"


def _chart(client: ClientSide) -> str:
    longest = 3 * max(client.main_s, client.tool_s, 1e-3)
    times = [longest * n / POINTS for n in range(POINTS + 1)]
    rates = sorted({client.hit_rate, 0.25, 0.5, 0.75, 1.0})
    series = {
        f"α = {rate:g}" + (" (given)" if rate == client.hit_rate else ""): [
            (tool_s, replace(client, hit_rate=rate, tool_s=tool_s).saved) for tool_s in times
        ]
        for rate in rates
    }
    title = f"Time saved by guessing calls, G = {client.main_s:g} s, g = {client.guess_s:g} s"
    return draw(title, "time of the tool, seconds", "time saved", series, percent=True)
