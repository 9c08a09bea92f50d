"""How a bundle is compiled: the options, and the version of the compiler that reads them.

Leaves out   the options of the command line (cli.py), those of a project file (specs/project.py).
Invariants   an option that can change a bundle counts in its key (key.py).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from .budget import Budget

BUILTIN = "builtin"
"""The tokenizer that is used where none is named."""


@dataclass(frozen=True)
class Options:
    """How a bundle is compiled.

    Attributes:
        protocol: how calls are written: the name of a protocol or a .lark file; None for plain JSON. Not for schemas.
        named: whether every tool gets an entry of its own, for a named tool_choice.
        response: JSON Schema of a structured response, the alternative to a call: entries "response" and "either".
        strict: whether arguments have to meet the schema of their tool, else they are any object; None: as each tool
            says (OpenAI's ``strict``), and they have to where it says nothing.
        whitespace: blanks between the tokens of JSON: ``"compact"`` none, ``"spaced"`` exactly as ``json.dumps`` writes
            them, ``"flexible"`` any number, or a number: at most so many in a gap.
        digits: most digits of a number before and after its point; None for the default of the schema stage.
        key_order: ``"declared"``: keys in the order of the schema; ``"any"``: in every order, or refused where an
            object has too many keys.
        soft_depth: nesting up to which recursive parts are free; beyond it only what closes soonest.
        lenient: drop keywords that cannot be compiled, and list them, instead of failing.
        standalone: pack the vocabulary into the bundle file.
        budget: limits on states, rows, seconds and bytes.
        jobs: most processes that compile the parts of one spec; None: one for each core. See docs/architecture.md.
    """

    protocol: str | Path | None = None
    named: bool = True
    response: dict[str, Any] | bool | None = None
    strict: bool | None = None
    whitespace: str | int = 8
    digits: int | None = None
    key_order: str = "declared"
    soft_depth: int = 64
    lenient: bool = False
    standalone: bool = False
    budget: Budget = field(default_factory=Budget)
    jobs: int | None = None


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def version() -> str:
    """The version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("toolc")
    except PackageNotFoundError:
        return "unknown"
