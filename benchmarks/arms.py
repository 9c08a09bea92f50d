"""Give every arm of `benchmarks.answers` one face: a constraint that fills a mask and reads a token.

An arm is ``free``, one of toolc's settings, ``xgrammar`` or ``llguidance``. A setting is ``WHITESPACE``, with ``/any``
for keys in any order, with ``/canonical`` for the option of that name.
The peers get the schemas as toolc reads them, each in an object with ``name`` and ``arguments``, and the blanks of
``spaced``. ``xgrammar/pretty`` demands a new line and two blanks of indentation for each open bracket, as
``json.dumps(…, indent=2)`` writes.

Leaves out   the free arm's end: the caller ends it where a whole call stands.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from toolc.compiler import Options, compile_tools, read_spec
from toolc.runtime import Bundle, Matcher

from .questions import Question


class Constraint(ABC):
    """What one answer may contain."""

    @abstractmethod
    def fill(self, mask: np.ndarray) -> None:
        """Set the bits of the allowed tokens in zeros: uint32 [words]."""

    @abstractmethod
    def read(self, token: int) -> bool:
        """Read an allowed token; whether the answer is over."""

    def forced(self) -> list[int]:
        """The tokens that must come next, if the engine says so."""
        return []


class Toolc(Constraint):
    """toolc's masks."""

    def __init__(self, bundle: Bundle) -> None:
        self.matcher = Matcher(bundle)

    def fill(self, mask: np.ndarray) -> None:
        self.matcher.fill(mask)

    def read(self, token: int) -> bool:
        self.matcher.advance(token)
        return self.matcher.is_finished

    def forced(self) -> list[int]:
        return [] if self.matcher.is_finished else self.matcher.forced().tolist()


class XGrammar(Constraint):
    """XGrammar's masks."""

    def __init__(self, compiled: Any) -> None:
        import xgrammar

        self.matcher = xgrammar.GrammarMatcher(compiled)

    def fill(self, mask: np.ndarray) -> None:
        import torch

        self.matcher.fill_next_token_bitmask(torch.from_numpy(mask.view(np.int32))[None])

    def read(self, token: int) -> bool:
        if not self.matcher.accept_token(token):
            raise RuntimeError(f"XGrammar does not take token {token}, which its mask allows")
        return bool(self.matcher.is_terminated())


class LLGuidance(Constraint):
    """llguidance's masks; it stops before the end of turn where nothing else may come, which is then read as well."""

    def __init__(self, tokenizer: Any, grammar: str, ends: list[int]) -> None:
        import llguidance

        self.ends = ends
        self.matcher = llguidance.LLMatcher(tokenizer, grammar)
        if self.matcher.is_error():
            raise RuntimeError(self.matcher.get_error())

    def fill(self, mask: np.ndarray) -> None:
        import llguidance.numpy

        if self.matcher.is_stopped():
            for end in self.ends:
                mask[end // 32] |= np.uint32(1 << end % 32)
        else:
            llguidance.numpy.fill_next_token_bitmask(self.matcher, mask.view(np.int32)[None])

    def read(self, token: int) -> bool:
        if not self.matcher.is_stopped() and not self.matcher.consume_token(token):
            raise RuntimeError(f"llguidance does not take token {token}, which its mask allows")
        return token in self.ends


def whole(question: Question) -> dict[str, Any]:
    """The JSON Schema of a call, for the peers."""
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": tool.schema},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in read_spec(question.functions).tools
    ]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


class Arms:
    """The constraints of a model.

    Args:
        folder: of the checkpoint;  tokenizer: of `transformers`;  size: how many logits there are.
        ends: the tokens that end a turn.
    """

    def __init__(self, folder: Path, tokenizer: Any, size: int, ends: list[int]) -> None:
        self.folder, self.tokenizer, self.size, self.ends = folder, tokenizer, size, ends

    def constraint(self, arm: str, question: Question) -> Constraint:
        """The constraint of an arm on the answer to a question."""
        if arm in ("xgrammar", "xgrammar/pretty"):
            blanks: dict[str, Any] = {"indent": 2} if arm.endswith("pretty") else {"separators": (", ", ": ")}
            schema = json.dumps(whole(question))
            return XGrammar(self._xgrammar.compile_json_schema(schema, any_whitespace=False, **blanks))
        if arm == "llguidance":
            import llguidance

            blanks = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
            grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(whole(question)), blanks)
            return LLGuidance(self._llguidance, grammar, self.ends)
        blanks, *words = arm.split("/")
        options = Options(
            whitespace=int(blanks) if blanks.isdigit() else blanks,
            key_order="any" if "any" in words else "declared",
            canonical="canonical" in words,
        )
        return Toolc(compile_tools(question.functions, self.folder, options=options).bundle)

    @cached_property
    def _xgrammar(self) -> Any:
        import xgrammar

        info = xgrammar.TokenizerInfo.from_huggingface(self.tokenizer, vocab_size=self.size, stop_token_ids=self.ends)
        return xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    @cached_property
    def _llguidance(self) -> Any:
        import llguidance.hf

        return llguidance.hf.from_tokenizer(self.tokenizer, self.size, self.ends)
