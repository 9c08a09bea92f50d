"""Tool errors with a bundle and without: a model that wants to write a text with a call, and slips now and then.

    python -m benchmarks.tool_errors [--protocols hermes,llama3] [--count 1000] [--slip 0.03]

The model spells out a text: something said, one call or several, something said again where the family goes on after
calls, the end of the turn. At each step it slips with some probability and takes a random token. With the bundle (entry
"auto") what it may take is masked, and where the mask does not allow what it wants, it takes a random allowed token,
sooner or later one that closes something; a budget sees to it that it ends. What it wrote is counted by the three
types of the ToolDec paper: no tool of that name; arguments that do not meet the schema; text that cannot be read as
calls. With the bundle a text is read back by `Reader`, and values are validated by `jsonschema`; without it, by the
independent reading of the tests.

Prints one line a protocol; exits with 1 where there was any error with the bundle.

Source       Zhang et al. 2023, arXiv 2310.07075 (ToolDec), section 4: types of tool errors.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import numpy as np

from tests.cases.protocols import FAMILIES, Family
from tests.cases.requests import CALLS as REQUESTS
from tests.cases.requests import DOCUMENT, Requests
from tests.protocols.test_protocols import CALLS, SCHEMAS, TOOLS
from tests.protocols.vocabularies import vocab_for
from toolc.compiler import Options, compile_tools, read_spec
from toolc.compiler.grammar.protocol import load_protocol, protocol_names
from toolc.runtime import Bundle, Matcher, Reader, Vocab
from toolc.runtime.errors import DecodeError

TYPES = ("name", "argument", "syntax")
MOST_TOKENS = 600
AFTER = " That is all."
_CLOSING = b'"}])>\n'


@dataclass
class Model:
    """Spells a text, and slips.

    Attributes:
        slip: probability of a random token at a step.
        by_text: token of every text; special: of the delimiters that are tokens.
        closes: bool [tokens]: whether it may close something.
    """

    vocab: Vocab
    slip: float
    rng: random.Random
    by_text: dict[bytes, int] = field(default_factory=dict)
    special: dict[bytes, int] = field(default_factory=dict)
    closes: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    def __post_init__(self) -> None:
        texts = [self.vocab.token(i) for i in range(self.vocab.size)]
        self.by_text = {text: i for i, text in enumerate(texts) if text}
        self.special = {name.encode(): i for name, i in self.vocab.special.items()}
        delimiters = set(self.special.values())
        self.closes = np.array([text[:1] in _CLOSING or i in delimiters for i, text in enumerate(texts)])

    def next(self, rest: bytes) -> tuple[int, int]:
        """The token that it wants, and how much of the rest that spells."""
        for name, token in self.special.items():
            if rest.startswith(name):
                return token, len(name)
        cut = min((rest.find(name) for name in self.special if name in rest), default=len(rest))
        length = next(k for k in range(min(cut, 16), 0, -1) if rest[:k] in self.by_text)
        return self.by_text[rest[:length]], length

    def write(self, text: bytes, bundle: Bundle | None) -> list[int]:
        """The tokens of a text, as it comes out, end of turn included where it comes to that."""
        matcher = None if bundle is None else Matcher(bundle, usual(bundle), MOST_TOKENS)
        end = self.vocab.end_of_turn[0]
        out: list[int] = []
        while len(out) < MOST_TOKENS:
            token, length = self.next(text) if text else (end, 0)
            if self.rng.random() < self.slip:
                token = self.rng.randrange(self.vocab.size)
            text = text[length:]
            if matcher is not None and not matcher.try_advance(token):
                token = self._allowed(matcher, len(out))
                matcher.advance(token)
            out.append(token)
            if token in self.vocab.end_of_turn:
                break
        return out

    def _allowed(self, matcher: Matcher, written: int) -> int:
        allowed = matcher.allowed_tokens()
        closing = allowed[self.closes[allowed]].tolist()
        if closing and self.rng.random() < 0.3 + written / 200:
            ends = [token for token in closing if token in self.vocab.end_of_turn]
            return int(self.rng.choice(ends or closing))
        return int(self.rng.choice(allowed.tolist()))


def usual(bundle: Bundle) -> str:
    """Where a text begins."""
    return "auto" if "auto" in bundle.entry else "required"


@dataclass(frozen=True)
class Task:
    """What is to be written: calls of some tools, in a family's form.

    Attributes:
        after: whether a text may go on after the calls.
        schemas: of the tools' arguments.
    """

    family: Family | Requests
    after: bool
    bundle: Bundle
    calls: list[tuple[str, Any]]
    schemas: dict[str, Any]

    def wanted(self, rng: random.Random) -> bytes:
        """A text with calls as the family writes them."""
        calls = rng.sample(self.calls, rng.randint(1, len(self.calls)) if self.family.many else 1)
        before = self.family.before if rng.random() < 0.5 else ""
        after = AFTER if self.after and rng.random() < 0.5 else ""
        return (before + self.family.write(calls) + after).encode()

    def judge(self, calls: list[tuple[str, Any]] | None) -> str:
        """The type of error of some calls; "" where all are valid."""
        if calls is None:
            return "syntax"
        for name, arguments in calls:
            if name not in self.schemas:
                return "name"
            if not jsonschema.Draft202012Validator(self.schemas[name]).is_valid(arguments):
                return "argument"
        return ""

    def without(self, text: str) -> str:
        """The type of error of a text that was written without a bundle."""
        return self.judge(self.family.read(text.removeprefix(self.family.before).removesuffix(AFTER), self.schemas))

    def within(self, tokens: list[int]) -> tuple[str, int]:
        """The type of error of tokens that were written with a bundle, and how many calls there are."""
        reader = Reader(self.bundle, usual(self.bundle))
        try:
            for token in tokens:
                reader.feed(token)
            reader.finish()
        except DecodeError:
            return "syntax", 0
        if not reader.is_finished:
            return "unfinished", 0
        return self.judge([(call.name, call.arguments) for call in reader.calls]), len(reader.calls)


def task_of(protocol: str) -> Task:
    """The task in a protocol; that of requests has operations of its own."""
    options = Options(protocol=protocol, named=False)
    if protocol not in FAMILIES:
        bundle, spec = compile_tools(DOCUMENT, options=options).bundle, read_spec(DOCUMENT)
        return Task(Requests(spec), False, bundle, REQUESTS, {tool.name: tool.schema for tool in spec.tools})
    bundle = compile_tools(TOOLS, vocab_for(protocol), options=options).bundle
    return Task(FAMILIES[protocol], load_protocol(protocol).has("tail"), bundle, CALLS, SCHEMAS)


def measure(name: str, count: int, slip: float) -> tuple[Counter[str], Counter[str], int]:
    """Errors with the bundle and without by type, and how many calls were written with it."""
    task = task_of(name)
    vocab = task.bundle.vocab
    model = Model(vocab, slip, random.Random(name))
    names = {token: text.decode() for text, token in model.special.items()}
    masked: Counter[str] = Counter()
    free: Counter[str] = Counter()
    calls = 0
    for _ in range(count):
        text = task.wanted(model.rng)
        error, made = task.within(model.write(text, task.bundle))
        masked[error] += 1
        calls += made
        tokens = [t for t in model.write(text, None) if t not in vocab.end_of_turn]
        written = b"".join(names[t].encode() if t in names else vocab.token(t) for t in tokens)
        free[task.without(written.decode(errors="replace"))] += 1
    return masked, free, calls


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocols", default=",".join(protocol_names()))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--slip", type=float, default=0.03)
    options = parser.parse_args()
    status = 0
    for name in options.protocols.split(","):
        masked, free, calls = measure(name, options.count, options.slip)
        ours, theirs = ([counts[one] for one in TYPES] for counts in (masked, free))
        print(
            f"{name}: {options.count} texts, {calls} calls, {masked['unfinished']} unfinished; errors (name, argument,"
            f" syntax) with the bundle {ours}, without {theirs}",
            flush=True,
        )
        status |= any(ours)
    return status


if __name__ == "__main__":
    sys.exit(main())
