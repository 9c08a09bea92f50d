"""Hypothesis strategies over a bundle or a spec: texts that its masks allow, texts that they refuse, tokens, calls.

    from hypothesis import given
    from toolc.compiler.testing import calls

    @given(calls("tools.json"))
    def test_my_validator(call):
        validate(call.name, call.arguments)

An example shrinks to the shortest completion of a text, with the fewest tokens on the way there.

Leaves out   running them on the command line (commands/test.py) and under pytest (pytest_plugin.py).
Invariants   every walk is one that `Matcher` allows, ends with the end of turn and keeps to its budget; a valid text is
             the text of a walk; a near miss is refused by `read_calls`, and one edit of a valid text makes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toolc.runtime.calls.events import Call
from toolc.runtime.calls.whole_text import read_whole
from toolc.runtime.expected import expect
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.ops import END_OF_TURN
from toolc.runtime.host.matcher import Matcher
from toolc.runtime.reference import Configuration, Machine, Sequence

from .compiled import Compiled
from .errors import SpecError
from .options import BUILTIN, Options
from .pipeline import compile_tools
from .ways_out import WaysOut

try:
    from hypothesis import assume
    from hypothesis import strategies as st
except ImportError:
    raise SpecError(
        "toolc.compiler.testing needs the package hypothesis", hint="pip install 'toolc[testing]'"
    ) from None

_MORE_TOKENS = 40  # beyond the shortest text, where no budget is stated
_CHARACTERS = '"{}[]:, \\nulaA0-.é<'


def bundle_of(source: Any, tokenizer: Any = BUILTIN, options: Options | None = None) -> Bundle:
    """The bundle that is tested: one that is given, or what a spec compiles to, as `compile_tools` takes it."""
    if isinstance(source, Compiled):
        return source.bundle
    if isinstance(source, Bundle):
        return source
    return compile_tools(source, tokenizer, options=options).bundle


def token_walks(
    source: Any,
    *,
    entry: str = "start",
    budget: int | None = None,
    tokenizer: Any = BUILTIN,
    options: Options | None = None,
) -> st.SearchStrategy[list[int]]:
    """Sequences of tokens that the masks allow, the end of turn at their end.

    Args:
        source: a bundle, or a spec.
        entry: where a text begins.
        budget: most tokens; by default 40 more than the shortest text of this entry needs.
        tokenizer, options: of a spec that is compiled here.
    """
    bundle = bundle_of(source, tokenizer, options)
    least = Matcher(bundle, entry).bundle.min_tokens[entry]
    limit = budget if budget is not None else None if least is None else least + _MORE_TOKENS
    ends = _Ends(bundle, known=least is not None)

    @st.composite
    def walks(draw: st.DrawFn) -> list[int]:
        matcher, read = Matcher(bundle, entry, budget=limit), list[int]()
        mask = np.zeros(bundle.vocab.words, dtype=np.uint32)
        while not matcher.is_finished:
            matcher.fill(mask)
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            count = int(allowed.size)
            anything = count > 1 and (limit is not None or len(read) < _MORE_TOKENS)
            number = draw(st.integers(0, count + count // 4)) if anything else 0  # an end now and then
            token = int(allowed[number - 1]) if 0 < number <= count else -1
            if token < 0:
                close = ends.token(matcher)
                token = close if close in allowed else int(allowed[0])
            matcher.advance(token)
            read.append(token)
        return read

    return walks()


class _Ends:
    """The tokens that lead to the end of a text.

    Args:
        known: there are close tokens; they lead to the shortest completion.
    """

    def __init__(self, bundle: Bundle, known: bool) -> None:
        self.machine = Machine(bundle)
        self._ways = None if known else WaysOut(self.machine)
        vocab = bundle.vocab
        self._single = {
            text[0]: token for token in range(vocab.size - 1, -1, -1) if len(text := vocab.token(token)) == 1
        }
        self._single[END_OF_TURN] = int(bundle.tables.end_of_turn_tokens[0])

    def token(self, matcher: Matcher) -> int:
        """The next token towards the end; -1 where none is known."""
        m = matcher
        if self._ways is not None:
            here = Configuration(self.machine, m.state, m.counter, m.stack, m.register, m.registers)
            return self._single.get(self._ways.next_symbol(here), -1)
        at = Sequence(self.machine, m.state)
        at.counter, at.stack, at.register = m.counter, m.stack, m.register
        return at.close_token()


def text_of(bundle: Bundle, tokens: list[int]) -> str:
    """The text of tokens, without the end of turn: a delimiter that is a token stands under its name."""
    ends = set(bundle.tables.end_of_turn_tokens)
    parts = [bundle.vocab.token(token) or bundle.vocab.shown(token).encode() for token in tokens if token not in ends]
    return b"".join(parts).decode(errors="replace")


def valid_texts(source: Any, **how: Any) -> st.SearchStrategy[str]:
    """Texts that the masks allow from beginning to end; see `token_walks`."""
    bundle = bundle_of(source, how.pop("tokenizer", BUILTIN), how.pop("options", None))
    return (
        token_walks(bundle, **how).map(lambda tokens: text_of(bundle, tokens)).filter(lambda text: "\ufffd" not in text)
    )


def near_misses(source: Any, **how: Any) -> st.SearchStrategy[str]:
    """Texts that are refused, one edit from a valid one: a character is left out, put in or changed, or the end is cut
    off; see `token_walks`."""
    bundle = bundle_of(source, how.pop("tokenizer", BUILTIN), how.pop("options", None))
    entry = how.get("entry", "start")
    texts = valid_texts(bundle, **how)

    @st.composite
    def edited(draw: st.DrawFn) -> str:
        text = draw(texts)
        at = draw(st.integers(0, len(text)))
        character = draw(st.sampled_from(_CHARACTERS))
        kind = draw(st.sampled_from(("cut", "leave out", "put in", "change")))
        if kind == "cut":
            text = text[:at]
        else:
            text = text[:at] + ("" if kind == "leave out" else character) + text[at + (kind != "put in") :]
        _, fault = read_whole(bundle, text, entry)
        assume(fault is not None)
        return text

    return edited()


def calls(source: Any, tool: str | None = None, **how: Any) -> st.SearchStrategy[Call]:
    """Calls, as a model may write them and `read_calls` reads them.

    Args:
        tool: its name; None: any that the entry allows.
        how: as of `token_walks`.
    """
    bundle = bundle_of(source, how.pop("tokenizer", BUILTIN), how.pop("options", None))
    expect(tool, (str, type(None)), "calls(tool)", "the name of a tool")
    if "entry" not in how:
        named = f"tool:{tool}" if tool is not None else "required"
        how["entry"] = named if named in bundle.entry else "required" if "required" in bundle.entry else "start"
    entry = how["entry"]

    def read(tokens: list[int]) -> list[Call]:
        reader, _ = read_whole(bundle, tokens, entry)
        return [call for call in reader.calls if tool is None or call.name == tool]

    some = token_walks(bundle, **how).map(read).filter(bool)
    return some.flatmap(st.sampled_from)
