"""Read Lark text: lark parses it and resolves imports, this module turns its trees into expressions.

Leaves out   regular expressions (../regex/parser.py), templates (templates.py), left recursion (leftrec.py).
Invariants   repetitions stay symbolic; every Terminal made of one plain text is a Literal; the same named terminal is
             one object; nothing of lark's own numbering is kept.
Language     What Lark's Earley parser with ``lexer="dynamic_complete"`` accepts, but for: a zero-width
             terminal is allowed here; a terminal that looks past its edges is read to its longest text, as ``dynamic``
             does (context.py; without ``in_context`` it sees its own text only, and what is ignored may be shorter); of
             a regexp's alternatives any may be taken, where Lark (through ``re``) keeps to
             the first that matches, so ``/a|ab/`` can be ``ab`` here. Lazy repeats stop at the first chance, as there,
             unless they stand inside another repeat. Priorities, aliases and the modifiers ! ? _ do not change the
             language and are dropped. Ignored terminals may stand before every terminal and at the end of the text.
             A declared terminal is a special token (specials.py).
Source       lark 1.3 ``load_grammar.GrammarBuilder`` (its trees before compilation).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from typing import Any

from lark import Token, Tree
from lark.exceptions import GrammarError as LarkGrammarError
from lark.exceptions import LarkError
from lark.grammar import NonTerminal
from lark.grammar import Terminal as LarkTerminal
from lark.lexer import PatternStr
from lark.load_grammar import GrammarBuilder, _literal_to_pattern, eval_escaping

from .. import regex as rx
from ..budget import Budget
from ..errors import GrammarError, ToolcError, UnsupportedError
from ..ir.nodes import Expr, Grammar, Ref, Repeat, Special, Terminal, Use, choice, matched, optional, repeated, sequence
from ..regex import charset
from .context import in_context as aware
from .faults import Source, fault_of
from .imports import ImportPath, find, places_of
from .leftrec import without_left_recursion
from .templates import IGNORE, Definitions, apply_templates

__all__ = ["LarkText", "read_grammar"]

_MOST_NODES = 200  # inside of each other in a terminal: three to a group
_MOST_PARTS = 1_000_000  # in a row, or as alternatives, in a terminal


def read_grammar(
    text: str,
    name: str = "<grammar>",
    start: str = "start",
    import_paths: Iterable[ImportPath] = (),
    budget: Budget | None = None,
    in_context: bool = False,
    keeps_left: bool = False,
) -> Grammar:
    """Read Lark text.

    Args:
        text: the grammar.
        name: how errors name it; with a path, relative imports are looked up beside it.
        start: the rule to start from.
        import_paths: folders (or loaders as lark takes them) for ``%import``, before toolc's own and lark's.
        budget: limit on time.
        in_context: terminals see the text around them (context.py), as in Lark; else what looks past the edge of a
            terminal sees nothing there.
        keeps_left: left recursion stays as it is written.

    Raises:
        BudgetError: it took too many seconds.
        GrammarError: the text is malformed, a name is not defined, or a rule is left-recursive in a way that cannot be
            removed; ``place`` is ``name:line:column``.
        UnsupportedError: a terminal is no regular language, or looks at more of its context than is known.
    """
    budget = budget or Budget(seconds=None)
    try:
        lark = LarkText(text, name, import_paths, budget)
        grammar = apply_templates(lark.definitions, start, budget)
        if not keeps_left:
            grammar = without_left_recursion(grammar, budget)
        if not in_context:
            return grammar
        return aware(grammar, "" if lark.ignoring is None else IGNORE, lark.place_of)
    except RecursionError:
        raise GrammarError("the grammar is nested too deeply", place=name) from None


class LarkText:
    """What Lark reads of one text. The text may use rules that stand ``elsewhere``."""

    def __init__(
        self,
        text: str,
        name: str,
        import_paths: Iterable[ImportPath] = (),
        budget: Budget | None = None,
        elsewhere: Iterable[str] = (),
    ) -> None:
        self.source = Source(text, name)
        self.budget = budget or Budget(seconds=None)
        built = self.built(import_paths, elsewhere)
        self.term_trees: dict[str, Tree | None] = {str(n): tree for n, (tree, _) in built.term_defs}
        self.rule_trees: dict[str, Tree | None] = {str(n): tree for n, _, tree, _ in built.rule_defs}
        self.terminals: dict[str, Expr] = {}
        self.regexes: dict[int, rx.Regex] = {}
        self.bodies: dict[str, Expr] = {}
        rules = [(n, params) for n, params, *_ in built.rule_defs if str(n) not in elsewhere]
        self.parameters = {str(n): tuple(map(str, params)) for n, params in rules}
        self.lines = {str(n): n.line for n, _ in rules if isinstance(n, Token) and n.line}
        parts = [self.terminal(one) for one in dict.fromkeys(map(str, built.ignore))]
        self.ignoring = Repeat(choice(*parts), 0, None) if parts else None

    def named(self, name: str, budget: Budget | None = None) -> LarkText:
        """The same text under another name for errors; both share what is read of it."""
        other = copy(self)
        other.source, other.budget = Source(self.source.text, name), budget or Budget(seconds=None)
        return other

    @property
    def definitions(self) -> Definitions:
        """What the text defines."""
        places = {rule: f"{self.source.name}:{line}" for rule, line in self.lines.items()}
        return Definitions(self.parameters, self.body, places, self.ignoring, self.fault)

    def fault(self, message: str, pattern: str, **fields: Any) -> GrammarError:
        """An error where a pattern is found first."""
        line, column = self.source.find(pattern) if pattern else (0, 0)
        return self.source.error(message, line, column, **fields)

    def built(self, import_paths: Iterable[ImportPath], elsewhere: Iterable[str]) -> Any:
        """What Lark makes of the text."""
        paths = places_of(import_paths)
        self.source.check(partial(find, paths))
        builder = GrammarBuilder(False, paths, None)
        try:
            builder.load_grammar(self.source.text + "".join(f"\n{rule}:" for rule in elsewhere), self.source.name)
            return builder.build()
        except (LarkError, OSError, RecursionError, AssertionError) as error:
            if isinstance(error, AssertionError):
                self.refuse_tokens_in_terminals(builder)
            raise self.source.from_lark(error) from None
        except TypeError as error:  # of lark's log, which cannot write the state in which a text ended otherwise
            if fault_of(error) is None:
                raise
            raise self.source.from_lark(error) from None

    def refuse_tokens_in_terminals(self, builder: GrammarBuilder) -> None:
        """Refuse a terminal whose definition uses a declared one, where Lark stops: a token is no text."""
        definitions = builder._definitions
        declared = {name for name, one in definitions.items() if one.is_term and one.tree is None}
        for name, one in definitions.items():
            trees = one.tree.iter_subtrees() if one.is_term and one.tree is not None else ()
            for used in (leaf.name for tree in trees for leaf in tree.children if isinstance(leaf, LarkTerminal)):
                if used in declared:
                    raise self.source.error(
                        f"terminal {name} uses {used}, which %declare makes a special token, and tokens are no text",
                        *self.source.owner(name),
                        hint=f"make {name} a rule",
                    )

    def place_of(self, terminal: str) -> str:
        """Where a terminal stands; of one without a name, where the text is."""
        line, column = self.source.owner(terminal) if terminal else (0, 0)
        return self.source.name + (f":{line}:{column}" if line else "")

    # -- terminals

    def terminal(self, name: str) -> Expr:
        """A named terminal as an expression, made once."""
        found = self.terminals.get(name)
        if found is None:
            self.budget.check("")
            tree = self.term_trees.get(name)
            if tree is None and name in self.term_trees:  # of an imported file the name has that of the file before it
                found = self.terminals[name] = Special(name.rpartition("__")[2] or name, "declared")
                return found
            if tree is None:
                line, column = self.source.find(rf"(?<![\w\"/]){re.escape(name)}(?!\w)")
                raise self.source.error(f"terminal {name} is used but not defined", line, column)
            outer, self.source.where = self.source.where, f"terminal {name}"
            found = self.terminals[name] = _named(self.shortest(tree), name)
            self.source.where = outer
        return found

    def regex(self, tree: Any) -> rx.Regex:
        """The definition of a terminal. Lark shares subtrees of terminals, so results are kept by identity."""
        found = self.regexes.get(id(tree))
        if found is None:
            found = self.regexes[id(tree)] = self.make_regex(tree)
            parts = (
                found.items if isinstance(found, rx.Concat) else found.options if isinstance(found, rx.Union) else ()
            )
            if len(parts) > _MOST_PARTS:  # as terminals are which use another twice, and that another twice
                raise self.source.terminal_error(
                    f"has more than {_MOST_PARTS:,} parts, with the terminals that it uses"
                )
        return found

    def make_regex(self, tree: Any) -> rx.Regex:
        kind, children = tree.data, tree.children
        if kind == "expansions":
            return rx.union(*map(self.regex, children))
        if kind == "expansion":
            return rx.concat(*map(self.regex, children))
        if kind == "value":
            return self.regex(children[0])
        if kind == "literal":
            return self.literal_regex(children[0])
        if kind == "range":
            return self.range_regex(children)
        if kind == "maybe":
            return rx.repeat(self.regex(children[0]), 0, 1)
        if kind == "expr":
            low, high = self.bounds(children)
            return rx.repeat(self.regex(children[0]), low, high)
        if kind == "alias":
            raise self.source.error("an alias in a terminal", found="->", hint=f"in {self.source.where}")
        raise self.source.error(f"{kind.replace('_', ' ')} in a terminal", hint=f"in {self.source.where}")

    def shortest(self, tree: Any) -> Expr:
        """A tree of a terminal as an expression, with lazy repeats that stop at the first chance."""
        regex = self.regex(tree)
        if rx.nests_deeper(regex, _MOST_NODES):
            raise self.source.terminal_error("nests too deep, with the terminals that it uses")
        try:
            return matched(rx.shortest(regex))
        except UnsupportedError as error:
            place = self.source.terminal_error("").place
            raise UnsupportedError(error.message, place=place, hint=error.hint) from None

    def literal_regex(self, token: Token) -> rx.Regex:
        pattern = self.said_by_lark(_literal_to_pattern, token, token)
        flags = "".join(sorted(pattern.flags))
        try:
            if isinstance(pattern, PatternStr):
                return self.string_regex(token, pattern.value, flags)
            return rx.parse_regex(pattern.value, flags, lazy=True)
        except ToolcError as error:
            if self.source.name in (error.place or ""):
                raise
            outer = self.source.token_error(token, error.message)
            place = f"{outer.place} ({error.place})" if error.place else outer.place
            raise type(error)(
                error.message, place=place, found=error.found, expected=error.expected, hint=outer.hint
            ) from None

    def said_by_lark(self, read: Callable[..., Any], written: str, token: Token) -> Any:
        """What one of Lark's functions makes of what is written in a literal."""
        try:
            return read(written)
        except (LarkGrammarError, UnicodeError, ValueError) as error:
            # What Python says of the literal: by way of lark, or not, as its versions differ.
            reason = next((cause.msg for cause in error.args if isinstance(cause, SyntaxError)), "")
            if not reason and not isinstance(error, (LarkGrammarError, UnicodeError)):
                reason = str(error)
            known = f"no literal of Python: {reason.rpartition(': ')[2]}" if reason else str(error.args[0])
            raise self.source.token_error(token, known) from None

    def string_regex(self, token: Token, value: str, flags: str) -> rx.Regex:
        if any(0xD800 <= ord(one) <= 0xDFFF for one in value):
            raise self.source.token_error(token, "a lone surrogate is no text", found=str(token))
        plain = rx.literal(value)
        if "i" not in flags:
            return plain
        items = plain.items if isinstance(plain, rx.Concat) else (plain,)
        both = (charset.ignore_case(one.ranges) for one in items if isinstance(one, rx.Chars))
        return rx.concat(*map(rx.Chars, both))

    def range_regex(self, ends: list[Token]) -> rx.Regex:
        codes: list[int] = []
        for token in ends:
            inner = str(token)[1:-1] if str(token).endswith('"') else ""
            value = str(self.said_by_lark(eval_escaping, inner, token)).replace("\\\\", "\\")
            if len(value) != 1:
                raise self.source.token_error(token, "malformed range", found=str(token), expected="one character")
            codes.append(ord(value))
        if codes[1] < codes[0]:
            found = f"{ends[0]}..{ends[1]}"
            raise self.source.token_error(ends[0], "malformed range", found=found, expected="ends in ascending order")
        return rx.Chars(charset.normal([(codes[0], codes[1])]))

    def bounds(self, children: list[Any]) -> tuple[int, int | None]:
        """Of ``x?``, ``x*``, ``x+``, ``x~3`` or ``x~2..5``."""
        op = str(children[1])
        if op != "~":
            return {"?": (0, 1), "*": (0, None), "+": (1, None)}[op]
        low = int(children[2])
        high = int(children[3]) if len(children) > 3 else low
        if not 0 <= low <= high < rx.MOST_TIMES:
            found = "~" + "..".join(map(str, children[2:]))
            raise self.source.token_error(
                children[1], "malformed repetition", found=found, expected="0 ≤ least ≤ most < 2**29"
            )
        return low, high

    # -- rules

    def body(self, rule: str) -> Expr:
        """The body of a rule or template."""
        found = self.bodies.get(rule)
        if found is None:
            self.budget.check("")
            tree = self.rule_trees[rule]
            self.source.where = f"rule {rule}"
            if tree is None:
                raise self.fault(f"rule {rule} is declared but not defined", rf"\b{re.escape(rule)}\b")
            found = self.bodies[rule] = self.expression(tree)
        return found

    def expression(self, tree: Any) -> Expr:
        kind, children = tree.data, tree.children
        if kind == "expansions":
            return choice(*(self.expression(child) for child in children))
        if kind == "expansion":
            return sequence(*(self.expression(child) for child in children))
        if kind == "value":
            return self.value(children[0])
        if kind == "alias":
            return self.expression(children[0])
        if kind == "maybe":
            return optional(self.expression(children[0]))
        if kind == "expr":
            low, high = self.bounds(children)
            return repeated(self.expression(children[0]), low, high)
        raise self.source.error(f"unexpected {kind} in a rule", hint=f"in {self.source.where}")

    def value(self, item: Any) -> Expr:
        """What may be a template's argument: a name, a literal, a range, another template."""
        if isinstance(item, NonTerminal):
            return Ref(item.name)  # may be a template's name, if a template is the argument
        if isinstance(item, LarkTerminal):
            return self.leaf(self.terminal(item.name))
        if item.data == "template_usage":
            parts: list[Any] = [
                one.children[0] if isinstance(one, Tree) and one.data == "value" else one for one in item.children
            ]
            return Use(str(parts[0].name), tuple(map(self.value, parts[1:])))
        if item.data in ("literal", "range"):
            return self.leaf(self.shortest(item))
        return self.expression(item)

    def leaf(self, expr: Expr) -> Expr:
        """A terminal where a rule uses it: what is ignored may stand before it."""
        return expr if self.ignoring is None else sequence(Ref(IGNORE), expr)


def _named(expr: Expr, name: str) -> Expr:
    return Terminal(expr.regex, name) if isinstance(expr, Terminal) else expr
