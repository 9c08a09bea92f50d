"""SGLang's backend where SGLang is not: masks of bits, and what a request may state. Its base classes are stand-ins."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

from toolc.runtime.adapters.choice import Shelf

from .handmade import bundle

BASE = "sglang.srt.constrained.base_grammar_backend"
ADAPTER = "toolc.runtime.adapters.sglang"


class _Base:
    def __init__(self, *_: Any) -> None:
        pass


class _Invalid:
    def __init__(self, message: str) -> None:
        self.error_message = message


class _Here(Shelf):
    """One bundle under every name."""

    def open(self, name: str) -> Any:
        return bundle("brackets")

    def _find(self, name: str) -> tuple[Any, None]:
        return self.open(name), None


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    parts = BASE.split(".")
    for n in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:n]), ModuleType(parts[n - 1]))
    base = sys.modules[BASE]
    for name, made in {
        "BaseGrammarBackend": _Base,
        "BaseGrammarObject": _Base,
        "InvalidGrammarObject": _Invalid,
        "GrammarStats": lambda: None,
        "register_grammar_backend": lambda *_: None,
    }.items():
        setattr(base, name, made)
    before = sys.modules.pop(ADAPTER, None)
    sglang = importlib.import_module(ADAPTER)
    yield sglang.ToolcBackend(None, 104, None, _Here(""))
    del sys.modules[ADAPTER]
    if before is not None:
        sys.modules[ADAPTER] = before


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_bits_are_applied(backend: Any, dtype: torch.dtype) -> None:
    grammar = backend.dispatch_json('{"toolc_bundle": "x"}')
    mask = grammar.allocate_vocab_mask(104, 2, "cpu")
    assert mask.dtype == torch.int32
    grammar.fill_vocab_mask(mask, 0)
    logits = torch.zeros(2, 104, dtype=dtype)
    grammar.apply_vocab_mask(logits, mask)
    live = torch.isfinite(logits)
    assert live[0].nonzero().view(-1).tolist() == grammar.matcher.allowed_tokens().tolist()
    assert live[1].all()


@pytest.mark.parametrize("budget", [2**63 - 1, 2**63, 10**30])
def test_large_budgets(backend: Any, budget: int) -> None:
    grammar = backend.dispatch_json(f'{{"toolc_bundle": "x", "toolc_budget": {budget}}}')
    free = backend.dispatch_json('{"toolc_bundle": "x"}')
    assert grammar.matcher.allowed_tokens().tolist() == free.matcher.allowed_tokens().tolist()
    assert isinstance(backend.dispatch_json('{"toolc_bundle": "x", "toolc_budget": 1}'), _Invalid)
