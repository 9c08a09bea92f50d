"""What speculation is worth, as equations. Times are seconds, rates tokens per second, counts tokens.

Client side, N turns, each a generation and a tool call:

    T_standard = N (G + T)
    T_spec     = α N max(G, min(g, G) + T) + (1 − α) N (G + T)

G is the time of the main model, g that of the speculative one (of the first right guess), T that of the tool, α the
share of turns whose call was guessed. A guess that is not there at G is cancelled, and the call runs as it would have:
so nothing is lost for g > G, where the paper, which takes g < G, has max(G, g + T). Lemma 1: T_standard / T_spec ≤ 2
for α ≤ 1, with equality in the limit α = 1, T = G, g = 0, since max(G, g + T) ≥ (G + T) / 2.

Engine side, K turns, each R tokens of reasoning and a call of t tokens, answered by u tokens of output, after a prompt
of X tokens. The context before turn k is C(k) = X + k (R + t + u). A sequence that leaves the engine for its tool comes
back at the price of the overhead o and of a prefill; one whose result was cached in time stays:

    T_vanilla = o + X / φ + Σ [(R + t) / δ + T + o + C(k + 1) / φ]
    T_cached  = o + X / φ + Σ [(R + t) / δ] + Σ over hits [u / φ] + Σ over misses [o + C(k + 1) / φ + T]
    T_spec*   = T_cached, with d t / φ in place of d t / δ, d the share of the tokens of calls that were drafted and
                accepted: they are verified in the pass that decodes the token before them

The last turn's tool counts as the others' do, and its result is read: K turns, and K + 1 times a context.

Leaves out   measuring: see simulator.py and benchmarks/speculate_*.py.
Source       arXiv 2512.15834, sections on client-side and engine-side analysis. Its client side is as above. The engine
             side is written here from its quantities (o, φ, δ, K, X, R, t, output tokens), with hits as a share and the
             tool's time explicit, so that each term can be checked against the simulation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real

from .errors import SpeculateError

BOUND = 2.0
"""Lemma 1: no client-side speed-up is larger."""


@dataclass(frozen=True)
class ClientSide:
    """The client-side setting.

    Attributes:
        main_s: G, seconds of the main model per turn.
        guess_s: g, seconds until the speculative model's call is there.
        tool_s: T, seconds of the tool.
        hit_rate: α, share of turns whose call was guessed.
        turns: N.
    """

    main_s: float
    guess_s: float
    tool_s: float
    hit_rate: float
    turns: int = 1

    def __post_init__(self) -> None:
        check(self, seconds=("main_s", "guess_s", "tool_s"), shares=("hit_rate",), counts=("turns",))
        whole = self.turns * (self.main_s + self.guess_s + self.tool_s)
        if whole == float("inf"):
            raise SpeculateError("all turns together take too long to be told", found=f"{whole} seconds")

    @property
    def standard_s(self) -> float:
        """T_standard, seconds."""
        return self.turns * (self.main_s + self.tool_s)

    @property
    def speculative_s(self) -> float:
        """T_spec, seconds."""
        hit = max(self.main_s, min(self.guess_s, self.main_s) + self.tool_s)
        return self.turns * (self.hit_rate * hit + (1 - self.hit_rate) * (self.main_s + self.tool_s))

    @property
    def speedup(self) -> float:
        """T_standard / T_spec; 1 where nothing takes any time."""
        return self.standard_s / self.speculative_s if self.speculative_s else 1.0

    @property
    def saved(self) -> float:
        """Share of the time that is saved."""
        return 1 - self.speculative_s / self.standard_s if self.standard_s else 0.0

    @property
    def in_time(self) -> bool:
        """Whether guesses are there before the model's own call, and so are run."""
        return self.guess_s < self.main_s

    @property
    def pays(self) -> bool:
        """Whether time is saved: some guesses hit, they come before the model's own call, and the tool takes time."""
        return self.speculative_s < self.standard_s

    @property
    def best_tool_s(self) -> float:
        """The tool time at which the saving is largest: G − g, or 0."""
        return max(0.0, self.main_s - self.guess_s)


@dataclass(frozen=True)
class EngineSide:
    """The engine-side setting.

    Attributes:
        overhead_s: o, seconds to come back into the engine (network, queue, scheduling).
        prefill_rate: φ, tokens per second.
        decode_rate: δ, tokens per second of one sequence.
        prompt: X, reasoning: R, call: t, output: u, tokens.
        turns: K.
        tool_s: T, seconds.
        cached: share of turns whose result is there when the turn ends.
        drafted: d, share of the tokens of calls that are drafted and accepted.
        prefix_cache: the engine keeps evicted prefixes: only what is new is prefilled.
    """

    overhead_s: float
    prefill_rate: float
    decode_rate: float
    prompt: int
    reasoning: int
    call: int
    output: int
    turns: int
    tool_s: float = 0.0
    cached: float = 1.0
    drafted: float = 1.0
    prefix_cache: bool = False

    def __post_init__(self) -> None:
        check(
            self,
            seconds=("overhead_s", "tool_s"),
            shares=("cached", "drafted"),
            counts=("prompt", "reasoning", "call", "output", "turns"),
            rates=("prefill_rate", "decode_rate"),
        )

    def context(self, turn: int) -> int:
        """C(k): tokens before turn k, counted from 0."""
        return self.prompt + turn * (self.reasoning + self.call + self.output)

    def return_s(self, turn: int) -> float:
        """Seconds to bring a sequence back before turn k: overhead and prefill."""
        new = self.output if self.prefix_cache and turn else self.context(turn)
        return self.overhead_s + new / self.prefill_rate

    @property
    def decode_s(self) -> float:
        """Seconds to decode one turn."""
        return (self.reasoning + self.call) / self.decode_rate

    @property
    def vanilla_s(self) -> float:
        """T_vanilla, seconds, the reading of the last output included."""
        first = self.return_s(0)
        return first + sum(self.decode_s + self.tool_s + self.return_s(k + 1) for k in range(self.turns))

    @property
    def cached_s(self) -> float:
        """T_cached, seconds."""
        hit = self.output / self.prefill_rate
        total = self.return_s(0) + self.turns * self.decode_s
        for k in range(self.turns):
            total += self.cached * hit + (1 - self.cached) * (self.tool_s + self.return_s(k + 1))
        return total

    @property
    def speculative_s(self) -> float:
        """T_spec*, seconds: cached results, and calls drafted from them."""
        saved = self.call / self.decode_rate - self.call / self.prefill_rate
        return self.cached_s - self.turns * self.drafted * max(0.0, saved)

    @property
    def prefill_avoided(self) -> float:
        """Tokens whose prefill staying resident saves."""
        total = 0.0
        for k in range(self.turns):
            total += self.cached * (0 if self.prefix_cache else self.context(k + 1) - self.output)
        return total


@dataclass(frozen=True)
class Price:
    """Prices of one turn, in any one currency.

    Attributes:
        main: of a turn of the main model.
        guess: of one sample of the speculative model.
        tool: of one call of the tool.
    """

    main: float = 0.0
    guess: float = 0.0
    tool: float = 0.0

    def __post_init__(self) -> None:
        check(self, seconds=("main", "guess", "tool"))

    def standard(self) -> float:
        """Of a turn without speculation."""
        return self.main + self.tool

    def speculative(self, hit_rate: float, samples: int, distinct: float = 1.0) -> float:
        """Of a turn with it.

        Args:
            hit_rate: α; a hit pays for no second call of the tool.
            samples: λ.
            distinct: calls run early per turn, after equal guesses fell together.
        """
        return self.main + samples * self.guess + (distinct + (1 - hit_rate)) * self.tool


def sweep(setting: ClientSide, tool_s: list[float]) -> list[ClientSide]:
    """The setting at other tool times."""
    return [replace(setting, tool_s=one) for one in tool_s]


def check(
    setting: object,
    seconds: tuple[str, ...] = (),
    shares: tuple[str, ...] = (),
    counts: tuple[str, ...] = (),
    rates: tuple[str, ...] = (),
) -> None:
    """Refuse figures that mean nothing."""
    infinity = float("inf")
    for names, low, high, expected in (
        (seconds, 0.0, infinity, "a finite number of 0 or more"),
        (shares, 0.0, 1.0, "a number from 0 to 1"),
        (counts, 0, infinity, "a count of 0 or more"),
        (rates, 5e-324, infinity, "a finite number above 0"),
    ):
        for name in names:
            value = getattr(setting, name)
            number = isinstance(value, Integral if names is counts else Real) and not isinstance(value, bool)
            if not number or not low <= value <= high or value == infinity:
                raise SpeculateError("an invalid value", place=name, found=repr(value)[:80], expected=expected)
