"""Write structural tags as rules: tags around values, free text up to a trigger, sequences and choices of these.

    {"type": "structural_tag", "format": {"type": "tag", "begin": …, "content": {…}, "end": …}}
    {"type": "structural_tag", "structures": [{"begin": …, "schema": …, "end": …}], "triggers": […]}     the older form

A string of such a document is written as the tokenizer's special tokens where it holds any, else as text. Free text has
no special token in it. Up to a trigger it is the shortest text that ends with one: which tag follows is known there.

Leaves out   rules of schemas (../schema), Lark text and regular expressions (embedded.py), where the document stands
             (toolc.runtime.serving.requests).
Invariants   a document is compiled as XGrammar reads it, or refused at its pointer. Arguments in tags of their own are
             written as the family's protocol writes them.
Source       XGrammar 0.2.8, structural_tag.py and cpp/structural_tag.cc; vLLM 0.33, entrypoints/openai/protocol.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeGuard

from toolc.runtime.expected import did_you_mean
from toolc.runtime.serving.requests import STRUCTURAL_TAG

from .. import regex as rx
from ..budget import Budget
from ..errors import SpecError
from ..ir.nodes import EMPTY, Expr, Literal, Ref, choice, optional, repeated, sequence, string
from ..schema import LarkWriter, SchemaOptions
from ..schema.encoding import JSON_ENCODING
from ..specs.json_text import parse_json
from ..specs.model import escape, shown, want
from .argument_encoding import marked
from .arguments import channel_of, encoding_of
from .cached_reader import read_pieces
from .embedded import Embedded, at_place, lark_grammar, regex_of
from .protocol import Protocol, load_protocol, parse_protocol

_KEYS = {
    "const_string": ("value",),
    "json_schema": ("json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"),
    "qwen_xml_parameter": ("json_schema",),
    "regex": ("pattern",),
    "grammar": ("grammar",),
    "any_text": ("excludes", "max_tokens", "max_chars"),
    "token": ("token",),
    "sequence": ("elements",),
    "or": ("elements",),
    "optional": ("content",),
    "plus": ("content",),
    "star": ("content",),
    "repeat": ("min", "max", "content"),
    "tag": ("begin", "content", "end"),
    "triggered_tags": ("triggers", "tags", "at_least_one", "stop_after_first", "excludes"),
    "tags_with_separator": ("tags", "separator", "at_least_one", "stop_after_first"),
    "dispatch": ("rules", "loop", "excludes"),
}
"""Formats → their keys beside ``type``."""
_TOKENS = {
    "exclude_token": "write any_text; toolc keeps special tokens out of text",
    "any_tokens": "write any_text; toolc keeps special tokens out of text",
    "token_triggered_tags": "write triggered_tags with the content of the token as the trigger: it is matched as token",
    "token_dispatch": "write dispatch with the content of the token as the pattern: it is matched as token",
}
"""Formats of tokens, whose text does not matter → what to write instead."""
_STYLES = {
    "qwen_xml": "qwen3_coder",
    "minimax_xml": "minimax_m2",
    "minimax_m3_xml": "minimax_m3",
    "deepseek_xml": "deepseek_v32",
    "deepseek_v4_1_xml": "deepseek_v41",
    "glm_xml": "glm45",
    "cohere_xml": "cohere_cmd5",
    "kimi_k3_xml": "kimi_k3",
}
"""Styles of arguments → the protocol whose parameters are written so."""
_PARAMETER = re.compile(r"(?m)^((?:text_)?parameter\{[^}]*\}):(.*)$")
_MOST_CHARS = 4096  # of free text that has to end before a string
_MOST_TIMES = 1 << 29


Last = bool | None
"""Whether a text ends with something; None: not here, though it would end where a token in it ends the turn."""


def is_structural_tag(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a structural tag, and no schema."""
    return isinstance(value, dict) and value.get("type") == STRUCTURAL_TAG


class StructuralTag:
    """The rules of one document.

    Attributes:
        embedded: the rules, with the grammars in them.
        writers: of schemas whose rules are among these; what they report of the schemas counts.
        free: whether a grammar that people wrote is in it.
    """

    def __init__(
        self, document: dict[str, Any], name: str, pointer: str, writer: LarkWriter, options: SchemaOptions,
        budget: Budget | None, as_lark: Callable[[str, str, str], str],
    ) -> None:  # fmt: skip
        """
        Args:
            document: a structural tag.
            name: how errors call the file.
            pointer: where it stands there.
            writer: of values in JSON.
            options: how values are laid out.
            budget: limits.
            as_lark: (a grammar, what it is written in, how errors call it) → its Lark text.
        """
        self._as_lark = as_lark
        self.name, self.options = name, options
        self.budget = budget or Budget(seconds=None)
        self.embedded = Embedded("_tagged")
        self.writers: list[LarkWriter] = []
        self.free = False
        self._json = writer
        self._others: dict[tuple[str, SchemaOptions], tuple[LarkWriter, Protocol | None]] = {}
        self._roots: list[tuple[tuple[str, SchemaOptions], str, str, str]] = []
        self._stops: dict[tuple[str, ...], Ref] = {}
        self._contents: dict[str, Expr] = {}  # of tags, which stand once in the document
        self.root = self._whole(document, pointer)
        self._embed()

    @property
    def root_rule(self) -> str:
        """The rule of its texts."""
        self.embedded.rules["_tagged"] = self.root
        return "_tagged"

    # -- documents

    def _at(self, pointer: str) -> str:
        return f"{self.name}#{pointer}"

    def _whole(self, document: dict[str, Any], pointer: str) -> Expr:
        if "format" in document:
            self._only(document, ("type", "format"), pointer)
            return self.format(document["format"], f"{pointer}/format", (), True)
        if "structures" not in document:
            raise SpecError(
                "the structural tag has no format", place=self._at(pointer), expected="format",
                hint="or structures and triggers, the older form",
            )  # fmt: skip
        self._only(document, ("type", "structures", "triggers", "at_least_one"), pointer)
        tags = []
        for tag, at in self._list(document, "structures", pointer):
            want(tag, dict, self._at(at), "a structure: begin, schema, end")
            self._only(tag, ("begin", "schema", "end"), at)
            schema = {} if tag.get("schema", "") is None else self._need(tag, "schema", at)  # as SGLang has it
            if isinstance(schema, str):
                schema = parse_json(schema, self._at(f"{at}/schema"))
            content = {"type": "json_schema", "json_schema": schema}
            new = {"type": "tag", "begin": self._need(tag, "begin", at), "content": content}
            tags.append(({**new, "end": self._need(tag, "end", at)}, at, f"{at}/schema"))
        triggers = self._strings(document, "triggers", pointer)
        return self._triggered(tags, triggers, (), True, False, self._flag(document, "at_least_one", pointer), pointer)

    def format(self, value: Any, at: str, ends: tuple[str, ...], last: Last) -> Expr:
        """A format.

        Args:
            value: of the document.
            at: its pointer.
            ends: what ends the tag around it.
            last: whether the text ends with it, see `Last`.
        """
        self.budget.check("", place=self._at(at))
        want(value, dict, self._at(at), f"a format: an object of type {', '.join(_KEYS)}")
        kind = value.get("type")
        if kind in _TOKENS:
            raise SpecError(
                f"the format {kind} is about tokens whatever their text", place=self._at(f"{at}/type"),
                found=shown(kind), hint=_TOKENS[kind],
            )  # fmt: skip
        if not isinstance(kind, str) or kind not in _KEYS:
            raise SpecError(
                "no such format", place=self._at(f"{at}/type" if "type" in value else at),
                found=shown(kind) if "type" in value else "no type",
                expected=", ".join(_KEYS), hint=did_you_mean(kind, _KEYS),
            )  # fmt: skip
        self._only(value, ("type", *_KEYS[kind]), at)
        make: Callable[[dict[str, Any], str, tuple[str, ...], Last], Expr] = getattr(self, f"_{kind}")
        return make(value, at, ends, last)

    # -- formats of one text

    def _const_string(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        return self._words(self._text(value, "value", at), last)

    def _json_schema(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        style = "json" if value.get("style") is None else self._text(value, "style", at)
        if style != "json" and style not in _STYLES:
            known = ("json", *_STYLES)
            raise SpecError(
                "no such style", place=self._at(f"{at}/style"), found=shown(style), expected=", ".join(known),
                hint=did_you_mean(style, known),
            )  # fmt: skip
        if self._strings(value, "excludes", at, needed=False):
            raise SpecError(
                "strings are not kept out of the values of a schema",
                place=self._at(f"{at}/excludes"),
                hint="write a pattern into the schema, as ^(?!.*</tool_call>)",
            )
        options = self.options
        if self._flag(value, "any_order", at):
            options = replace(options, key_order="any")
        if value.get("max_whitespace_cnt") is not None:
            options = replace(options, whitespace=self._number(value, "max_whitespace_cnt", at, 9999))
        found = self._schema(self._need(value, "json_schema", at), f"{at}/json_schema", style, options)
        return found if style == "json" else self._lines_behind(found, ends)

    def _qwen_xml_parameter(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        found = self._schema(self._need(value, "json_schema", at), f"{at}/json_schema", "qwen_xml", self.options)
        return self._lines_behind(found, ends)

    def _lines_behind(self, arguments: Expr, ends: tuple[str, ...]) -> Expr:
        """Arguments in tags of their own, and a new line where what ends the tag around has none."""
        return arguments if any(one.startswith("\n") for one in ends) else sequence(arguments, optional(string("\n")))

    def _regex(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        pattern = self._text(value, "pattern", at)
        return self.embedded.terminal(regex_of(pattern, self._at(f"{at}/pattern"), "ecma"))

    def _grammar(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        text, place = self._text(value, "grammar", at), self._at(f"{at}/grammar")
        self.free = True
        if re.search(r"(?m)^[ \t]*[A-Za-z_][\w.-]*[ \t\r\n]*::=", text):
            with at_place(place):
                text = self._as_lark(text, "ebnf", "grammar")
        return self.embedded.grammar(lark_grammar(text, place, self.budget), place)

    def _any_text(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        stops = [*self._strings(value, "excludes", at, needed=False), *ends]
        if value.get("max_tokens") is not None:
            raise SpecError(
                "toolc does not count the tokens of one part of a text", place=self._at(f"{at}/max_tokens"),
                hint="write max_chars, or give the whole answer a budget when decoding",
            )  # fmt: skip
        if value.get("max_chars") is None:
            return self._free(stops)
        most = self._number(value, "max_chars", at, _MOST_TIMES - 1)
        if not stops:
            return repeated(self.embedded.terminal(rx.ANY), 0, most)
        if most > _MOST_CHARS:
            raise SpecError(
                "so long a text is not counted while strings are kept out of it", place=self._at(f"{at}/max_chars"),
                found=str(most), expected=f"at most {_MOST_CHARS:,}",
            )  # fmt: skip
        kept_out = rx.union(*[rx.concat(rx.repeat(rx.ANY, 0, None), rx.literal(one)) for one in stops])
        return self.embedded.terminal(rx.concat(rx.Look(kept_out, negative=True), rx.repeat(rx.ANY, 0, most)))

    def _token(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        token = value.get("token")
        if isinstance(token, int) and not isinstance(token, bool):
            raise SpecError(
                "a token is named by its content", place=self._at(f"{at}/token"), found=str(token),
                expected='text, as "<tool_call>"',
            )  # fmt: skip
        return self.embedded.use("_last_token" if last else "_token", Literal(self._text(value, "token", at).encode()))

    # -- formats of several

    def _sequence(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        *before, (final, there) = self._list(value, "elements", at)
        parts = [self.format(one, here, ends, False) for one, here in before]
        return sequence(*parts, self.format(final, there, ends, last))

    def _or(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        return choice(*[self.format(one, here, ends, last) for one, here in self._list(value, "elements", at)])

    def _optional(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        return optional(self.format(self._need(value, "content", at), f"{at}/content", ends, last))

    def _plus(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        return repeated(self.format(self._need(value, "content", at), f"{at}/content", ends, False), 1, None)

    def _star(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        return repeated(self.format(self._need(value, "content", at), f"{at}/content", ends, False), 0, None)

    def _repeat(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        low = self._number(value, "min", at, _MOST_TIMES - 1)
        high = None if value.get("max") == -1 else self._number(value, "max", at, _MOST_TIMES - 1)
        if high is not None and high < low:
            raise SpecError("max is less than min", place=self._at(f"{at}/max"), found=str(high), expected=f"≥ {low}")
        return repeated(self.format(self._need(value, "content", at), f"{at}/content", ends, False), low, high)

    def _tag(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last, schema_at: str = "") -> Expr:
        begin, inner = self._begin(value, at), self._ends(value, at)
        return sequence(begin, self._inside(value, at, inner, last, schema_at))

    def _inside(self, tag: dict[str, Any], at: str, ends: list[str] | None, last: Last, schema_at: str) -> Expr:
        """What stands behind the beginning of a tag; ``ends`` None where a token ends it."""
        content, here = self._need(tag, "content", at), f"{at}/content"
        body = self._contents.get(at)
        if body is None:
            if schema_at:  # of the older form
                body = self._schema(content["json_schema"], schema_at, "json", self.options)
            else:
                body = self.format(content, here, tuple(one for one in ends or () if one), False)
            self._contents[at] = body
        if ends is None:
            return sequence(body, self._mark(tag["end"], f"{at}/end", last))
        return sequence(body, choice(*[self._words(one, last) for one in ends]))

    def _begin(self, tag: dict[str, Any], at: str) -> Expr:
        begin = self._need(tag, "begin", at)
        if isinstance(begin, dict):
            return self._mark(begin, f"{at}/begin", False)
        return self._words(self._text(tag, "begin", at))

    def _ends(self, tag: dict[str, Any], at: str) -> list[str] | None:
        """The strings that end a tag; None where a token does."""
        end = self._need(tag, "end", at)
        if isinstance(end, dict):
            return None
        return self._strings(tag, "end", at) if isinstance(end, list) else [self._text(tag, "end", at)]

    def _mark(self, value: dict[str, Any], at: str, last: Last) -> Expr:
        """A token that begins or ends a tag."""
        if value.get("type") != "token":
            raise SpecError(
                "only a token may stand in place of a string", place=self._at(f"{at}/type"),
                found=shown(value.get("type")), expected="token",
            )  # fmt: skip
        return self.format(value, at, (), last)

    def _tags_with_separator(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        once, needed = self._flag(value, "stop_after_first", at), self._flag(value, "at_least_one", at)
        tags = self._tags(value, at)

        def one(last: Last) -> Expr:
            return choice(*[self._tag(tag, here, (), last) for tag, here in tags])

        if once:
            every = one(last)
        else:
            before = sequence(one(_before(last)), self._words(self._text(value, "separator", at)))
            every = sequence(repeated(before, 0, None), one(last))
        return every if needed else optional(every)

    def _triggered_tags(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        tags = [(tag, here, "") for tag, here in self._tags(value, at)]
        triggers = self._strings(value, "triggers", at)
        once, needed = self._flag(value, "stop_after_first", at), self._flag(value, "at_least_one", at)
        excludes = (*self._strings(value, "excludes", at, needed=False), *ends)
        return self._triggered(tags, triggers, excludes, last, once, needed, at)

    def _triggered(
        self, tags: list[tuple[dict[str, Any], str, str]], triggers: list[str], excludes: tuple[str, ...],
        last: Last, once: bool, needed: bool, at: str,
    ) -> Expr:  # fmt: skip
        of: dict[str, list[tuple[dict[str, Any], str, str]]] = {one: [] for one in triggers}
        for tag, here, schema_at in tags:
            begin = self._text(tag, "begin", here)
            known = [one for one in triggers if begin.startswith(one)]
            if len(known) != 1:
                raise SpecError(
                    "no trigger begins this tag" if not known else "two triggers begin this tag",
                    place=self._at(f"{here}/begin"),
                    found=shown(begin),
                    expected="one of the triggers, then anything: " + ", ".join(map(shown, triggers[:8])),
                )
            of[known[0]].append((tag, here, schema_at))

        def groups(last: Last) -> dict[str, Expr]:
            return {
                one: choice(*[self._tag(tag, here, (), last, schema_at) for tag, here, schema_at in some])
                for one, some in of.items()
            }

        if needed and once:
            return choice(*groups(last).values())
        text = self._dispatched(groups, excludes, once, last, f"{at}/triggers")
        if not needed:
            return text
        first = sequence(choice(*groups(_before(last)).values()), text)
        return choice(first, *groups(last).values()) if last else first

    def _dispatch(self, value: dict[str, Any], at: str, ends: tuple[str, ...], last: Last) -> Expr:
        once = not self._flag(value, "loop", at, True)
        of: dict[str, list[Expr]] = {}
        for rule, here in self._list(value, "rules", at):
            want(rule, list, self._at(here), "a pattern and a format in brackets")
            if len(rule) != 2:
                raise SpecError(place=self._at(here), found=f"{len(rule)} items", expected="a pattern and a format")
            want(rule[0], str, self._at(f"{here}/0"), "text")
            follows = self.format(rule[1], f"{here}/1", ends, last if once else False)
            of.setdefault(rule[0], []).append(sequence(self._words(rule[0]), follows))
        excludes = tuple(self._strings(value, "excludes", at, needed=False))
        found = {pattern: choice(*some) for pattern, some in of.items()}
        return self._dispatched(lambda _: found, excludes, once, False, f"{at}/rules")

    def _dispatched(
        self, groups: Callable[[Last], dict[str, Expr]], excludes: tuple[str, ...], once: bool, last: Last, at: str
    ) -> Expr:
        """Free text in which something follows where a trigger begins it.

        Args:
            groups: what follows a trigger, with it; it may be the last part of the text or not.
        """
        triggers = list(groups(last))
        for one in triggers:
            inside = next((other for other in triggers if other != one and other in one), None)
            inside = next((other for other in excludes if other in one), inside)
            if inside is not None or not one:
                raise SpecError(
                    "this trigger is never reached" if one else "an empty trigger",
                    place=self._at(at),
                    found=shown(one),
                    expected=f"a trigger without {shown(inside)} in it" if one else "text",
                )
        free = self._free([*triggers, *excludes])

        def found(last: Last) -> Expr:
            of = groups(last)
            return choice(*[sequence(self._until(one, triggers, excludes), of[one]) for one in triggers])

        if once:
            return choice(free, found(last))
        ending = choice(free, found(last)) if last else free
        return sequence(repeated(found(_before(last)), 0, None), ending)

    # -- texts

    def _words(self, text: str, last: Last = False) -> Expr:
        """A text, its special tokens as such."""
        if not text:
            return EMPTY
        template = "_last_words" if last else "_words" if last is False else "_inner_words"
        return self.embedded.use(template, Literal(text.encode()))

    def _free(self, stops: Iterable[str]) -> Expr:
        """Free text without some strings."""
        listed = self._listed(stops)
        if listed is None:
            return repeated(self.embedded.terminal(rx.ANY), 0, None)
        return self.embedded.use("_text", listed)

    def _until(self, trigger: str, triggers: list[str], excludes: tuple[str, ...]) -> Expr:
        """Free text that a trigger follows, the first one; what is to be kept out does not begin in it either."""
        kept_out = self._listed([*triggers, *excludes])
        assert kept_out is not None
        return self.embedded.use("_text_before", Literal(trigger.encode()), kept_out)

    def _listed(self, stops: Iterable[str]) -> Ref | None:
        """A terminal that lists strings."""
        some = tuple(sorted({one for one in stops if one}))
        if not some:
            return None
        if some not in self._stops:
            name = f"_TAGGED_STOP{len(self._stops)}"
            self._stops[some] = Ref(name)
            texts = tuple(map(rx.literal, some))
            self.embedded.terminals[name] = rx.Union(texts) if len(texts) > 1 else texts[0]
        return self._stops[some]

    # -- schemas

    def _schema(self, schema: Any, at: str, style: str, options: SchemaOptions) -> Expr:
        if not isinstance(schema, bool):
            want(schema, dict, self._at(at), "a JSON Schema: an object or a boolean")
        if style == "json" and options == self.options:
            return Ref(self._json.add(schema, base=self.name, pointer=at, name="value"))
        key = style, options
        if key not in self._others:
            protocol = _protocol_of(style)
            encoding = JSON_ENCODING if protocol is None else encoding_of(protocol)
            writer = LarkWriter(options, self.budget, encoding)
            if protocol is not None:
                writer.reserve(protocol.names)
            self._others[key] = writer, protocol
            self.writers.append(writer)
        writer, protocol = self._others[key]
        channel = None if protocol is None else channel_of(protocol)
        if channel is None:
            root = writer.add(schema, base=self.name, pointer=at, name="value")
        else:
            root = writer.add_arguments(schema, channel, base=self.name, pointer=at, name="value")
        self._roots.append((key, root, name := f"_tagged_value{len(self._roots)}", at))
        return Ref(name)

    def _embed(self) -> None:
        """Put the rules of schemas that are no plain JSON beside the others."""
        for key, (writer, protocol) in self._others.items():
            roots = [(root, name, at) for one, root, name, at in self._roots if one == key]
            rules = {"start": choice(*[Ref(root) for root, _, _ in roots])} | writer.gap_rules() | writer.definitions[0]
            terminals = writer.gap_terminals() | writer.terminals
            text = "" if protocol is None else marked(protocol)
            grammar = read_pieces(text, rules, terminals, {}, self.name, self.budget)
            self.embedded.grammar(grammar, self._at(roots[0][2]))
            for root, name, at in roots:
                self.embedded.rules[name] = self.embedded.known(grammar, root)
                self.embedded.places[name] = self._at(at)

    # -- members of objects

    def _only(self, value: dict[str, Any], known: tuple[str, ...], at: str) -> None:
        for key in value:
            if key not in known and value[key] is not None:
                raise SpecError(
                    "this is not read here", place=self._at(f"{at}/{escape(key)}"), found=shown(key),
                    expected=", ".join(known), hint=did_you_mean(key, known),
                )  # fmt: skip

    def _need(self, value: dict[str, Any], key: str, at: str) -> Any:
        if value.get(key) is None:
            raise SpecError(f"{key} is missing", place=self._at(at), expected=key)
        return value[key]

    def _text(self, value: dict[str, Any], key: str, at: str) -> str:
        text = want(self._need(value, key, at), str, self._at(f"{at}/{key}"), "text")
        if any(0xD800 <= ord(one) <= 0xDFFF for one in text):
            raise SpecError("a lone surrogate is no text", place=self._at(f"{at}/{key}"), found=shown(text))
        return str(text)

    def _flag(self, value: dict[str, Any], key: str, at: str, usual: bool = False) -> bool:
        found = value.get(key)
        return usual if found is None else bool(want(found, bool, self._at(f"{at}/{key}"), "true or false"))

    def _number(self, value: dict[str, Any], key: str, at: str, most: int) -> int:
        found = self._need(value, key, at)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= most:
            raise SpecError(
                place=self._at(f"{at}/{key}"), found=shown(found), expected=f"a whole number from 0 to {most:,}"
            )
        return found

    def _list(self, value: dict[str, Any], key: str, at: str) -> list[tuple[Any, str]]:
        found = want(self._need(value, key, at), list, self._at(f"{at}/{key}"), "a list")
        if not found:
            raise SpecError(f"{key} is empty", place=self._at(f"{at}/{key}"), expected="one item or more")
        return [(one, f"{at}/{key}/{number}") for number, one in enumerate(found)]

    def _tags(self, value: dict[str, Any], at: str) -> list[tuple[dict[str, Any], str]]:
        tags = self._list(value, "tags", at)
        for tag, here in tags:
            want(tag, dict, self._at(here), "a tag: begin, content, end")
            if tag.get("type", "tag") != "tag":
                found = shown(tag["type"])
                raise SpecError("this is no tag", place=self._at(f"{here}/type"), found=found, expected='"tag"')
            self._only(tag, ("type", *_KEYS["tag"]), here)
        return tags

    def _strings(self, value: dict[str, Any], key: str, at: str, needed: bool = True) -> list[str]:
        if not needed and not value.get(key):
            return []
        found = self._list(value, key, at)
        for number, (one, here) in enumerate(found):
            want(one, str, self._at(here), "text")
            self._text({str(number): one or " "}, str(number), f"{at}/{key}")
        return [one for one, _ in found]


def _before(last: Last) -> Last:
    """Of what stands before something that is last, or may be."""
    return False if last is False else None


def _protocol_of(style: str) -> Protocol | None:
    """The protocol whose parameters a style writes; None for JSON."""
    if style == "json":
        return None
    protocol = load_protocol(_STYLES[style])
    return parse_protocol(_PARAMETER.sub(_lines_before, protocol.text), protocol.name)


def _lines_before(rule: re.Match[str]) -> str:
    """A parameter that may begin with a new line, where its protocol writes new lines; and those inside are all there
    or none is. The strings of a tag hold those at the beginning and at the end of the arguments.
    """
    begin, end = r'"\n', r'\n"'
    body = rule[2].strip()
    if r"\n" not in body:
        return rule[0]
    body = '"' + body.removeprefix(begin) if body.startswith(begin) else body
    body = body.removesuffix(end) + '"' if body.endswith(end) else body
    forms = dict.fromkeys(re.sub(r'(?<!\S)""(?!\S) ?', "", one) for one in (body, body.replace(r"\n", "")))
    return rf'{rule[1]}: "\n"? ({" | ".join(forms)})'
