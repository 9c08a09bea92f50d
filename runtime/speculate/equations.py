"""What speculation is worth, as equations. Times are seconds, rates tokens per second, counts tokens.

Client side, N turns, each a generation and a tool call:

    T_standard = N (G + T)
    T_spec     = α N max(G, min(g, G) + T) + (1 − α) N (G + T)

G is the time of the main model, g that of the speculative one (of the first right guess), T that of the tool, α the
share of turns whose call was guessed. A guess that is not there at G is cancelled, and the call runs as it would have:
so nothing is lost for g > G, where the paper, which takes g < G, has max(G, g + T). Lemma 1: T_standard / T_spec ≤ 2
for α ≤ 1, with equality in the limit α = 1, T = G, g = 0, since max(G, g + T) ≥ (G + T) / 2. The bound is tighter where
g and T are known: max(G, g + T) ≥ (G + g + T) / 2, so T_standard / T_spec ≤ 2 − 2 g / (G + g + T).

Engine side as the paper has it (`PaperEngine`). K turns; in turn i the context is X_i tokens, the model writes R_i
tokens of reasoning and a call of t_i tokens, and the tool takes T_i and answers with t_(o,i) tokens, so X_(i+1) = X_i +
t_i + t_(o,i): earlier reasoning is dropped. A token costs φ seconds to prefill and δ to decode; each turn goes into the
engine and out of it, o seconds each way. T_cached keeps prefixes in a cache and guesses nothing, so it is T_spec* for
α = 0:

    T_vanilla = 2 K o + φ Σ X_i + δ Σ (R_i + t_i) + Σ T_i                                      (equation 4)
    T_cached  = 2 K o + φ (X_1 + Σ (t_i + t_(o,i))) + δ Σ (R_i + t_i) + Σ T_i                  (equation 5)
    T_spec*   = (1 − α) 2 K o + φ (X_1 + Σ (t_i + t_(o,i))) + δ (α K + Σ R_i + (1 − α) Σ t_i)
                + (1 − α) Σ T_i                                                                (equation 6)

Engine side of this engine (`EngineSide`), which keeps reasoning in its context, and whose guesses may be there in some
turns and drafted in part: K turns, each R tokens of reasoning and a call of t tokens, answered by u tokens of output,
after a prompt of X tokens. The context before turn k is C(k) = X + k (R + t + u); φ and δ are tokens a second. A
sequence that leaves the engine for its tool comes back at the price of the overhead o and of a prefill; one whose
result was there in time stays resident:

    T_vanilla  = o + X / φ + Σ [(R + t) / δ + T + o + C(k + 1) / φ]
    T_resident = o + X / φ + Σ [(R + t) / δ] + Σ over hits [u / φ] + Σ over misses [o + C(k + 1) / φ + T]
    T_spec     = T_resident, with d t / φ in place of d t / δ, d the share of the tokens of calls that were drafted and
                 accepted: they are verified in the pass that decodes the token before them

The last turn's tool counts as the others' do, and its result is read: K turns, and K + 1 times a context.

Leaves out   measuring: see simulator.py and benchmarks/speculate_*.py.
Source       arXiv 2512.15834, sections on client-side and engine-side analysis. `EngineSide` is written from its
             quantities, term by term as the simulation counts them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from numbers import Integral, Real

from .errors import SpeculateError

BOUND = 2.0
"""Lemma 1: no client-side speed-up is larger. `ClientSide.bound` is tighter."""


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
    def bound(self) -> float:
        """Lemma 1 for this G, g and T: no share of hits makes the speed-up larger."""
        guess = min(self.guess_s, self.main_s)
        whole = self.main_s + guess + self.tool_s
        return BOUND - 2 * guess / whole if whole else BOUND

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
    def resident_s(self) -> float:
        """T_resident, seconds."""
        hit = self.output / self.prefill_rate
        total = self.return_s(0) + self.turns * self.decode_s
        for k in range(self.turns):
            total += self.cached * hit + (1 - self.cached) * (self.tool_s + self.return_s(k + 1))
        return total

    @property
    def speculative_s(self) -> float:
        """T_spec, seconds: results that are there in time, and calls drafted from them."""
        saved = self.call / self.decode_rate - self.call / self.prefill_rate
        return self.resident_s - self.turns * self.drafted * max(0.0, saved)

    @property
    def prefill_avoided(self) -> float:
        """Tokens whose prefill staying resident saves."""
        total = 0.0
        for k in range(self.turns):
            total += self.cached * (0 if self.prefix_cache else self.context(k + 1) - self.output)
        return total


@dataclass(frozen=True)
class Turn:
    """One turn of the paper's engine side.

    Attributes:
        reasoning: R_i, call: t_i, output: t_(o,i), tokens.
        tool_s: T_i, seconds.
    """

    reasoning: int
    call: int
    output: int
    tool_s: float = 0.0

    def __post_init__(self) -> None:
        check(self, seconds=("tool_s",), counts=("reasoning", "call", "output"))


@dataclass(frozen=True)
class PaperEngine:
    """The paper's engine side: equations 4 to 6.

    Attributes:
        overhead_s: o, seconds into the engine, and as many out of it.
        prefill_s: φ, decode_s: δ, seconds a token.
        prompt: X_1, tokens.
        turns: in their order.
        hit_rate: α, share of turns whose result was cached before the call was written.
    """

    overhead_s: float
    prefill_s: float
    decode_s: float
    prompt: int
    turns: tuple[Turn, ...]
    hit_rate: float = 0.0

    def __post_init__(self) -> None:
        check(self, seconds=("overhead_s", "prefill_s", "decode_s"), shares=("hit_rate",), counts=("prompt",))

    @property
    def contexts(self) -> list[int]:
        """X_i, tokens, of every turn."""
        grown = accumulate((turn.call + turn.output for turn in self.turns), initial=self.prompt)
        return list(grown)[:-1]

    @property
    def _new(self) -> int:
        """Tokens that are prefilled where prefixes are kept."""
        return self.prompt + sum(turn.call + turn.output for turn in self.turns)

    @property
    def vanilla_s(self) -> float:
        """T_vanilla, equation 4, seconds."""
        written = sum(turn.reasoning + turn.call for turn in self.turns)
        away = 2 * len(self.turns) * self.overhead_s + sum(turn.tool_s for turn in self.turns)
        return away + self.prefill_s * sum(self.contexts) + self.decode_s * written

    @property
    def cached_s(self) -> float:
        """T_cached, equation 5, seconds: a prefix cache, and nothing guessed."""
        return self.vanilla_s - self.prefill_s * (sum(self.contexts) - self._new)

    @property
    def speculative_s(self) -> float:
        """T_spec*, equation 6, seconds."""
        miss, turns = 1 - self.hit_rate, self.turns
        away = miss * (2 * len(turns) * self.overhead_s + sum(turn.tool_s for turn in turns))
        calls = self.hit_rate * len(turns) + miss * sum(turn.call for turn in turns)
        written = sum(turn.reasoning for turn in turns) + calls
        return away + self.prefill_s * self._new + self.decode_s * written


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
