"""Locate the faults of a Lark text, word them, and refuse some of them before Lark reads it.

Takes the text and a name for it; every error has the place ``name:line:column``, from 1 on, and shows the line.

Leaves out   what definitions mean (reader.py), where imported files are looked for (imports.py).
Invariants   a place is one of the text. What ``check`` refuses in an imported file has that file's name and line; what
             Lark or the reader refuse of one has the name of the text alone.
Cost         Lark writes every use of a terminal in another out, so ``check`` counts them before: linear in the text and
             in the files that it imports, each of which is counted once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from lark import Token
from lark.exceptions import GrammarError as LarkGrammarError
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ..errors import GrammarError

MOST_NESTED = 100
"""How deep groups of a definition may nest; every one takes frames of the thousand that Python allows."""

_MOST_USES = 100_000  # of terminals in a terminal, and in those that it uses
_MOST_STEPS = 2_000_000  # that Lark takes, nearly: it goes over all uses once for each terminal on the longest way

_TOKEN = re.compile(
    r"""//[^\n]*|\#[^\n]*|"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\/|\\\\|[^/])*?/|(?P<open>[(\[])|(?P<close>[)\]])
    |(?P<definition>\n[ \t]*(?:
        (?:%(?:extend|(?P<override>override))[ \t]+)?(?P<owner>_?[A-Z]\w*)(?=[ \t]*(?:\.[ \t]*-?\d+[ \t]*)?:)
        |%import[ \t]+(?P<relative>\.?)[ \t]*(?P<file>\w+(?:[ \t]*\.[ \t]*\w+)*)[ \t]*
         (?:->[ \t]*(?P<alias>\w+)|\((?P<several>[^()]*)\))?
        |(?=[!?%A-Za-z_])))
    |(?P<terminal>(?<!\w)_?[A-Z]\w*)""",
    re.VERBOSE,
)
"""What a group begins and ends with, names of terminals, what holds neither, and where definitions end; imports."""

Loader = Callable[[str | None, str], tuple[str, str] | None]
"""From the folder of a grammar that imports another beside it, or None, and a file to the file's path and text."""


def _picture(text: str, line: int, column: int) -> str:
    lines = text.split("\n")
    if not 0 < line <= len(lines):
        return ""
    source = lines[line - 1].replace("\t", " ")
    begin = max(0, column - 60)
    shown = source[begin : begin + 100]
    return f"\n    {shown}\n    {' ' * (column - 1 - begin)}^"


_SHOWN = {
    "_NL": "the end of the line", "_NL_OR": "|", "_OR": "|", "_COLON": ":", "_COMMA": ",", "_LPAR": "(", "_RPAR": ")",
    "_LBRA": "[", "_RBRA": "]", "_LBRACE": "{", "_RBRACE": "}", "_DOT": ".", "_DOTDOT": "..", "_TO": "->", "TILDE": "~",
    "OP": "? * or +", "RULE": "a rule name", "TERMINAL": "a terminal name", "STRING": "a string",
    "REGEXP": "a /regexp/", "NUMBER": "a number", "RULE_MODIFIERS": "! or ?", "_IGNORE": "%ignore",
    "_IMPORT": "%import",
    "_DECLARE": "%declare", "_OVERRIDE": "%override", "_EXTEND": "%extend", "$END": "the end of the text",
}  # fmt: skip


def _expected(names: Iterable[str]) -> str:
    shown = list(dict.fromkeys(_SHOWN.get(one, one) for one in sorted(names)))
    return ", ".join(shown[:-1]) + " or " + shown[-1] if len(shown) > 1 else "".join(shown) or "nothing more"


def fault_of(error: BaseException) -> UnexpectedInput | None:
    """The fault in the text that lark complained about: the first of those that led to an error, as it parses faulty
    examples of its own to find the words for it."""
    found, cause = None, error
    while cause is not None:
        found = cause if isinstance(cause, UnexpectedInput) else found
        cause = cause.__context__  # type: ignore[assignment]
    return found


class Source:
    """A Lark text.

    Attributes:
        text: the text.
        name: how errors name it.
        where: the definition that is being read, as "terminal A" or "rule a".
    """

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.where = ""

    def error(self, message: str, line: int = 0, column: int = 0, **fields: Any) -> GrammarError:
        """A fault with its place; with line and column the hint shows it in the text."""
        place = self.name + (f":{line}" if line else "") + (f":{column}" if line and column else "")
        hint = (fields.pop("hint", "") or "") + (_picture(self.text, line, column) if line and column else "")
        return GrammarError(message, place=place, hint=hint or None, **fields)

    def from_lark(self, error: BaseException) -> GrammarError:
        """Lark's own complaint in our form."""
        cause = fault_of(error)
        if isinstance(cause, UnexpectedToken):
            found = "the end of the text" if cause.token.type == "$END" else repr(str(cause.token))
            line, column = cause.line, cause.column
            if cause.token.type in ("_NL", "$END"):
                found = "the end of the line"
                if not isinstance(line, int) or line < 1:
                    line, column = self.text.count("\n") + 1, len(self.text.rsplit("\n", 1)[-1]) + 1
            message = str(error).partition(", at line")[0] if isinstance(error, LarkGrammarError) else ""
            expected = _expected(cause.accepts or cause.expected)
            return self.error(message or "malformed grammar", line, column, found=found, expected=expected)
        if isinstance(cause, UnexpectedCharacters):
            found = repr(cause.char)
            return self.error("malformed grammar", cause.line, cause.column, found=found, expected="a token of Lark")
        if isinstance(error, OSError):
            missing = str(error.filename or "")
            module = re.escape(Path(missing).stem)
            line, column = self.find(rf"(?m)^%import[^\n]*\b{module}\b")
            return self.error("a grammar to import was not found", line, column, found=missing)
        if isinstance(error, RecursionError):
            return self.error("the grammar is nested too deeply")
        message = str(error)
        undefined = re.match(r"Rule '(_?[A-Z][A-Z0-9_]*)'", message)
        if undefined:  # lark names the user of the symbol, not the symbol
            message = message.replace("Rule", "Terminal", 1)
        owner = re.search(r"\(in (?:rule|terminal|template) (\S+?)\)|\(in template (\S+?)\)", message)
        names = re.findall(
            r"'([^']+)'|(?:arguments used for|not defined|Error at|reserved|in terminal|grammar)\W+(\w+)", message
        )
        wanted = [next(filter(None, pair)) for pair in names]
        after = 0
        if owner:
            holder = re.escape(owner[1] or owner[2])
            begin = re.search(rf"(?m)^[!?]*{holder}\b", self.text)
            after = begin.start() if begin else 0
        line = column = 0
        for one in wanted:
            pattern = re.compile(rf"(?<![\w\"/]){re.escape(one)}(?!\w)")
            hits = list(pattern.finditer(self.text, after)) or list(pattern.finditer(self.text))
            if hits:
                hit = hits[-1] if "more than once" in message else hits[0]
                line, column = self.line_of(hit.start())
                break
        return self.error(message.strip().split("\n")[0] or type(error).__name__, line, column)

    def find(self, pattern: str) -> tuple[int, int]:
        """Line and column of the first match, from 1 on; zeros without one."""
        hit = re.search(pattern, self.text)
        return self.line_of(hit.start()) if hit else (0, 0)

    def line_of(self, at: int) -> tuple[int, int]:
        """Line and column of a place in the text."""
        return self.text.count("\n", 0, at) + 1, at - (self.text.rfind("\n", 0, at) + 1) + 1

    def token_error(self, token: Token, message: str, **fields: Any) -> GrammarError:
        """A fault at a token of Lark; one of an imported grammar has lines of another text."""
        line, column = token.line or 0, token.column or 0
        lines = self.text.split("\n")
        here = 0 < line <= len(lines) and lines[line - 1].startswith(str(token).split("\n")[0], column - 1)
        if not here:
            return self.error(message, **fields, hint=f"in {self.where}" if self.where else None)
        return self.error(message, line, column, **fields)

    def check(self, load: Loader, known: dict[str, dict[str, int] | None] | None = None) -> dict[str, int]:
        """Refuse what Lark would not come to an end with, before it reads the text.

        Args:
            load: reads what is imported; what it does not find Lark complains about, or has itself.
            known: what was found in the files that were read before; None of one that is being read.

        Returns:
            Terminal → how many uses of terminals are in it, with those in these.
        """
        known = {} if known is None else known
        depth = 0
        named: list[str] = []
        uses: dict[str, list[str]] = {}
        sizes: dict[str, int] = {}
        for found in _TOKEN.finditer("\n" + self.text):
            kind = found.lastgroup
            if kind == "open":
                depth += 1
                if depth > MOST_NESTED:
                    place = self.line_of(found.start() - 1)
                    raise self.error(f"groups nest more than {MOST_NESTED} deep here", *place)
            elif kind == "close":
                depth -= 1
            elif kind == "definition":
                depth, named = 0, []
                if found["file"]:
                    sizes |= self._imported(found, load, known)
                elif found["owner"]:
                    named = uses.setdefault(found["owner"], named)
                    if found["override"]:
                        named.clear()
                        sizes.pop(found["owner"], None)
            elif kind:
                named.append(found[0])
        sizes = self._check_uses(uses, sizes)
        depth_of: dict[str, int] = {}
        for name in sizes:  # in the order of their uses
            below = [depth_of.get(used, sizes[used]) for used in uses.get(name, ())]
            depth_of[name] = 1 + max(below, default=0) if below else 0
        deepest = max(depth_of, key=depth_of.__getitem__, default="")
        if deepest and depth_of[deepest] * (len(sizes) + sum(sizes.values())) > _MOST_STEPS:
            self.where = f"terminal {deepest}"
            raise self.terminal_error(f"leads through {depth_of[deepest]:,} other terminals, which are too many here")
        return sizes

    def _imported(
        self, statement: re.Match[str], load: Loader, known: dict[str, dict[str, int] | None]
    ) -> dict[str, int]:
        """The sizes, see `check`, of what one statement imports."""
        *folders, last = re.findall(r"\w+", statement["file"])
        if statement["several"] is None:  # else all names of that file
            names = {statement["alias"] or last: last}
        else:
            folders, names = [*folders, last], {name: name for name in re.findall(r"\w+", statement["several"])}
        file = "/".join(folders) + ".lark"
        place = self.line_of(statement.start("file") - 1)
        try:
            read = load(str(Path(self.name).parent) if statement["relative"] else None, file)
        except UnicodeDecodeError as error:
            raise self.error("a grammar to import is not UTF-8", *place, found=f"{file}: {error}") from None
        if read is None:
            return {}
        path, text = read
        sizes = known.get(path)
        if sizes is None:
            if path in known:
                raise self.error("a grammar is imported by what it imports", *place, found=path)
            known[path] = None
            sizes = known[path] = Source(text, path).check(load, known)
        return {name: sizes.get(other, 0) for name, other in names.items()}

    def _check_uses(self, uses: Mapping[str, Iterable[str]], known: Mapping[str, int]) -> dict[str, int]:
        """Refuse terminals that use themselves, or each other too often: every use is written out.

        Args:
            uses: terminal → the terminals in its definition, one for each use.
            known: of others, see `check`.
        """
        try:
            order = list(TopologicalSorter(uses).static_order())
        except CycleError as error:
            name = error.args[1][0]
            raise self.error(f"Recursion in terminal '{name}', which only rules may have", *self.owner(name)) from None
        sizes = dict(known)
        for name in order:
            sizes[name] = sizes.get(name, 0) + sum(1 + sizes[used] for used in uses.get(name, ()))
            if sizes[name] > _MOST_USES:
                self.where = f"terminal {name}"
                raise self.terminal_error(f"has more than {_MOST_USES:,} uses of terminals, with those in these")
        return sizes

    def terminal_error(self, fault: str) -> GrammarError:
        """A fault of the terminal, or of the rule with one in it, that is being read."""
        place = self.owner(self.where.split()[-1])
        return self.error(f"{self.where} {fault}", *place, hint="make rules of some of them")

    def owner(self, name: str) -> tuple[int, int]:
        """Line and column of a definition."""
        hit = re.search(rf"(?m)^[ \t]*[!?]*{re.escape(name)}\b", self.text)
        return self.line_of(hit.end() - len(name)) if hit else (0, 0)
