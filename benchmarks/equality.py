"""All backends against the plain specification, bit for bit, over random steps.

    python -m benchmarks.equality [--steps 10000] [--compiled 1000] [--seed 0]

A batch of rows under several bundles, or none, with budgets or without, is driven through the specification loop
(toolc.runtime.reference), the host matcher and batch, the tensor operations, the exported module, and the Triton kernel
(by its interpreter on a CPU; the process starts itself anew with TRITON_INTERPRET=1). First the hand-made bundles, then
those that are compiled with the built-in tokenizer, which have forced tokens. Every step compares the masks of all;
between steps rows are rolled back, forked, reordered, begun anew, join and leave, draft chains and trees are read, and
tokens that are not allowed are refused. Prints one JSON line with what was compared; the first difference ends it with
an AssertionError.

Leaves out   speed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import torch

from tests.runtime.handmade import bundle
from tests.slow_lift import bits_of
from toolc.compiler import Options, compile_schema, compile_tools
from toolc.runtime import BatchMatcher, Bundle, Constraint, Decoder, Matcher, subset
from toolc.runtime.reference import Sequence

KINDS = ("brackets", "counted", "words")
SCHEMA = {
    "type": "object",
    "properties": {
        "a_rather_long_name": {"enum": ["one of the long values", "one of the other values", "x"]},
        "list of flags": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2},
    },
    "required": ["a_rather_long_name", "list of flags"],
    "additionalProperties": False,
}
TRITON = importlib.util.find_spec("triton") is not None and (
    os.environ.get("TRITON_INTERPRET") == "1" or torch.cuda.is_available()
)


def copy(oracle: Sequence | None) -> Sequence | None:
    return None if oracle is None else oracle.copy()


def compiled() -> list[Bundle]:
    """Bundles with forced tokens, and a choice of tools."""
    tight = Options(whitespace="compact")
    tools = compile_tools("tools_specs/weather.json", options=tight).bundle
    return [compile_schema(SCHEMA, options=tight).bundle, tools, subset(tools, ["weather_stations"])]


class Equality:
    """One batch on every backend.

    Args:
        bundles: of one vocabulary.
        rows: of the batch at the beginning; it grows to twice that, and shrinks to half.
    """

    def __init__(self, bundles: list[Bundle], seed: int, rows: int = 6) -> None:
        self.pick = random.Random(seed)
        torch.manual_seed(seed)
        self.counts: Counter[str] = Counter()
        self.bundles = bundles
        self.size = self.bundles[0].vocab.size
        self.host = BatchMatcher([self.bundles[0]] * rows)
        device = "cuda" if TRITON and os.environ.get("TRITON_INTERPRET") != "1" else "cpu"
        backends = ["torch", "fused"] if TRITON else ["torch"]
        self.decoders = [
            Decoder(self.bundles, rows, device, check=False, history=64, backend=name) for name in backends
        ]
        self.rows = rows
        self.module = Constraint(self.bundles, budgets=True)
        self.modules: dict[int, torch.nn.Module] = {}
        self.oracles: list[list[Sequence] | None] = [None] * rows  # the trail of each, where it stands last
        for row in range(rows):
            self.begin(row)

    def begin(self, row: int) -> None:
        """A new text in a row: another bundle, another budget."""
        number = self.pick.randrange(-1, len(self.bundles))
        budget = None
        if number >= 0 and self.pick.random() < 0.6:
            need = self.bundles[number].min_tokens["start"]
            assert need is not None
            budget = need + self.pick.choice([0, 1, 2, 5, 12])
        self.host.set_row(row, self.bundles[number] if number >= 0 else None, budget=budget)
        for decoder in self.decoders:
            decoder.reset_rows([row], number, budget=budget)
        self.oracles[row] = [Sequence.start(self.bundles[number], budget=budget)] if number >= 0 else None
        self.counts["begun"] += 1

    def here(self, row: int) -> Sequence | None:
        trail = self.oracles[row]
        return None if trail is None else trail[-1]

    def want(self, oracle: Sequence | None) -> np.ndarray:
        if oracle is None:
            return np.full(self.size, True)
        allowed = np.zeros(self.size, bool)
        allowed[list(oracle.mask_in_budget())] = True
        return allowed

    def compare(self) -> list[np.ndarray]:
        """The masks of every backend; returns bool [V] of each row."""
        count = len(self.oracles)
        wanted = [self.want(self.here(row)) for row in range(count)]
        masks = np.zeros((count, self.host.vocab.words), np.uint32)
        self.host.fill(masks)
        found = np.unpackbits(masks.view(np.uint8), bitorder="little", axis=1)[:, : self.size] != 0
        assert (found == np.stack(wanted)).all(), "BatchMatcher"
        logits = torch.randn(count, self.size + self.pick.choice([0, 5]))
        for decoder in self.decoders:
            got = decoder.mask_(logits.clone().to(decoder.device)).cpu()
            expected = logits.clone()
            for row in range(count):
                oracle = self.here(row)
                if oracle is not None:
                    expected[row, : self.size][~torch.from_numpy(wanted[row])] = -torch.inf
                    expected[row, self.size :] = -torch.inf
            assert torch.equal(got, expected), decoder.backend
            for row in range(count):
                oracle = self.here(row)
                if oracle is not None:
                    matcher = Matcher.at(decoder.configuration(row))
                    assert (matcher.state, matcher.counter, matcher.stack) == (
                        oracle.state,
                        oracle.counter,
                        oracle.stack,
                    )
                    assert int(decoder.bound()[row]) == oracle.bound(), decoder.backend
        for row in range(count):
            oracle = self.here(row)
            forced = [] if oracle is None else self.host.matcher(row).forced().tolist()
            for decoder in self.decoders:
                assert decoder.forced()[0][row, : len(forced)].tolist() == forced
            node = copy(oracle)
            for token in forced:
                assert node is not None and token in node.mask()
                assert node.advance(token) and (node.left is None or node.bound() <= node.left)
            self.counts["forced"] += len(forced)
        self.counts["masks"] += count * (1 + len(self.decoders))
        return wanted

    def tokens(self, wanted: list[np.ndarray]) -> list[int]:
        """A token of each mask; deep rows open nothing more, since two of the machines bound no depth themselves."""
        found = []
        for row, mask in enumerate(wanted):
            oracle, live = self.here(row), np.flatnonzero(mask).tolist()
            if oracle is not None and oracle.bundle.tables.modes == 1 and len(oracle.stack) > 30:
                live = [token for token in live if b"[" not in oracle.bundle.vocab.token(token)] or live
            found.append(int(self.pick.choice(live)))
        return found

    def step(self) -> None:
        pick = self.pick
        wanted = self.compare()
        tokens = self.tokens(wanted)
        chance = pick.random()
        if chance < 0.1:
            self.refuse()
        elif chance < 0.2:
            self.draft(tree=pick.random() < 0.5)
        elif chance < 0.25:
            self.decoders = [decoder.fork() for decoder in self.decoders]
            self.host.reorder(range(len(self.oracles)))
            self.counts["forks"] += 1
        elif chance < 0.32:
            self.reorder()
            tokens = self.tokens(self.compare())
        elif chance < 0.35 and len(self.oracles) > 1:
            self.exported(wanted)
        self.host.advance(tokens)
        for decoder in self.decoders:
            decoder.advance_(torch.tensor(tokens, device=decoder.device))
        for row, token in enumerate(tokens):
            trail = self.oracles[row]
            if trail is not None and trail[-1].state != 1:
                after = copy(trail[-1])
                assert after is not None and after.advance(token)
                trail.append(after)
        self.counts["tokens"] += len(tokens)
        if pick.random() < 0.2:
            self.rollback()
        for row in range(len(self.oracles)):
            oracle = self.here(row)
            if pick.random() < (0.3 if oracle is None or oracle.state == 1 else 0.01):
                self.begin(row)

    def rollback(self) -> None:
        back = [0 if trail is None else min(len(trail) - 1, self.pick.randrange(5)) for trail in self.oracles]
        self.host.rollback(back)
        for decoder in self.decoders:
            decoder.rollback_(torch.tensor(back))
        for trail, count in zip(self.oracles, back, strict=True):
            if trail is not None and count:
                del trail[-count:]
        self.counts["rollbacks"] += 1

    def reorder(self) -> None:
        count = self.pick.choice([self.rows // 2, self.rows, 2 * self.rows, len(self.oracles)])
        order = [self.pick.randrange(len(self.oracles)) for _ in range(count)]
        self.host.reorder(order)
        for decoder in self.decoders:
            decoder.reorder_(order)
        self.oracles = [None if (t := self.oracles[n]) is None else [o for o in map(copy, t) if o] for n in order]
        self.counts["reorders"] += 1

    def refuse(self) -> None:
        """Tokens that are not allowed: the host stays, a decoder's row is dead until it is rolled back."""
        row = self.pick.randrange(len(self.oracles))
        oracle = self.here(row)
        if oracle is None or oracle.state == 1:
            return
        token = self.pick.randrange(-3, self.size + 3)
        trial = copy(oracle)
        assert trial is not None
        fine = token >= 0 and token < self.size and trial.advance(token)
        assert self.host.matcher(row).try_advance(token) == fine, "Matcher"
        for decoder in self.decoders:
            twin = decoder.fork()
            tokens = [token if n == row else -1 for n in range(len(self.oracles))]
            twin.advance_(torch.tensor(tokens, device=twin.device))
            assert bool(twin.error[row]) != fine, decoder.backend
            if not fine:
                ends = set(np.flatnonzero(twin.mask_(torch.zeros(len(tokens), self.size))[row].numpy() == 0).tolist())
                assert ends == {int(t) for t in oracle.bundle.tables.end_of_turn_tokens}, decoder.backend
        self.counts["refusals"] += 1

    def draft(self, tree: bool) -> None:
        count = self.pick.randrange(1, 6)
        parents = [self.pick.randrange(-1, n) if tree else n - 1 for n in range(count)]
        rows = len(self.oracles)
        tokens = np.zeros((rows, count), np.int64)
        nodes: list[list[Sequence | None]] = [[copy(self.here(row))] for row in range(rows)]
        dead: list[list[bool]] = [[False] for _ in range(rows)]
        for row in range(rows):
            for n, parent in enumerate(parents):
                before = nodes[row][parent + 1]
                allowed = np.flatnonzero(self.want(before)).tolist()
                token = int(self.pick.choice(allowed)) if self.pick.random() < 0.85 else self.pick.randrange(self.size)
                tokens[row, n] = token
                after = copy(before)
                fails = dead[row][parent + 1] or (
                    after is not None and before is not None and before.state != 1 and not after.advance(token)
                )
                nodes[row].append(after)
                dead[row].append(fails)
        for decoder in self.decoders:
            found = decoder.draft(torch.from_numpy(tokens).to(decoder.device), torch.tensor(parents) if tree else None)
            assert found.legal.cpu().tolist() == [[not d for d in row] for row in dead], decoder.backend
            bits = found.bits.cpu().numpy().view(np.uint32)
            for row in range(rows):
                for n in range(count + 1):
                    node = nodes[row][n]
                    if not dead[row][n] and node is not None:
                        assert (bits[row, n] == bits_of(node.mask_in_budget(), self.size)).all(), decoder.backend
                        self.counts["draft nodes"] += 1
        self.counts["drafts"] += 1

    def exported(self, wanted: list[np.ndarray]) -> None:
        """The module, exported for this batch size, from where the decoder stands."""
        decoder, count = self.decoders[0], len(self.oracles)
        if decoder.device.type != "cpu":
            return
        left = decoder._left()
        if left is None:
            return
        state = (decoder.bundle_of_row, *decoder._config, left)
        state = tuple(part.clone() for part in state)
        tokens = torch.tensor(self.tokens(wanted))
        logits = torch.zeros(count, self.size)
        if count not in self.modules:
            self.modules[count] = torch.export.export(self.module, (logits, tokens, state)).module()
        got, _ = self.modules[count](logits, tokens, state)
        twin = decoder.fork()
        twin.advance_(tokens)
        assert torch.equal(got, twin.mask_(logits.clone())), "Constraint"
        matchers = [None if self.here(row) is None else self.host.matcher(row) for row in range(count)]
        for row, matcher in enumerate(matchers):
            if isinstance(matcher, Matcher) and not matcher.is_finished:
                matcher.advance(int(tokens[row]))
                assert matcher.allowed_tokens().tolist() == torch.nonzero(got[row] == 0).flatten().tolist()
        self.counts["exported"] += 1


def run(steps: int, seed: int = 0, more: int = 0) -> Counter[str]:
    """Random steps under the hand-made bundles, and more under the compiled ones; what was compared."""
    counts: Counter[str] = Counter()
    for count, make in ((steps, lambda: [bundle(kind) for kind in KINDS]), (more, compiled)):
        if count:
            all_ = Equality(make(), seed)
            for _ in range(count):
                all_.step()
            counts += all_.counts
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--compiled", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    if not TRITON and importlib.util.find_spec("triton") is not None:
        command = [sys.executable, "-m", "benchmarks.equality", *sys.argv[1:]]
        return subprocess.run(command, env={**os.environ, "TRITON_INTERPRET": "1"}, check=False).returncode
    begin = time.perf_counter()
    counts = run(a.steps, a.seed, a.compiled)
    shown = {
        "steps": a.steps,
        "compiled": a.compiled,
        "triton": TRITON,
        **counts,
        "seconds": round(time.perf_counter() - begin, 1),
    }
    print(json.dumps(shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
