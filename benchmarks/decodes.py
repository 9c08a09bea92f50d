"""The random-decode law: random logits, masked, give texts that parse and validate, through the batch decoder.

    python -m benchmarks.decodes SPEC [--tokenizer T] [--count 1000] [--budget 200]

The logits are noise, with a bias towards tokens that close something (more with every step, or a random walk would
fill every string and list to its bound) and towards structure. With a budget every row has one of its own, from the
least that its entry needs up to that many tokens, and closing gets no bias at all: the masks alone end it in time. Each
batch has another size. Prints one JSON line: how many of the decodes ended, how many are valid by
tests/schema/judge.py with a name from the spec, and how many local states they visited of how many.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from tests.schema.judge import Judge, read
from toolc.compiler import Options, compile_spec, read_spec
from toolc.compiler.specs import Spec
from toolc.runtime import Bundle, Decoder

BATCHES = (1, 7, 32, 100)


@dataclass
class Outcome:
    """What became of the decodes; `invalid` holds (text, reason), `over` counts those beyond their budgets."""

    decodes: int = 0
    ended: int = 0
    valid: int = 0
    tokens: int = 0
    states: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    invalid: list[tuple[str, str]] = field(default_factory=list)
    over: int = 0


def judge(spec: Spec) -> Callable[[str], str]:
    """A function that says the name of the valid call (or "value") in a text, or raises ValueError."""
    checks = {
        tool.name: Judge({**tool.document, **tool.schema} if isinstance(tool.document, dict) else tool.schema)
        for tool in spec.tools
    }
    whole = None if spec.tools else Judge(spec.schema)

    def check(text: str) -> str:
        value = read(text)
        if whole is not None:
            why = whole.why_not_value(value)
        else:
            if list(value) != ["name", "arguments"] or value["name"] not in checks:
                raise ValueError("no call of a tool of the spec")
            why = checks[value["name"]].why_not_value(value["arguments"])
        if why is not None:
            raise ValueError(why)
        return str(value["name"]) if whole is None else "value"

    return check


def decode(
    bundle: Bundle,
    check: Callable[[str], str],
    count: int,
    *,
    seed: int = 0,
    steps: int = 700,
    budget: int | None = None,
) -> Outcome:
    """Decode ``count`` texts at mixed batch sizes and judge each.

    Args:
        budget: the largest budget of a row; the entry must need less. None for no budgets.
    """
    random = torch.Generator().manual_seed(seed)
    vocab, outcome = bundle.vocab, Outcome()
    closing = torch.zeros(vocab.size)
    for token in range(vocab.size):
        text = vocab.token(token)
        if text and set(text) <= set(b'"}], :\n'):
            closing[token] = 1.0 + 0.5 * len(set(text) & set(b'"}]'))
    closing[torch.as_tensor(bundle.tables.end_of_turn_tokens.copy(), dtype=torch.long)] = 2.0
    batch = 0
    while outcome.decodes < count:
        size = min(BATCHES[batch % len(BATCHES)], count - outcome.decodes)
        batch += 1
        budgets: list[int | None] = [None] * size
        if budget is not None:
            closing.zero_()
            least = bundle.min_tokens["start"]
            assert least is not None
            spread = torch.randint(least, max(budget, least) + 1, (size,), generator=random)
            # Few random texts go on for long: every third budget is one of the least.
            short = torch.randint(least, least + 8, (size,), generator=random)
            budgets = torch.where(torch.rand(size, generator=random) < 0.33, short, spread).tolist()
        decoder = Decoder(bundle, size, budget=budgets)
        texts = [bytearray() for _ in range(size)]
        for step in range(steps):
            logits = torch.randn(size, vocab.size, generator=random) * 2 + closing * (2 + step / 25)
            decoder.mask_(logits)
            tokens = torch.multinomial(logits.softmax(-1), 1, generator=random).squeeze(1)
            live = ~decoder.finished
            for row in torch.nonzero(live).flatten().tolist():
                texts[row] += vocab.token(int(tokens[row]))
                outcome.tokens += 1
            outcome.states.update(decoder.state[live].tolist())
            decoder.advance_(tokens)
            if bool(decoder.finished.all()):
                break
        outcome.decodes += size
        for row in range(size):
            most = budgets[row]
            outcome.over += most is not None and int(decoder.length[row]) > most
            if not decoder.finished[row]:
                continue
            outcome.ended += 1
            try:
                outcome.names.add(check(texts[row].decode()))
                outcome.valid += 1
            except ValueError as error:
                outcome.invalid.append((texts[row].decode(errors="replace"), str(error)))
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec")
    parser.add_argument("--tokenizer", default="builtin")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=int)
    a = parser.parse_args()
    spec = read_spec(a.spec)
    compiled = compile_spec(spec, a.tokenizer, options=Options())
    begin = time.perf_counter()
    found = decode(compiled.bundle, judge(spec), a.count, seed=a.seed, budget=a.budget)
    result: dict[str, Any] = {
        "spec": spec.name,
        "decodes": found.decodes,
        "ended": found.ended,
        "valid": found.valid,
        **({} if a.budget is None else {"least": compiled.bundle.min_tokens["start"], "over": found.over}),
        "tools_seen": f"{len(found.names)} of {len(spec.tools) or 1}",
        "states_visited": len(found.states),
        "states": compiled.report["counts"]["states"],
        "tokens": found.tokens,
        "seconds": round(time.perf_counter() - begin, 1),
        "first_invalid": found.invalid[:1],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
