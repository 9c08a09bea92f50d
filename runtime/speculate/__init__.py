"""Speculative tool calling: run the likely call before the model asks. docs/speculate.md is the way in.

    calls      keys, rules, check                   one key for a call; which may run early; which are valid
    client     tools, executor, agent, openai, responses   runs guesses beside the main request
    drafts     drafting, outputs, turns             what comes next, under the masks; for this engine and others
    engine     sampling, engine, causal             drafts calls, and answers them from a tool cache
    endpoint   chat, service, deltas, server        messages as tokens; OpenAI's API with /cache-tool-output
    worth      equations, trace, chart              what to expect, in numbers and curves
    simulator  clock, simulator                     the client and the engine above on a virtual clock

Leaves out   reading and writing calls: see ../calls/. Models: any OpenAI-compatible endpoint, or a
             causal model of `transformers` in the reference engine.
Invariants   importing this loads nothing; the equations need nothing but the standard library, everything else the
             extra `toolc[speculate]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .check import CallChecker
    from .equations import ClientSide, EngineSide, PaperEngine, Price, Turn
    from .executor import Executor, Limits
    from .keys import Scope
    from .openai import SpeculativeOpenAI
    from .rules import Rules
    from .tools import Toolset, tool

_HOME = {
    "CallChecker": "check",
    "ClientSide": "equations",
    "EngineSide": "equations",
    "PaperEngine": "equations",
    "Executor": "executor",
    "Limits": "executor",
    "Price": "equations",
    "Turn": "equations",
    "Rules": "rules",
    "Scope": "keys",
    "SpeculativeOpenAI": "openai",
    "Toolset": "tools",
    "tool": "tools",
}

__all__ = [
    "CallChecker",
    "ClientSide",
    "EngineSide",
    "Executor",
    "Limits",
    "PaperEngine",
    "Price",
    "Rules",
    "Scope",
    "SpeculativeOpenAI",
    "Toolset",
    "Turn",
    "tool",
]


__getattr__ = lazy_names(globals(), _HOME)
