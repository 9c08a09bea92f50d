"""Lark text to a Grammar: lark parses it and resolves imports, this module turns its trees into expressions.

Leaves out   regular expressions (../regex/parser.py), left recursion (leftrec.py).
Invariants   repetitions stay symbolic; every Terminal made of one plain text is a Literal; the same named terminal is
             one object; nothing of lark's own numbering is kept.
Language     What Lark's Earley parser with ``lexer="dynamic_complete"`` accepts, but for: a zero-width
             terminal is allowed here; a terminal that looks past its edges is read to its longest text, as ``dynamic``
             does (context.py; without ``in_context`` it sees its own text only, and what is ignored may be shorter); of
             a regexp's alternatives any may be taken, where Lark (through ``re``) keeps to
             the first that matches, so ``/a|ab/`` can be ``ab`` here. Lazy repeats stop at the first chance, as there,
             unless they stand inside another repeat. Priorities, aliases and the modifiers ! ? _ do not change the
             language and are dropped. Ignored terminals may stand before every terminal and at the end of the text.
Source       lark 1.3 ``load_grammar.GrammarBuilder`` (its trees before compilation).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
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
from ..errors import BudgetError, GrammarError, ToolcError, UnsupportedError
from ..regex import charset
from .context import in_context as aware
from .fast_reader import END, Algebra, Body, NotPlain, Plain, read_body, read_plain
from .faults import Source, fault_of
from .imports import ImportPath, find, places_of
from .ir import (
    EMPTY,
    NOTHING,
    Expr,
    Grammar,
    Literal,
    Mark,
    Ref,
    Repeat,
    Sequence,
    Special,
    Terminal,
    choice,
    renamed,
    sequence,
)
from .leftrec import without_left_recursion
from .specials import mark_of, meaning, special_of

__all__ = ["read_grammar"]

# Lark reserves names that begin with two underscores, so these clash with none.
_START, _IGNORE = "__start", "__ignore"
_MOST_INSTANCES = 10_000
_MOST_NESTING = 60
_MOST_NODES = 200  # inside of each other in a terminal: three to a group
_MOST_PARTS = 1_000_000  # in a row, or as alternatives, in a terminal
_MOST_KEPT = 20_000

_leaves: dict[str, Expr] = {}
"""Literals, as they are written → what each is in a rule: most of a text's are those of many texts."""

_PLAIN_STRING = re.compile(r'"(?:[^"\\\x00-\x1f\ud800-\udfff]|\\")+"')
"""A string that is what it says, but for quotes."""

_PLAIN_REGEXP = re.compile(  # of an escaped backslash and a quote Lark makes an escaped quote
    r"/(?:[^\\\x00-\x1f]|\\(?:\\(?!\")|[^\\Uuxnftr\"'\x00-\x1f]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[nftr]))+/"
)
_ESCAPE = re.compile(r"\\(?:x(..)|u(....)|.)")
_CONTROL = {"\\n": "\n", "\\f": "\f", "\\t": "\t", "\\r": "\r"}
"""A regular expression in which Lark puts characters in the place of these escapes, and nothing else."""

_LAZY = re.compile(r"[*+?}]\?")


def read_grammar(
    text: str,
    name: str = "<grammar>",
    start: str = "start",
    import_paths: Iterable[ImportPath] = (),
    known: Collection[str] = (),
    terminals: Mapping[str, rx.Regex] | None = None,
    budget: Budget | None = None,
    in_context: bool = False,
) -> Grammar:
    """Read Lark text.

    Args:
        text: the grammar.
        name: how errors name it; with a path, relative imports are looked up beside it.
        start: the rule to start from.
        import_paths: folders (or loaders as lark takes them) for ``%import``, before toolc's own and lark's.
        known: rules that are defined elsewhere, none of which leads back here.
        terminals: those that are not in the text, by name; no repeat in them is lazy.
        budget: limit on time.
        in_context: terminals see the text around them (context.py), as in Lark; else what looks past the edge of a
            terminal sees nothing there.

    Raises:
        BudgetError: it took too many seconds.
        GrammarError: the text is malformed, a name is not defined, or a rule is left-recursive in a way that cannot be
            removed; ``place`` is ``name:line:column``.
        UnsupportedError: a terminal is no regular language, or looks at more of its context than is known.
    """
    budget = budget or Budget(seconds=None)

    def seen(reader: _Reader, grammar: Grammar) -> Grammar:
        grammar = without_left_recursion(grammar, budget)
        return aware(grammar, "" if reader.ignored is None else _IGNORE, reader.place_of) if in_context else grammar

    try:
        given = {one: _named(_as_expr(regex, lazy=False), one) for one, regex in (terminals or {}).items()}
        reader = _Reader(text, name, import_paths, budget, read_plain(text), known, given)
        grammar = reader.grammar(start)
        vars(reader).pop("plain", None)  # which knows the reader: only the collector would find the two
        return seen(reader, grammar)
    except BudgetError:
        raise
    except (NotPlain, ToolcError, RecursionError):  # Lark knows where its tokens are, so it is asked for the words
        budget.check("")
    whole = text + "".join(f'{rule}: "x"\n' for rule in known)
    whole += "".join(f"{one}: /{rx.to_text(regex)}/\n" for one, regex in (terminals or {}).items())
    try:
        reader = _Reader(whole, name, import_paths, budget)
        grammar = reader.grammar(start)
    except RecursionError:
        raise GrammarError("the grammar is nested too deeply", place=name) from None
    rules = {rule: expr for rule, expr in grammar.rules.items() if rule not in known}
    return seen(reader, replace(grammar, rules=rules))


class _Reader:
    """One text. ``ignored`` is what may stand before a terminal; ``instances`` are the templates applied so far."""

    def __init__(
        self, text: str, name: str, import_paths: Iterable[ImportPath], budget: Budget, plain: Plain | None = None,
        known: Iterable[str] = (), terminals: Mapping[str, Expr] | None = None,
    ) -> None:  # fmt: skip
        self.source = Source(text, name)
        self.budget = budget
        self.term_trees: dict[str, Tree | Body | None]
        self.rule_defs: dict[str, tuple[tuple[str, ...], Tree | Body | None]]
        self.names: dict[str, Expr] = {}  # what stands for the names and literals of a plain text
        ignore: Iterable[str] = ()
        if plain is not None:
            self.term_trees, self.rule_defs, self.lines = dict(plain.terminals), dict(plain.rules), plain.lines
            self.names.update((rule, Ref(rule)) for names in (known, plain.rules) for rule in names)
            self.names.update(terminals or {})
            used = {name: [one for one in body if one in plain.terminals] for name, body in plain.terminals.items()}
            self.source.check_uses({name: others for name, others in used.items() if others})
        else:
            built = self.built(import_paths)
            self.term_trees = {str(n): tree for n, (tree, _) in built.term_defs}
            self.rule_defs = {str(n): (tuple(map(str, params)), tree) for n, params, tree, _ in built.rule_defs}
            self.lines = {str(n): n.line for n, *_ in built.rule_defs if isinstance(n, Token) and n.line}
            ignore = built.ignore
        self.terminals: dict[str, Expr] = {}
        self.regexes: dict[int, rx.Regex] = {}
        self.instances: dict[tuple[str, tuple[Expr, ...]], str] = {}
        self.made: set[str] = set()  # their names
        self.used_again: set[str] = set()  # names of those that were there already when a template was used
        self.pending: list[tuple[str, str, tuple[Expr, ...], int]] = []
        self.opened: dict[tuple[str, int], Expr | None] = {}  # see `template`
        self.marks: dict[str, Mark] = {}
        self.nesting = 0
        parts = [self.terminal(one) for one in dict.fromkeys(map(str, ignore))]
        self.ignoring: Expr | None = Repeat(choice(*parts), 0, None) if parts else None
        self.ignored: Expr | None = Ref(_IGNORE) if parts else None

    def built(self, import_paths: Iterable[ImportPath]) -> Any:
        """What Lark makes of the text."""
        paths = places_of(import_paths)
        self.source.check(partial(find, paths))
        builder = GrammarBuilder(False, paths, None)
        try:
            builder.load_grammar(self.source.text, self.source.name)
            return builder.build()
        except (LarkError, OSError, RecursionError, AssertionError) as error:
            raise self.source.from_lark(error) from None
        except TypeError as error:  # of lark's log, which cannot write the state in which a text ended otherwise
            if fault_of(error) is None:
                raise
            raise self.source.from_lark(error) from None

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
            if tree is None:
                why = "declared but not defined" if name in self.term_trees else "used but not defined"
                line, column = self.source.find(rf"(?<![\w\"/]){re.escape(name)}(?!\w)")
                raise self.source.error(f"terminal {name} is {why}", line, column)
            outer, self.source.where = self.source.where, f"terminal {name}"
            found = self.terminals[name] = _named(self.shortest(tree), name)
            self.source.where = outer
        return found

    def regex(self, tree: Any) -> rx.Regex:
        """The definition of a terminal. Lark shares subtrees of terminals, so results are kept by identity."""
        found = self.regexes.get(id(tree))
        if found is None:
            found = self.regexes[id(tree)] = self.plain_regex(tree) if isinstance(tree, list) else self.make_regex(tree)
            parts = (
                found.items if isinstance(found, rx.Concat) else found.options if isinstance(found, rx.Union) else ()
            )
            if len(parts) > _MOST_PARTS:  # as terminals are which use another twice, and that another twice
                raise self.source.terminal_error(
                    f"has more than {_MOST_PARTS:,} parts, with the terminals that it uses"
                )
        return found

    def plain_regex(self, body: Body) -> rx.Regex:
        """The definition of a terminal in a plain text."""

        def leaf(token: str) -> rx.Regex:
            if token[0] in '"/':
                return self.literal_regex(token)
            other = self.term_trees.get(token)
            if other is None:
                raise NotPlain
            return self.regex(other)

        def use(name: str, args: list[rx.Regex]) -> rx.Regex:
            raise NotPlain

        algebra = Algebra({}, leaf, use, lambda items: rx.concat(*items), lambda some: rx.union(*some), rx.repeat)
        return read_body(body, algebra)

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
        """A tree of a terminal, or one's body, as an expression, with lazy repeats that stop at the first chance."""
        if isinstance(tree, list):
            return self.literal(tree[0]) if _is_literal(tree) else self.as_expr(tree)
        one = tree
        while one.data not in ("literal", "maybe") and len(one.children) == 1 and isinstance(one.children[0], Tree):
            one = one.children[0]
        return self.literal(one.children[0]) if one.data == "literal" else self.as_expr(tree)

    def as_expr(self, tree: Any) -> Expr:
        """A tree of a terminal, or one's body, that has parts, as an expression."""
        regex = self.regex(tree)
        if rx.nests_deeper(regex, _MOST_NODES):
            raise self.source.terminal_error("nests too deep, with the terminals that it uses")
        return self.with_shortest(regex)

    def with_shortest(self, regex: rx.Regex, lazy: bool = True) -> Expr:
        """`_as_expr`, whose errors name the terminal."""
        try:
            return _as_expr(regex, lazy)
        except UnsupportedError as error:
            place = self.source.terminal_error("").place
            raise UnsupportedError(error.message, place=place, hint=error.hint) from None

    def literal(self, text: str) -> Expr:
        """A literal as an expression."""
        found = _leaves.get(text)
        if found is None:
            if len(_leaves) >= _MOST_KEPT:
                _leaves.clear()
            if _PLAIN_STRING.fullmatch(text):
                found = Literal(text[1:-1].replace('\\"', '"').encode())
            else:
                said = _ESCAPE.sub(_unescaped, text) if _PLAIN_REGEXP.fullmatch(text) else ""
                found = self.with_shortest(self.literal_regex(text), not said or bool(_LAZY.search(said)))
            _leaves[str(text)] = found
        return found

    def literal_regex(self, text: str) -> rx.Regex:
        if _PLAIN_REGEXP.fullmatch(text) and not isinstance(text, Token):
            return rx.parse_regex(_ESCAPE.sub(_unescaped, text[1:-1]), lazy=True)
        token = text if isinstance(text, Token) else Token("REGEXP" if text.startswith("/") else "STRING", text)
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

    def grammar(self, start: str) -> Grammar:
        rules: dict[str, Expr] = {}
        places = {name: f"{self.source.name}:{line}" for name, line in self.lines.items()}
        for name, (params, tree) in self.rule_defs.items():
            self.budget.check("")
            if not params:
                self.source.where = f"rule {name}"
                if tree is None:
                    raise self.source.error(
                        f"rule {name} is declared but not defined", *self.source.find(rf"\b{re.escape(name)}\b")
                    )
                rules[name] = self.definition(tree, {})
            elif isinstance(tree, list):
                self.check_template(params, tree)
        for body in self.term_trees.values():
            self.budget.check("")
            if isinstance(body, list) and not _is_literal(body):
                self.regex(body)  # used or not: Lark would refuse it
        for made, template, args, nesting in self.pending:  # which adds to them
            self.budget.check("")
            self.nesting = nesting
            params, tree = self.rule_defs[template]
            self.source.where = f"rule {made}"
            rules[made] = self.definition(tree, dict(zip(params, args, strict=True)))
            if template in places:
                places[made] = places[template]
        if start not in rules:
            known = f"the rules {', '.join(list(rules)[:8])}" if rules else "no rules"
            raise self.source.error(f"there is no rule {start} to start from", found=known)
        if self.ignored is not None and self.ignoring is not None:
            rules[_START] = sequence(Ref(start), self.ignored)
            rules[_IGNORE] = self.ignoring
            start = _START
        return Grammar(rules, start, places, marks=self.marks)

    def definition(self, tree: Any, env: dict[str, Expr]) -> Expr:
        """The body of a rule, a tree or tokens, where some names are bound.

        Where it is one use of a template and nothing else, it is what the template says: a rule for that use would be
        one that this rule only names, and every tool has such rules.
        """
        before = len(self.pending)
        if not env and isinstance(tree, list) and tree[1:2] == ["{"] and (found := self.filled(tree)) is not None:
            return found
        expr = self.rule(tree, env)
        while len(self.pending) == before + 1 and isinstance(expr, Ref) and expr.name == self.pending[-1][0]:
            made, template, args, nesting = self.pending[-1]
            if made in self.marks:
                break
            outer, self.nesting = self.nesting, nesting
            params, tree = self.rule_defs[template]
            inner = self.rule(tree, dict(zip(params, args, strict=True)))
            self.nesting = outer
            if made in self.used_again:  # by itself
                break
            del self.pending[before], self.instances[template, args]
            self.made.remove(made)
            expr = inner
        return expr

    def filled(self, body: Body) -> Expr | None:
        """A body that is one use of a template with rules as arguments; None for others, and where it makes rules."""
        name, args, commas = body[0], body[2:-2:2], body[3:-2:2]
        if body[-2] != "}" or len(args) != len(commas) + 1 or not {","}.issuperset(commas):
            return None
        found = tuple([self.names.get(arg) for arg in args])
        if not all(isinstance(one, Ref) for one in found) or (name, found) in self.instances:
            return None
        blanks = [f"#{n}" for n in range(len(args))]
        key = name, len(args)
        if key not in self.opened:
            self.opened[key] = self.template(name, blanks)
        expr = self.opened[key]
        return None if expr is None else renamed(expr, dict(zip(blanks, args, strict=True)))

    def template(self, name: str, blanks: list[str]) -> Expr | None:
        """What a template says of arguments that are filled in later; None where it says so with rules of its own."""
        known, before, nesting = len(self.instances), len(self.pending), self.nesting
        body = [name, "{", *" , ".join(blanks).split(), "}", END]
        try:
            expr = self.definition(body, {blank: Ref(blank) for blank in blanks})
        except (NotPlain, ToolcError):  # which the first use meets again
            expr = None
        made = list(self.instances)[known:]
        for key in made:
            rule = self.instances.pop(key)
            self.made.remove(rule)
            self.marks.pop(rule, None)
        del self.pending[before:]
        self.nesting = nesting
        return None if made else expr

    def rule(self, tree: Any, env: dict[str, Expr]) -> Expr:
        """What a body says, use by use."""
        if not isinstance(tree, list):
            return self.expression(tree, env)
        return read_body(tree, self.algebra(env) if env else self.plain)

    @cached_property
    def plain(self) -> Algebra[Expr]:
        """Of bodies in which no further names are bound."""
        return self.algebra({})

    def algebra(self, env: dict[str, Expr]) -> Algebra[Expr]:
        """Of bodies in which some names are bound."""

        def use(name: str, args: list[Expr]) -> Expr:
            return self.instance(name, tuple(args), env)

        return Algebra(env or self.names, self.plain_leaf, use, _sequence, _choice, _repeat)

    def plain_leaf(self, token: str) -> Expr:
        """What a name or a literal of a plain text stands for."""
        found = self.names.get(token)
        if found is None:
            self.budget.check("")
            if token[0] in '"/':
                found = self.literal(token)
            elif token in self.term_trees:
                found = self.terminal(token)
            else:
                raise NotPlain
            self.names[token] = found
        return found

    def check_template(self, params: tuple[str, ...], body: Body) -> None:
        """Refuse a template, used or not, that Lark would."""

        def use(name: str, args: list[Expr]) -> Expr:
            if name not in params and (name not in self.rule_defs or len(self.rule_defs[name][0]) != len(args)):
                raise NotPlain
            return EMPTY

        if not self.rule_defs.keys().isdisjoint(params):
            raise NotPlain
        env: dict[str, Expr] = dict.fromkeys(params, EMPTY)
        read_body(body, Algebra(env, self.plain_leaf, use, _sequence, _choice, _repeat))

    def expression(self, tree: Any, env: dict[str, Expr]) -> Expr:
        kind, children = tree.data, tree.children
        if kind == "expansions":
            return choice(*(self.expression(child, env) for child in children))
        if kind == "expansion":
            return sequence(*(self.expression(child, env) for child in children))
        if kind == "value":
            return self.value(children[0], env)
        if kind == "alias":
            return self.expression(children[0], env)
        if kind == "maybe":
            return choice(self.expression(children[0], env), EMPTY)
        if kind == "expr":
            low, high = self.bounds(children)
            return _repeat(self.expression(children[0], env), low, high)
        raise self.source.error(f"unexpected {kind} in a rule", hint=f"in {self.source.where}")

    def value(self, item: Any, env: dict[str, Expr]) -> Expr:
        """What may be a template's argument: a name, a literal, a range, another template."""
        if isinstance(item, NonTerminal):
            found = env.get(item.name)
            if found is not None:
                return found
            return Ref(item.name)  # may be a template's name, if a template is the argument
        if isinstance(item, LarkTerminal):
            return env.get(item.name) or self.leaf(self.terminal(item.name))
        if item.data == "template_usage":
            parts: list[Any] = [
                one.children[0] if isinstance(one, Tree) and one.data == "value" else one for one in item.children
            ]
            return self.instance(str(parts[0].name), tuple(self.value(one, env) for one in parts[1:]), env)
        if item.data in ("literal", "range"):
            return self.leaf(self.shortest(item))
        return self.expression(item, env)

    def leaf(self, expr: Expr) -> Expr:
        """A terminal where a rule uses it: what is ignored may stand before it."""
        return expr if self.ignored is None else sequence(self.ignored, expr)

    def instance(self, name: str, args: tuple[Expr, ...], env: dict[str, Expr]) -> Expr:
        """``name{argument, …}``: the rule made for these arguments, where some names are bound."""
        bound = env.get(name)
        if isinstance(bound, Ref):
            name = bound.name
        params = self.rule_defs[name][0] if name in self.rule_defs else ()
        if len(params) != len(args) or not params:
            found, expected = f"{len(args)} arguments", f"{len(params)}" if params else "a template"
            line, column = self.source.find(rf"(?<![\w\"/]){re.escape(name)}\s*\{{")
            raise self.source.error(f"wrong use of template {name}", line, column, found=found, expected=expected)
        kind = meaning(params)
        if kind is not None:
            return self.special(kind, args, name)
        key = (name, args)
        made = self.instances.get(key)
        if made is None:
            if len(self.instances) >= _MOST_INSTANCES or self.nesting >= _MOST_NESTING:
                line, column = self.source.find(rf"(?m)^[!?]*{re.escape(name)}\s*\{{")
                raise self.source.error(
                    f"template {name} makes new instances of itself without end", line, column,
                    found=f"{len(self.instances)} instances, {self.nesting} deep",
                    expected=f"at most {_MOST_INSTANCES}, {_MOST_NESTING} deep",
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
        found = special_of(kind, tuple(map(self._without_ignored, arguments)))
        if found is None:
            line, column = self.source.find(rf"(?<![\w\"/]){re.escape(name)}\s*\{{(?!\w+\}}\s*:)")
            texts = "a string, or a terminal that lists strings, or regular expressions that match some text"
            expected = "one string" if kind in ("_tag", "_token", "_end") else texts
            raise self.source.error(f"wrong argument of {kind}", line, column, expected=expected)
        return self.leaf(found) if isinstance(found, Special) else found

    def _without_ignored(self, argument: Expr) -> Expr:
        """An argument without what %ignore puts before it."""
        if isinstance(argument, Sequence) and argument.items and argument.items[0] == self.ignored:
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


def _unescaped(escape: re.Match[str]) -> str:
    """The character that Lark reads an escape of a regular expression as, or the escape."""
    code = escape[1] or escape[2]
    return chr(int(code, 16)) if code else _CONTROL.get(escape[0], escape[0])


def _is_literal(body: Body) -> bool:
    """Whether a body is one literal."""
    return len(body) == 2 and body[0][0] in '"/'


def _sequence(items: list[Expr]) -> Expr:
    return sequence(*items)


def _choice(options: list[Expr]) -> Expr:
    return choice(*options)


def _repeat(item: Expr, low: int, high: int | None) -> Expr:
    if high == 0 or item == EMPTY:
        return EMPTY
    if (low, high) == (0, 1):
        return choice(item, EMPTY)
    return item if (low, high) == (1, 1) else Repeat(item, low, high)


def _as_expr(regex: rx.Regex, lazy: bool = True) -> Expr:
    """An expression of a terminal; ``lazy``: repeats in it may be."""
    text = rx.literal_text(regex)
    if text:
        return Literal(text.encode("utf-8"))
    if lazy:
        regex = rx.shortest(regex)
    return EMPTY if regex == rx.EMPTY else NOTHING if regex == rx.NOTHING else Terminal(regex)


def _named(expr: Expr, name: str) -> Expr:
    return Terminal(expr.regex, name) if isinstance(expr, Terminal) else expr
