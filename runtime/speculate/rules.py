"""Which tools there are, and which of them may be run before the model has asked for it.

A guess may be wrong, so what it runs must not matter: only tools that are marked read-only, or marked idempotent and
not destructive, are ever run early. A tool without a mark is not, whatever a model says.

    in a bundle            allowed early
    read_only true         yes
    idempotent true        yes, unless destructive is true or it is an operation of OpenAPI
    anything else          no

OpenAPI gives PUT and DELETE the mark `idempotent` by their method alone: a guessed DELETE would still delete, so there
only `read_only` counts (GET, HEAD, or x-toolc).

Leaves out   reading the marks from specs: see compiler/specs/marks.py. Running: see executor.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..calls.json_text import exact
from .errors import SpeculateError
from .keys import CallKey, Scope, canonical, parse_object

if TYPE_CHECKING:
    from ..format.bundle import Bundle


@dataclass(frozen=True)
class ToolRule:
    """One tool.

    Attributes:
        name: as calls write it.
        early: whether it may be run on a guess.
        version: results of different versions are never mixed.
        defaults: see keys.canonical.
    """

    name: str
    early: bool = False
    version: str = ""
    defaults: Mapping[str, Any] | None = None


class Rules(Mapping[str, ToolRule]):
    """The tools by name."""

    def __init__(self, rules: Iterable[ToolRule]) -> None:
        self._rules = {rule.name: rule for rule in rules}

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Rules:
        """The marks, versions and defaults that the compiler wrote; without a version, the spec's digest is it."""
        spec = bundle.meta.get("spec") or {}
        if not bundle.tools:
            raise SpeculateError(
                "the bundle has no tools, so there are no calls to run early",
                place=bundle.name,
                hint="compile a tools list or an OpenAPI document",
            )
        for tool in bundle.tools:
            if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
                place = f"{bundle.name}#meta/spec/tools"
                raise SpeculateError("not a tool", place=place, found=str(tool)[:60], expected="an object with a name")
        return cls(
            ToolRule(
                tool["name"],
                may_run_early(tool, spec.get("kind") == "openapi" or "operation" in tool),
                tool.get("version") or str(spec.get("digest", "")),
                parse_object(tool["defaults"], bundle.name, exact) if "defaults" in tool else None,
            )
            for tool in bundle.tools
        )

    def __getitem__(self, name: str) -> ToolRule:
        return self._rules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def key(self, scope: Scope, name: str, arguments: Mapping[str, Any] | None) -> CallKey:
        """The key of a call; without arguments, that of any call of the tool.

        Raises:
            SpeculateError: there is no such tool, or the arguments have no canonical form.
        """
        rule = self._rules.get(name)
        if rule is None:
            raise SpeculateError("no such tool", found=repr(name), expected="one of " + ", ".join(sorted(self._rules)))
        text = b"" if arguments is None else canonical(arguments, rule.defaults)
        return CallKey(scope, name, rule.version, text)


def may_run_early(marks: Mapping[str, Any], by_method: bool = False) -> bool:
    """Whether marks allow a tool to be run on a guess.

    Args:
        marks: read_only, idempotent, destructive; each may be absent.
        by_method: the marks come from HTTP methods, of which only reading is safe.
    """
    if marks.get("read_only") is True:
        return marks.get("destructive") is not True
    return marks.get("idempotent") is True and marks.get("destructive") is not True and not by_method
