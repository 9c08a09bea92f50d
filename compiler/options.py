"""How a bundle is compiled: the options, and the version of the compiler that reads them.

Leaves out   the options of the command line (cli.py), those of a project file (specs/project.py).
Invariants   an option that can change a bundle counts in its key (key.py). Values are in their range, wherever they
             come from.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolc.runtime.expected import expect

from .budget import Budget
from .errors import SpecError

if TYPE_CHECKING:
    from .specs.selection import Selection

BUILTIN = "builtin"
"""The tokenizer that is used where none is named."""


LIMITS = {"whitespace": (0, 9999), "digits": (1, 300), "soft_depth": (1, 512), "max_depth": (1, 64), "jobs": (1, 4096)}
"""Least and most of the options that are numbers."""
WORDS = {"whitespace": ("compact", "spaced", "pretty", "flexible"), "key_order": ("declared", "any")}
"""What may stand for the options that are words."""
RELAXABLE = ("$ref", "format", "multipleOf", "pattern", "patternProperties", "uniqueItems")
"""Keywords that can be relaxed: left out where they cannot be compiled exactly, so that more is allowed, never less."""
LISTS = ("relax", "only", "except", "formats")
"""Options that are lists of words; ``except`` is `Options.but`."""
_SWITCHES = ("named", "strict", "closed", "lenient", "skip", "repair", "subtypes", "canonical", "standalone")
_OPTIONAL = ("digits", "strict", "jobs", "max_depth")


def check_option(name: str, value: Any, place: str) -> None:
    """Refuse a value that an option cannot have.

    Raises:
        SpecError: at ``place``, with what the option takes.
    """
    from .specs.exact_numbers import write_json

    if value is None and name in _OPTIONAL:
        return
    expected = []
    if name in LISTS:
        words = list(value) if isinstance(value, (list, tuple)) else [value]
        known = RELAXABLE if name == "relax" else ()
        if all(isinstance(word, str) and word and (not known or word in known) for word in words):
            return
        plain = "assert, annotate or names of formats" if name == "formats" else "a list of patterns"
        expected.append(f"a list of {', '.join(known)}" if known else plain)
        value = next(word for word in words if not isinstance(word, str) or not word or (known and word not in known))
    if name in _SWITCHES:
        if isinstance(value, bool):
            return
        expected.append("true or false")
    if name in WORDS:
        if isinstance(value, str) and value in WORDS[name]:
            return
        expected.append(", ".join(WORDS[name]))
    if name in LIMITS:
        least, most = LIMITS[name]
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return
        expected.append(f"a whole number from {least} to {most}")
    found = (
        write_json(value, ascii_only=True) if isinstance(value, (str, int, float, Decimal)) else type(value).__name__
    )
    raise SpecError(f"{name} cannot be this", place=place, found=found[:60], expected=" or ".join(expected))


@dataclass(frozen=True)
class Options:
    """How a bundle is compiled.

    Attributes:
        protocol: how calls and responses are written: the name of a protocol or a .lark file; None for plain JSON.
        named: whether every tool gets an entry of its own, for a named tool_choice.
        response: JSON Schema of a structured response, the alternative to a call: entries "response" and "either"; a
            path or text of one; a response format of OpenAI's or a Python type is taken for the schema that it says.
        strict: whether arguments have to meet the schema of their tool, else they are any object; None: as each tool
            says (OpenAI's ``strict``), and they have to where it says nothing.
        closed: whether calls of tools that are strict take no arguments but those that their schemas name, also where
            a schema leaves others open. Objects inside of arguments stay as they are.
        whitespace: blanks between the tokens of JSON: ``"spaced"`` as ``json.dumps`` writes them, a space after ``,``
            and ``:``, or as the protocol's family does; ``"compact"`` none; ``"pretty"`` as ``json.dumps(…, indent=2)``
            writes them; ``"flexible"`` any number, or a number: at most so many in a gap. Before and after a value
            there are none, whatever the option.
        digits: most digits of a number before and after its point; None for the default of the schema stage.
        key_order: ``"declared"``: keys in the order of the schema; ``"any"``: in every order, but for objects with
            conditions and more than 10 keys (fewer beside counts), which keep that of the schema, and are listed.
        soft_depth: nesting up to which recursive parts are free; beyond it only what closes soonest.
        max_depth: of a grammar whose alternatives no stack tells apart, how many rules may be open inside of each other
            where it is not known which; None: such a grammar is refused.
        skip: leave out tools that cannot be compiled, and list them, instead of failing.
        relax: keywords that are left out, and listed, where they cannot be compiled exactly, as ``uniqueItems``: more
            is allowed then, never less.
        lenient: ``skip``, and ``relax`` with all keywords that it takes.
        repair: read what a spec cannot mean as it must be meant, and list that (docs/specs.md, "Repairs").
        subtypes: read a schema of an OpenAPI document that has a discriminator and subtypes as the union of these.
        canonical: where one text alone may follow, allow only the tokens that the tokenizer writes it with, as far as
            `Matcher.forced` knows them; the texts are the same.
        formats: ``"assert"``: formats are enforced; ``"annotate"``: none is; or the names of those that are.
        only: the tools that are compiled, as ``NAME``, ``tag:TAG``, ``method:GET`` or ``path:/v1/*`` with wildcards;
            none: all.
        but: tools that are not compiled, in the same words.
        schemas: where documents are that the spec refers to: a folder, or a function that gives the document at a URI
            or None. Files in the folder of the spec are found without it; nothing is ever fetched.
        standalone: pack the vocabulary into the bundle file.
        budget: limits on states, rows, seconds and bytes.
        jobs: most processes that compile the parts of one spec; None: one for each core. See compiler/link/workers.py.
    """

    protocol: str | Path | None = None
    named: bool = True
    response: Any = None
    strict: bool | None = None
    closed: bool = False
    whitespace: str | int = "spaced"
    digits: int | None = None
    key_order: str = "declared"
    soft_depth: int = 64
    max_depth: int | None = None
    lenient: bool = False
    skip: bool = False
    relax: tuple[str, ...] = ()
    repair: bool = False
    subtypes: bool = False
    canonical: bool = False
    formats: str | tuple[str, ...] = "assert"
    only: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    schemas: str | Path | Callable[[str], Any] | None = None
    standalone: bool = False
    budget: Budget = field(default_factory=Budget)
    jobs: int | None = None

    @property
    def selection(self) -> Selection:
        """Which tools are compiled; to be asked of one spec."""
        from .specs.selection import Selection

        return Selection(self.only, self.but)

    def __post_init__(self) -> None:
        expect(
            self.protocol, (str, os.PathLike, type(None)), "Options.protocol", "the name of a protocol, or a .lark file"
        )
        expect(self.budget, Budget, "Options.budget", "a Budget", {"int": "write Budget(seconds=…)"})
        for name in (*_SWITCHES, *WORDS, *LIMITS):
            check_option(name, getattr(self, name), f"Options.{name}")
        for name in LISTS:
            at = "but" if name == "except" else name
            words = getattr(self, at)
            check_option(name, words, f"Options.{at}")
            object.__setattr__(self, at, (words,) if isinstance(words, str) else tuple(words))
        if self.lenient:
            object.__setattr__(self, "skip", True)
            object.__setattr__(self, "relax", RELAXABLE)
        object.__setattr__(self, "relax", tuple(sorted(set(self.relax))))
        if self.response is not None and not isinstance(self.response, bool):
            from .specs.json_values import check_response
            from .specs.requests import response_schema
            from .specs.source import MAX_BYTES, load_document

            if isinstance(self.response, (str, Path, bytes)):
                object.__setattr__(self, "response", load_document(self.response, "response", MAX_BYTES)[0])
            object.__setattr__(self, "response", response_schema(self.response, "response")[0])
            check_response(self.response)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def version() -> str:
    """The version of the installed distribution."""
    from toolc.runtime.version import __version__

    return __version__
