"""A grammar backend for SGLang: `--grammar-backend toolc`, once toolc is installed beside it.

SGLang loads the entry point `toolc` of the group `sglang.srt.plugins` in every process, which calls `register`. A
request's `json_schema`, `structural_tag` (which SGLang also makes of `tools`), `regex` or `ebnf` is compiled, where
toolc.compiler is installed. A `json_schema` or `structural_tag` may also be {"toolc_bundle": "weather", "toolc_entry":
"required"}, a bundle that was compiled before (see choice.py). SGLang does not tell a grammar its request's
`max_new_tokens`: a budget is stated as `toolc_budget`.

Leaves out   the masks: see matcher.py and rows.py. Free text before the end of reasoning: SGLang's own wrapper does
             that, as for its other backends, but for bundles whose entry reads the reasoning itself.
Invariants   what is refused is refused as `InvalidGrammarObject`, with the text of the error; nothing is approximated.
             SGLang keeps grammars by the text of the request: one of a named bundle counts only while the name means
             the same bundle, and a refusal of a name not at all. Requests that wait or run keep what they got.
Masks        while sampling, row numbers (int64), which the device looks up; for draft trees, whose masks SGLang reads
             on the host, bits (int32).
Source       SGLang 0.5.23: srt/constrained/base_grammar_backend.py, srt/speculative/spec_utils.py.
"""

from __future__ import annotations

import json
import threading
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarStats,
    InvalidGrammarObject,
    register_grammar_backend,
)

from ..calls.json_text import exact
from ..device.masks import mask_logits_
from ..errors import DecodeError, ToolcError
from ..format.bundle import Bundle
from ..format.entries import entry_state
from ..format.width import LogitsWidth
from ..host.matcher import Matcher
from .choice import Shelf, memory_limit
from .rows import RowTable, most_numbers

NAME = "toolc"
ANY_OBJECT = "$$ANY$$"
REFUSED = (ToolcError, ValueError, OSError, RecursionError)  # what a request may lead to
COMPILERS = "toolc.compilers"  # entry points: the runtime does not import the compiler
HOW: dict[str, dict[str, str]] = {"json_schema": {}, "structural_tag": {}, "regex": {}, "ebnf": {"syntax": "ebnf"}}
"""What a request may give, by its parameter: an entry point, and what else that is told."""


class ToolcGrammar(BaseGrammarObject):
    """One request.

    Args:
        matcher: that has read its tokens.
        backend: whose tables it uses.
        reads_reasoning: whether the text of the matcher holds the reasoning.
        named: the name that the request gave, and the bundle that it meant; None for a schema.
    """

    def __init__(
        self,
        matcher: Matcher,
        backend: ToolcBackend,
        reads_reasoning: bool = False,
        named: tuple[str, Bundle] | None = None,
    ) -> None:
        super().__init__()
        self.named = named
        self.matcher = matcher
        self.backend = backend
        self.reads_reasoning = reads_reasoning
        self.grammar_stats = GrammarStats()
        self._moved: list[bool] = []  # of each token accepted, whether the matcher read it: padding it does not

    def accept_token(self, token: int) -> None:
        """Raises ValueError, and nothing has changed, if the token is not allowed."""
        before = len(self.matcher)
        if not self.matcher.is_finished:
            try:
                self.matcher.advance(token)
            except DecodeError as error:
                raise ValueError(str(error)) from error
        self.current_token = token
        self._moved.append(len(self.matcher) > before)

    def rollback(self, k: int) -> None:
        if not 0 <= k <= len(self._moved):
            raise DecodeError("cannot roll back", found=f"{k} tokens", expected=f"0 to {len(self._moved)}")
        if k:
            self.matcher.rollback(sum(self._moved[-k:]))
            del self._moved[-k:]

    def is_terminated(self) -> bool:
        return self.matcher.is_finished

    def copy(self) -> ToolcGrammar:
        twin = ToolcGrammar(self.matcher.fork(), self.backend, self.reads_reasoning, self.named)
        twin._moved = list(self._moved)
        return twin

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        return self.backend.allocate_vocab_mask(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        self.backend.fill(self.matcher, vocab_mask[idx])

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        raise NotImplementedError("masks are not reused: initialize_vocab_mask_buffer gives none")

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    def apply_vocab_mask(self, logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        self.backend.apply_vocab_mask(logits, vocab_mask)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that must follow, as far as it is whole characters; None if there is none, or within a budget: cut
        into tokens anew, it may take more of them than are left."""
        if self.matcher.left is not None:
            return None
        probe, forced = self.matcher.fork(), b""
        while len(following := probe.expected_bytes()) == 1 and not probe.expected_special():
            forced += following
            probe.advance_bytes(following)
        text = forced.decode("utf-8", errors="ignore")
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        return helper[1], -1

    def is_current(self) -> bool:
        """Whether the request's name still means the same bundle."""
        return self.named is None or self.backend.means(*self.named)

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        same = 0
        while same < min(len(old_output_ids), len(new_output_ids)) and old_output_ids[same] == new_output_ids[same]:
            same += 1
        self.rollback(len(old_output_ids) - same)
        for token in new_output_ids[same:]:
            self.accept_token(token)


class _Current:
    """A backend that takes a grammar from SGLang's cache only while it counts; see `Invariants`."""

    def get_cached_or_future_value(self, key: tuple[str, str], require_reasoning: bool) -> tuple[Any, bool]:
        held = self.cache.get(key)  # type: ignore[attr-defined]
        held = getattr(held, "grammar", held)  # within SGLang's wrapper for reasoning
        if isinstance(held, ToolcGrammar):
            counts = held.is_current()
        else:
            counts = not (isinstance(held, InvalidGrammarObject) and "toolc_bundle" in key[1])
        if not counts:
            del self.cache[key]  # type: ignore[attr-defined]
        return super().get_cached_or_future_value(key, require_reasoning)  # type: ignore[misc]


class ToolcBackend(_Current, BaseGrammarBackend):
    """Makes grammars of requests.

    Args:
        tokenizer: SGLang's; schemas are compiled for the files that it was loaded from.
        vocab_size: columns of the logits.
        eos_token_ids: what ends a turn, for schemas.
        shelf: where bundles lie; the folders of $TOOLC_BUNDLES if None.
    """

    def __init__(self, tokenizer: Any, vocab_size: int, eos_token_ids: Any = None, shelf: Shelf | None = None) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._ends = sorted(eos_token_ids or ())
        self._shelf = shelf or Shelf()
        self._lock = threading.Lock()
        self._vocab: Any = None
        self._width = 1
        self._rows: RowTable | None = None

    # ------------------------------------------------------------ requests

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        return self._dispatch("json_schema", '{"type": "object"}' if key_string == ANY_OBJECT else key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        return self._dispatch("structural_tag", key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        return self._dispatch("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        return self._dispatch("ebnf", key_string)

    def _dispatch(self, kind: str, text: str) -> BaseGrammarObject:
        """The grammar of a request's parameter, a key of `HOW`, or why there is none."""
        try:
            value: Any = text
            if kind in ("json_schema", "structural_tag"):
                value = json.loads(text, parse_float=exact)
                if isinstance(value, dict) and "toolc_bundle" in value:
                    return self._chosen(value)
            return self._grammar(self._compiled(kind, value))
        except REFUSED as error:
            return InvalidGrammarObject(str(error))

    def _chosen(self, value: dict[str, Any]) -> ToolcGrammar:
        choice = self._shelf.choose(value)
        assert choice is not None
        name = str(value["toolc_bundle"])
        return self._grammar(choice.bundle, choice.entry, choice.within(None), (name, self._shelf.open(name)))

    def means(self, name: str, bundle: Bundle) -> bool:
        """Whether a name means a bundle now."""
        try:
            return self._shelf.open(name) is bundle
        except REFUSED:
            return False  # whoever asks for it anew is told why

    def _compiled(self, kind: str, value: Any) -> Bundle:
        """The bundle of a schema, structural tag, regular expression or grammar: see `HOW`."""
        try:
            (found,) = entry_points(group=COMPILERS, name=kind)
            compile_ = found.load()
        except (ValueError, ImportError) as error:
            raise DecodeError(
                f"{kind} cannot be compiled here",
                found=f"no entry point {kind} of the group {COMPILERS}, or none that loads ({error})",
                hint='install toolc with its compiler, or compile before and give {"toolc_bundle": …}',
            ) from error
        with self._lock:
            if self._vocab is None:
                self._vocab = self._shelf.vocab  # with the ends of turn of the bundles that are served
            if self._vocab is None:
                ends: dict[str, Any] = {"eos": self._ends, "logits_width": self._vocab_size}
                bundle: Bundle = compile_(value, self._tokenizer.name_or_path, **ends, **HOW[kind]).bundle
                self._vocab = bundle.vocab
                return bundle
        return compile_(value, self._vocab, **HOW[kind]).bundle

    def _grammar(
        self, bundle: Bundle, entry: str = "start", budget: int | None = None, named: tuple[str, Bundle] | None = None
    ) -> ToolcGrammar:
        """Raises DecodeError if the logits are too narrow or too wide for the vocabulary."""
        LogitsWidth(bundle.vocab).check(self._vocab_size, [bundle])
        self._shelf.admit(bundle)
        state = entry_state(bundle, entry)
        reasoning = {n for name, n in bundle.entry.items() if name.endswith(("/inside", "/outside"))}
        with self._lock:
            self._width = max(self._width, most_numbers(bundle))
        return ToolcGrammar(Matcher(bundle, entry, budget), self, state in reasoning, named)

    # ------------------------------------------------------------ masks

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Masks that allow everything, on the host: of row numbers, or of bits where the masks stay there."""
        where = torch.device(device)
        if where.type == "cpu":
            return torch.full((batch_size, -(-vocab_size // 32)), -1, dtype=torch.int32)
        return self.table(where).blank(batch_size, self._width)

    def table(self, device: torch.device) -> RowTable:
        """The rows on the device; there is one device."""
        if self._rows is None:
            self._rows = RowTable(device, memory_limit())
        return self._rows

    def fill(self, matcher: Matcher, mask: torch.Tensor) -> None:
        """Write a matcher's mask, in either form."""
        if mask.dtype == torch.int64:
            assert self._rows is not None
            self._rows.fill(matcher, mask)
        else:
            words = mask.numpy().view(np.uint32)
            words[:] = 0
            matcher.fill(words)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        return vocab_mask.to(device, non_blocking=True)

    def apply_vocab_mask(self, logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        if vocab_mask.dtype == torch.int64:
            assert self._rows is not None
            self._rows.apply_(logits, vocab_mask)
        else:
            size = min(logits.shape[1], 32 * vocab_mask.shape[1])
            mask_logits_(logits, vocab_mask, size, (vocab_mask != -1).any(1))


def make(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> BaseGrammarBackend:
    """What SGLang calls where `--grammar-backend toolc` is given."""
    from sglang.srt.runtime_context import get_serving

    backend = ToolcBackend(tokenizer, vocab_size, eos_token_ids)
    if not get_serving().reasoning_parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    class Reasoned(_Current, ReasonerGrammarBackend):
        """SGLang's wrapper, but for grammars that read the reasoning themselves."""

        def _make_grammar_object(self, grammar: Any, reasoning: bool) -> Any:
            if isinstance(grammar, ToolcGrammar) and grammar.reads_reasoning:
                return grammar
            return super()._make_grammar_object(grammar, reasoning)

    parser = ReasoningParser(model_type=get_serving().reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    return Reasoned(backend, parser, tokenizer, enable_strict_thinking=get_serving().enable_strict_thinking)


def register() -> None:
    """Make the backend known to SGLang; what the entry point calls."""
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices

    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, make)
