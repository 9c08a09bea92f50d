"""Generate the names of tools in a side prompt: a prompt that lists tools, read only when one is called.

    text = generate(bundle, model, prompt, side_prompt)

A model writes in its own context until the mark that opens a call (``<T>``). Then the caller builds the side prompt.
Behind that, under the bundle, the model writes the name alone, until no other name is possible. What it wrote is put
back behind the mark. The rest of the name is forced then, and the arguments follow in the model's own context, which so
never holds the list of tools.

Leaves out   `generate` of transformers: see adapters/side_prompt.py.
Invariants   nothing behind the name is chosen in the side prompt, and nothing of the name outside of it: a token that
             holds more than the mark, or than the name, is cut there. The text is one of the bundle.
Source       Zhang et al. 2023, arXiv 2310.07075, appendix A.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .calls.reader import Reader
from .errors import DecodeError
from .host.matcher import Matcher

if TYPE_CHECKING:
    from .format.bundle import Bundle

Model = Callable[[Sequence[int]], np.ndarray]
"""All tokens so far → the logits of the next one, [V] or wider."""
SidePrompt = Callable[[list[int]], Sequence[int]]
"""The tokens of the text up to the mark that opens a call → the tokens of the side prompt."""


def generate(
    bundle: Bundle,
    model: Model,
    prompt: Sequence[int],
    side_prompt: SidePrompt,
    *,
    entry: str = "start",
    budget: int | None = None,
    choose: Callable[[np.ndarray], int] = lambda logits: int(logits.argmax()),
) -> list[int]:
    """One text of a bundle, names of tools generated in side prompts.

    Args:
        bundle: of a protocol with the entry "opened", where a name follows the mark that opens a call.
        model: gives logits.
        prompt: the tokens of the model's own context.
        side_prompt: builds the side prompt of a call; it ends where the name begins.
        entry: where the text begins.
        budget: most tokens of the text; see `Matcher`. Tokens of side prompts do not count.
        choose: a token from the logits, in which those that are masked are -inf.

    Returns:
        The tokens of the text, the end of turn last.

    Raises:
        DecodeError: the bundle's protocol has no such mark, or the budget is too small.
    """
    calls = Calls(bundle, entry, budget)
    text: list[int] = []
    while not calls.matcher.is_finished:
        tokens = calls.read(choose(masked(model([*prompt, *text]), calls.matcher.fill, bundle)))
        text += tokens
        if not calls.is_opened:
            continue
        side, name = list(side_prompt([*text])), calls.name()
        while not name.is_settled:
            name.read(choose(masked(model([*side, *name.tokens]), name.matcher.fill, bundle)))
        text += calls.put_back(name)
    return text


def masked(logits: np.ndarray, fill: Callable[[np.ndarray], None], bundle: Bundle) -> np.ndarray:
    """A copy of the logits, -inf where a mask allows no token."""
    bits = np.empty(bundle.vocab.words, dtype=np.uint32)
    fill(bits)
    allowed = np.unpackbits(bits.view(np.uint8), bitorder="little")[: bundle.vocab.size].astype(bool)
    found = np.full(logits.shape, -np.inf, dtype=np.float32)
    size = min(len(allowed), len(logits))
    found[:size] = np.where(allowed[:size], logits[:size], -np.inf)
    return found


class Calls:
    """A text that is being generated, and where in it a call opens.

    Args:
        bundle, entry, budget: as of `generate`.

    Attributes:
        matcher: has read the text.
        is_opened: the text ends with the mark that opens a call, so the name comes next.
    """

    def __init__(self, bundle: Bundle, entry: str = "start", budget: int | None = None) -> None:
        marks = dict(bundle.meta["delimiters"])
        if "opened" not in bundle.meta["entry"] or len(marks) != 1:
            raise DecodeError(
                "names can be generated in a side prompt only where they follow the mark that opens a call",
                place=bundle.name,
                found=f"the protocol {bundle.meta['protocol'] or 'of plain JSON'}",
                expected="a protocol with the entry opened, as toolkengpt",
            )
        ((mark, self._token),) = marks.items()
        self._mark = mark.encode()
        self._reader = Reader(bundle, entry)
        self.bundle = bundle
        self.matcher = Matcher(bundle, entry, budget)
        self.is_opened = False

    def read(self, token: int) -> list[int]:
        """Read a token of the text.

        Returns:
            The token; where it holds more than the mark, tokens for what it holds up to the end of the mark.
        """
        held, tokens = self.bundle.vocab.token(token), [token]
        self.is_opened = token == self._token
        if self._token is None and self._reader.open is None:
            before = self._reader.data
            at = (before + held).find(self._mark, max(0, len(before) - len(self._mark) + 1))
            if at >= 0:
                self.is_opened = True
                cut = at + len(self._mark) - len(before)
                tokens = [token] if cut == len(held) else spelled(self.bundle, held[:cut])
        self._advance(tokens)
        return tokens

    def _advance(self, tokens: list[int]) -> None:
        for token in tokens:
            self.matcher.advance(token)
            self._reader.feed(token)

    def name(self) -> Name:
        """The name that comes next, to be generated in a side prompt."""
        return Name(self.bundle, self.matcher.fork())

    def put_back(self, name: Name) -> list[int]:
        """Read what was generated of the name; its tokens."""
        tokens = name.inside()
        self._advance(tokens)
        self.is_opened = False
        return tokens


class Name:
    """A name that is being generated.

    Attributes:
        matcher: has read it, and what the last token holds behind it.
        tokens: those that were read.
        is_settled: no other name is possible.
    """

    def __init__(self, bundle: Bundle, matcher: Matcher) -> None:
        chosen = bundle.meta.get("subset")
        self._names = [str(tool["name"]).encode() for tool in bundle.tools if chosen is None or tool["name"] in chosen]
        self.bundle, self.matcher, self.tokens = bundle, matcher, list[int]()
        self._text = self._name = b""
        self.is_settled = False
        self._settle()

    def read(self, token: int) -> None:
        """Read a token of the side prompt's text."""
        self.matcher.advance(token)
        self.tokens.append(token)
        self._text += self.bundle.vocab.token(token)
        self._settle()

    def _settle(self) -> None:
        possible = [name for name in self._names if name.startswith(self._text)]
        if not possible:  # the last token went on behind a name
            possible = [max((name for name in self._names if self._text.startswith(name)), key=len)]
        self.is_settled = len(possible) == 1
        self._name = possible[0]

    @property
    def chosen(self) -> str:
        """The name; one of those that are possible before it is settled."""
        return self._name.decode()

    def inside(self) -> list[int]:
        """The tokens that were read, without what the last one holds behind the name."""
        if len(self._text) <= len(self._name):
            return self.tokens
        before = self._text[: -len(self.bundle.vocab.token(self.tokens[-1]))]
        return self.tokens[:-1] + spelled(self.bundle, self._name[len(before) :])


def spelled(bundle: Bundle, text: bytes) -> list[int]:
    """Tokens of a text, the longest first.

    Raises:
        DecodeError: no tokens spell it.
    """
    by_text = _texts_of(bundle)
    tokens = []
    while text:
        size = next((n for n in range(min(len(text), by_text.most), 0, -1) if text[:n] in by_text.token), 0)
        if not size:
            raise DecodeError("no token begins this text", place=bundle.name, found=repr(text))
        tokens.append(by_text.token[text[:size]])
        text = text[size:]
    return tokens


class _Texts:
    """Text → token, of a vocabulary; the longest text."""

    def __init__(self, bundle: Bundle) -> None:
        vocab = bundle.vocab
        special = set(bundle.tables.special_token.tolist())
        texts = {vocab.token(n): n for n in range(vocab.size - 1, -1, -1) if n not in special}
        texts.pop(b"", None)
        self.token, self.most = texts, max(map(len, texts), default=0)


_known: dict[str, _Texts] = {}


def _texts_of(bundle: Bundle) -> _Texts:
    """The same of a bundle, kept for the vocabulary that was asked for last."""
    digest = bundle.vocab.digest
    if digest not in _known:
        _known.clear()
        _known[digest] = _Texts(bundle)
    return _known[digest]
