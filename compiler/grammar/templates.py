"""Apply the templates of a grammar to their arguments, use by use.

Leaves out   where definitions come from: Lark text (reader.py), schemas (../schema); what toolc's own templates mean
             (specials.py).
Invariants   a template makes one rule for each list of arguments; a rule that is one use of a template and nothing
             else gets the template's body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..budget import Budget
from ..errors import GrammarError, ToolcError
from ..ir.nodes import Expr, Grammar, Literal, Mark, Ref, Sequence, Special, Terminal, Use, rebuilt, renamed, sequence
from .specials import mark_of, meaning, special_of

# Lark reserves names that begin with two underscores, so these clash with none.
_START, IGNORE = "__start", "__ignore"
# Instances: so many, or _MOST_EACH for each that rules ask for, as some protocols have one for every parameter.
_MOST_INSTANCES = 10_000
_MOST_EACH = 10
_MOST_NESTING = 60


def _fault(message: str, pattern: str, **fields: Any) -> GrammarError:
    return GrammarError(message, **fields)


@dataclass(frozen=True)
class Definitions:
    """Rules and templates.

    Attributes:
        parameters: of each, by name; none of a rule.
        body: gives the body of one.
        places: where they stand, for errors.
        ignoring: what may stand before every terminal.
        fault: (message, a pattern of Lark text, fields) → an error that names the place of the text.
    """

    parameters: Mapping[str, tuple[str, ...]]
    body: Callable[[str], Expr]
    places: Mapping[str, str] = field(default_factory=dict)
    ignoring: Expr | None = None
    fault: Callable[..., GrammarError] = _fault

    def joined(self, rules: Mapping[str, Expr], places: Mapping[str, str]) -> Definitions:
        """These definitions and further rules; what is ignored may stand before the terminals of these, too."""
        own = rules
        if self.ignoring is not None:
            own = {name: _ignoring(expr) for name, expr in rules.items()}

        def body(name: str) -> Expr:
            found = own.get(name)
            return self.body(name) if found is None else found

        parameters = {**self.parameters, **dict.fromkeys(rules, ())}
        return Definitions(parameters, body, {**self.places, **places}, self.ignoring, self.fault)


def definitions_of(rules: Mapping[str, Expr], places: Mapping[str, str]) -> Definitions:
    """Definitions without templates."""
    return Definitions(dict.fromkeys(rules, ()), rules.__getitem__, places)


def apply_templates(
    definitions: Definitions, start: str, budget: Budget, terminals: Mapping[str, Expr] | None = None
) -> Grammar:
    """The grammar in which every template is applied.

    Args:
        terminals: those that rules refer to by name.

    Raises:
        BudgetError: it took too many seconds.
        GrammarError: there is no such start, a template is used wrongly, or makes instances of itself without end.
    """
    return _Application(definitions, budget, terminals or {}).grammar(start)


def _ignoring(expr: Expr) -> Expr:
    """An expression in which what is ignored stands before every terminal."""
    if isinstance(expr, (Literal, Terminal)) or (isinstance(expr, Ref) and expr.name.isupper()):
        return sequence(Ref(IGNORE), expr)
    return rebuilt(expr, _ignoring)


class _Application:
    """Of one grammar. ``instances`` are the templates applied so far."""

    def __init__(self, definitions: Definitions, budget: Budget, terminals: Mapping[str, Expr]) -> None:
        self.definitions = definitions
        self.parameters, self.body, self.fault = definitions.parameters, definitions.body, definitions.fault
        self.budget = budget
        self.terminals = terminals
        self.instances: dict[tuple[str, tuple[Expr, ...]], str] = {}
        self.made: set[str] = set()  # their names
        self.used_again: set[str] = set()  # names of those that were there already when a template was used
        self.pending: list[tuple[str, str, tuple[Expr, ...], int]] = []
        self.opened: dict[tuple[str, int], Expr | None] = {}  # see `template`
        self.marks: dict[str, Mark] = {}
        self.nesting = 0
        self.asked = 0  # instances that rules ask for; templates ask for all others

    def grammar(self, start: str) -> Grammar:
        rules: dict[str, Expr] = {}
        places = dict(self.definitions.places)
        for name, params in self.parameters.items():
            if not params:
                self.budget.check("")
                rules[name] = self.definition(self.body(name), {})
        for made, template, args, nesting in self.pending:  # which adds to them
            self.budget.check("")
            self.nesting = nesting
            rules[made] = self.definition(*self.bound(template, args))
            if template in places:
                places[made] = places[template]
        if start not in rules:
            known = f"the rules {', '.join(list(rules)[:8])}" if rules else "no rules"
            raise self.fault(f"there is no rule {start} to start from", "", found=known)
        if self.definitions.ignoring is not None:
            rules[_START] = sequence(Ref(start), Ref(IGNORE))
            rules[IGNORE] = self.definitions.ignoring
            start = _START
        return Grammar(rules, start, places, marks=self.marks)

    def bound(self, template: str, args: tuple[Expr, ...]) -> tuple[Expr, dict[str, Expr]]:
        """The body of a template, and what its parameters stand for."""
        return self.body(template), dict(zip(self.parameters[template], args, strict=True))

    def definition(self, expr: Expr, env: dict[str, Expr]) -> Expr:
        """The body of a rule where some names are bound.

        Where it is one use of a template and nothing else, it is what the template says: a rule for that use would be
        one that this rule only names, and every tool has such rules.
        """
        before = len(self.pending)
        if not env and type(expr) is Use and (found := self.filled(expr)) is not None:
            return found
        expr = self.applied(expr, env)
        while len(self.pending) == before + 1 and isinstance(expr, Ref) and expr.name == self.pending[-1][0]:
            made, template, args, nesting = self.pending[-1]
            if made in self.marks:
                break
            outer, self.nesting = self.nesting, nesting
            inner = self.applied(*self.bound(template, args))
            self.nesting = outer
            if made in self.used_again:  # by itself
                break
            del self.pending[before], self.instances[template, args]
            self.made.remove(made)
            expr = inner
        return expr

    def filled(self, use: Use) -> Expr | None:
        """A use of a template with rules as arguments; None for others, and where it makes rules."""
        names = [one.name for one in use.arguments if type(one) is Ref and one.name not in self.terminals]
        if len(names) < len(use.arguments) or (use.template, use.arguments) in self.instances:
            return None
        blanks = [f"#{n}" for n in range(len(names))]
        key = use.template, len(names)
        if key not in self.opened:
            self.opened[key] = self.template(use.template, blanks)
        expr = self.opened[key]
        return None if expr is None else renamed(expr, dict(zip(blanks, names, strict=True)))

    def template(self, name: str, blanks: list[str]) -> Expr | None:
        """What a template says of arguments that are filled in later; None where it says so with rules of its own."""
        known, before, nesting = len(self.instances), len(self.pending), self.nesting
        env: dict[str, Expr] = {blank: Ref(blank) for blank in blanks}
        try:
            expr = self.definition(Use(name, tuple(env.values())), env)
        except ToolcError:  # which the first use meets again
            expr = None
        made = list(self.instances)[known:]
        for key in made:
            rule = self.instances.pop(key)
            self.made.remove(rule)
            self.marks.pop(rule, None)
        del self.pending[before:]
        self.nesting = nesting
        return None if made else expr

    def applied(self, expr: Expr, env: Mapping[str, Expr]) -> Expr:
        """An expression with the instances of its templates, where some names are bound."""
        if type(expr) is Ref:
            found = env.get(expr.name)
            return self.terminals.get(expr.name, expr) if found is None else found
        if type(expr) is Use:
            return self.instance(expr.template, tuple([self.applied(one, env) for one in expr.arguments]), env)
        return rebuilt(expr, lambda part: self.applied(part, env))

    def instance(self, name: str, args: tuple[Expr, ...], env: Mapping[str, Expr]) -> Expr:
        """``name{argument, …}``: the rule made for these arguments, where some names are bound."""
        bound = env.get(name)
        if isinstance(bound, Ref):
            name = bound.name
        params = self.parameters.get(name, ())
        if len(params) != len(args) or not params:
            found, expected = f"{len(args)} arguments", f"{len(params)}" if params else "a template"
            use = rf"(?<![\w\"/]){re.escape(name)}\s*\{{"
            raise self.fault(f"wrong use of template {name}", use, found=found, expected=expected)
        kind = meaning(params)
        if kind is not None:
            return self.special(kind, args, name)
        key = (name, args)
        made = self.instances.get(key)
        if made is None:
            self.asked += self.nesting == 0
            most = max(_MOST_INSTANCES, _MOST_EACH * self.asked)
            if len(self.instances) >= most or self.nesting >= _MOST_NESTING:
                raise self.fault(
                    f"template {name} makes new instances of itself without end",
                    rf"(?m)^[!?]*{re.escape(name)}\s*\{{",
                    found=f"{len(self.instances)} instances, {self.nesting} deep",
                    expected=f"at most {most}, {_MOST_NESTING} deep",
                )  # fmt: skip
            made = f"{name}{{{','.join(_short(arg) for arg in args)}}}"
            if made in self.made:
                made += f"#{len(self.made)}"
            self.made.add(made)
            self.instances[key] = made
            mark = mark_of(params)
            if mark is not None:
                self.marks[made] = mark
            self.pending.append((made, name, args, self.nesting + 1))
        else:
            self.used_again.add(made)
        return Ref(made)

    def special(self, kind: str, arguments: tuple[Expr, ...], name: str) -> Expr:
        """A use of one of the templates that toolc itself gives a meaning: see specials.py."""
        found = special_of(kind, tuple(map(_without_ignored, arguments)))
        if found is None:
            use = rf"(?<![\w\"/]){re.escape(name)}\s*\{{(?!\w+\}}\s*:)"
            texts = "a string, or a terminal that lists strings, or regular expressions that match some text"
            expected = "one string" if kind in ("_tag", "_token", "_end") else texts
            if kind == "_indented":
                expected = r"a new line and repeated blanks, as /\n(?:  )*/"
            raise self.fault(f"wrong argument of {kind}", use, expected=expected)
        ignoring = self.definitions.ignoring is not None and isinstance(found, Special)
        return sequence(Ref(IGNORE), found) if ignoring else found


def _without_ignored(argument: Expr) -> Expr:
    """An argument without what %ignore puts before it."""
    if isinstance(argument, Sequence) and argument.items and argument.items[0] == Ref(IGNORE):
        return argument.items[-1]
    return argument


def _short(expr: Expr) -> str:
    """An argument in the name of an instance."""
    if isinstance(expr, Ref):
        return expr.name
    if isinstance(expr, Sequence) and expr.items:
        return _short(expr.items[-1])
    if isinstance(expr, Literal):
        return '"' + expr.data.decode("utf-8", "replace")[:20] + '"'
    return getattr(expr, "name", "") or "…"
