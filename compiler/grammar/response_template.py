"""A protocol from the response template of a checkpoint, by which transformers reads what its model writes.

    tool_calls   open, close or patterns; content json (one call, with `transform_each` a list of them, or where
                 `open_pattern` captures the name its arguments) or xml-inline; its transform says which key is which
    thinking     reasoning
    content      what is said

What is derived are texts that the template reads as those calls; a template that leaves something open is met in the
plainest way: of blanks (``\\s*``) a new line may stand between tags, and does stand around a value.

Leaves out   checking texts against the template; templates that need more, which are refused with the field.
Source       transformers 5, docs/source/en/chat_response_parsing.md and utils/chat_parsing, version 1.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..errors import GrammarError, UnsupportedError

_TOKEN = re.compile(r"<[^<>\s]{1,60}>|\[/?[A-Z][A-Z_]*\]")
_NAMED = re.compile(r"\(\?P<(\w+)>((?:[^()\\]|\\.|\[(?:[^\]\\]|\\.)*\])*)\)")
_PARSERS = ("json", "text")


def is_response_template(document: Any) -> bool:
    """Whether a document is one, or a tokenizer's configuration that carries one."""
    return isinstance(document, dict) and (
        isinstance(document.get("response_template"), dict) or isinstance(document.get("fields"), dict)
    )


def protocol_text(document: dict[str, Any], name: str) -> str:
    """The Lark text of the protocol that a response template describes.

    Raises:
        GrammarError: it is no response template of version 1.
        UnsupportedError: something in it cannot be derived.
    """
    template = document.get("response_template", document)
    return _Template(template, name).text()


class _Template:
    """One template, while its protocol is written."""

    def __init__(self, template: dict[str, Any], name: str) -> None:
        self.name = name
        fields = template.get("fields")
        if template.get("version", 1) != 1 or not isinstance(fields, dict):
            raise GrammarError(
                "this is no response template of version 1", place=name, expected="an object with version 1 and fields"
            )
        self.fields: dict[str, Any] = fields
        for field, said in fields.items():
            if not isinstance(said, dict):
                raise GrammarError("a field of a response template is an object", place=f"{name}#/fields/{field}")
        if "tool_calls" not in self.fields:
            raise UnsupportedError("the response template has no field tool_calls", place=f"{name}#/fields")
        self.uses: dict[str, None] = {}
        self.lines: list[str] = []

    def text(self) -> str:
        """The whole protocol."""
        stops = [stop for field in ("tool_calls", "thinking") if field in self.fields for stop in self._stops(field)]
        self._calls(self.fields["tool_calls"])
        self._said(self.fields.get("content", {}), stops)
        if "thinking" in self.fields:
            self._thinking(self.fields["thinking"])
        head = [
            f"// Derived from the response template of {self.name}.",
            f"// Source: {self.name}",
            f"%import .protocol ({', '.join(sorted(self.uses))})",
            "",
            f"STOP: {_alternatives(stops)}",
        ]
        return "\n".join(head + self.lines) + "\n"

    def use(self, template: str) -> str:
        """A template of protocol.lark, to be imported."""
        self.uses[template] = None
        return template

    def refuse(self, field: str, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"{what} cannot be derived from a response template",
            place=f"{self.name}#/fields/{field}",
            hint="write the protocol as a .lark file: docs/protocols.md",
        )

    # -- delimiters

    def pieces(self, field: str, end: str) -> list[str]:
        """The delimiter of a field as alternatives, each an expression of `_regex`; none where there is none."""
        said = self.fields[field]
        if f"{end}_pattern" in said:
            return [said[f"{end}_pattern"]]
        literals = said.get(end, [])
        return [re.escape(one) for one in ([literals] if isinstance(literals, str) else literals)]

    def lark(self, field: str, pattern: str) -> str:
        """A pattern of literals, groups of alternatives and optional blanks as Lark text; "" for none."""
        options = []
        for branch in _split(pattern, "|"):
            parts, at, plain = [], 0, ""
            while at < len(branch):
                found = _ATOM.match(branch, at)
                if found is None:
                    raise self.refuse(field, f"the pattern {pattern!r}")
                at = found.end()
                if found["blank"]:
                    parts += [self.literal(plain), '"\\n"?']
                    plain = ""
                elif found["group"] is not None:
                    inner = self.lark(field, found["group"])
                    parts += [self.literal(plain), f"({inner})?" if found["maybe"] else f"({inner})" if inner else ""]
                    plain = ""
                elif found["any"] or found["start"]:
                    continue  # the plainest text is none at all
                elif found["maybe"]:
                    parts += [self.literal(plain), f"{_quoted(_unescaped(found['char']))}?"]
                    plain = ""
                else:
                    plain += _unescaped(found["char"])
            parts.append(self.literal(plain))
            options.append(" ".join(part for part in parts if part))
        some = [option for option in dict.fromkeys(options) if option]
        return " | ".join(some)

    def literal(self, text: str) -> str:
        """A literal, what looks like a token in it as one where the tokenizer has it."""
        parts, at = [], 0
        for found in _TOKEN.finditer(text):
            if found.start() > at:
                parts.append(_quoted(text[at : found.start()]))
            parts.append(f"{self.use('_tag')}{{{_quoted(found[0])}}}")
            at = found.end()
        if at < len(text):
            parts.append(_quoted(text[at:]))
        return " ".join(parts)

    def _stops(self, field: str) -> list[str]:
        """What a field begins with: free text holds none of it."""
        found = []
        for pattern in self.pieces(field, "open"):
            for branch in _branches(pattern):
                plain = re.match(r"(?:[^\\.^$*+?{}\[\]|()]|\\[^\w])*", branch)
                text = _unescaped(plain[0]) if plain else ""
                token = _TOKEN.match(text)
                if text.strip():
                    found.append(token[0] if token else text)
        closes = [_unescaped(pattern) for pattern in self.pieces(field, "close") if not re.search(r"[()|?*+]", pattern)]
        found += [token[0] for text in closes if (token := _TOKEN.fullmatch(text))]
        return list(dict.fromkeys(found))

    # -- fields

    def _calls(self, field: dict[str, Any]) -> None:
        opens, closes = self.pieces("tool_calls", "open"), self.pieces("tool_calls", "close")
        if len(opens) != 1 or len(closes) > 1:
            raise self.refuse("tool_calls", "a field with several ways to open or close")
        named = _NAMED.search(opens[0])
        close = self.lark("tool_calls", closes[0]) if closes else ""
        keys = self._keys(field, named is not None)
        if named is not None:
            before, after = opens[0][: named.start()], opens[0][named.end() :]
            begin, between = self.lark("tool_calls", before), self.lark("tool_calls", after)
            self._arguments(field, between, close)
            body = "tools"
            if field.get("content") == "xml-inline":  # what ends a call tells where its parameters end
                close = ""
        else:
            begin = self.lark("tool_calls", opens[0])
            name, arguments = keys
            for one in ("_w", "_c", "_k"):
                self.use(one)
            self.lines += [
                f'tool{{name, arguments}}: "\\"" name "\\"" _c {_quoted(json.dumps(arguments))} _k arguments',
                f'_one{{tools}}: "{{" _w {_quoted(json.dumps(name))} _k tools _w "}}"',
            ]
            body = "_one{tools}"
        gap = '"\\n"? ' if named is None else ""
        if field.get("transform_each"):
            if named is not None:
                raise self.refuse("tool_calls", "a list whose name is captured outside of it")
            self.lines += [  # chat templates write a call on each line, models all on one
                f'_in: {begin} "[" (_w | "\\n    ")',
                f'_out: (_w | "\\n") "]" {close}'.rstrip(),
                f"call{{tools}}: _in {body} _out",
                f'calls{{tools}}: _in {body} ((_c | ",\\n    ") {body})* _out',
            ]
            return
        self.lines.append(f"call{{tools}}: {begin} {gap}{body} {gap}{close}".rstrip())
        if field.get("repeats"):
            self.lines += ['calls{tools}: call{tools} ("\\n"? call{tools})*', 'trail: "\\n"?']

    def _keys(self, field: dict[str, Any], named: bool) -> tuple[str, str]:
        """The keys of a call's name and arguments in its object."""
        transform = field.get("transform")
        function = transform.get("function") if isinstance(transform, dict) else None
        if named:
            if function != {"name": "{name}", "arguments": "{content}"}:
                raise self.refuse("tool_calls", "a transform that does not take the name and the content as they are")
            return "", ""
        if field.get("content", "text") != "json":
            raise self.refuse("tool_calls", "a call without a name outside of it that is not JSON")
        if function == "{content}" or (transform is None and not named):
            return "name", "arguments"
        words = {}
        for key in ("name", "arguments"):
            said = function.get(key) if isinstance(function, dict) else None
            found = re.fullmatch(r"\{(?:content\.)?(\w+)\}", said) if isinstance(said, str) else None
            if not found:
                raise self.refuse("tool_calls", "a transform whose name or arguments are no key of the call")
            words[key] = found[1]
        return words["name"], words["arguments"]

    def _arguments(self, field: dict[str, Any], between: str, close: str) -> None:
        """The template tool of calls whose name stands before their arguments, and what it needs."""
        args = field.get("content_args") or {}
        if field.get("content") == "json":
            delims = args.get("string_delims") or []
            if delims or args.get("unquoted_keys"):
                if len(delims) != 1 or len(set(delims[0])) != 1 or not args.get("unquoted_keys"):
                    raise self.refuse("tool_calls", "a dialect of JSON but bare keys and one delimiter of strings")
                self.lines += [f"KEEP_OUT: {_quoted(delims[0][0])}", f"quote: {self.literal(delims[0][0])}"]
            self.lines.append(f"tool{{name, arguments}}: name {between} arguments".replace("  ", " "))
            return
        if field.get("content") != "xml-inline":
            raise self.refuse("tool_calls", f"content {field.get('content', 'text')!r}")
        pattern, parser = args.get("tag_pattern", ""), (args.get("value_parser") or {}).get("name", "text")
        groups = list(_NAMED.finditer(pattern))
        if [one[1] for one in groups] != ["key", "value"] or parser not in _PARSERS:
            raise self.refuse("tool_calls", f"the tags {pattern!r}")
        key, value = groups
        parts = [pattern[: key.start()], pattern[key.end() : value.start()], pattern[value.end() :]]
        before, middle, after = (self.lark("tool_calls", part).replace('"\\n"?', '"\\n"') for part in parts)
        stop = _unescaped(re.sub(r"\\s\*", "", parts[2]))
        json_only = parser == "json" and not ((args.get("value_parser") or {}).get("args") or {}).get("allow_non_json")
        if json_only:
            raise self.refuse("tool_calls", "values that are all JSON, strings in quotes")
        self.lines += [
            f"KEEP_OUT: {_quoted(stop)}",
            f'parameter{{key, value}}: {before} key {middle} value {after} "\\n"?',
            f'tool{{name, parameters}}: name {between} "\\n"? parameters {close}'.replace("  ", " ").rstrip(),
        ]

    def _said(self, field: dict[str, Any], stops: list[str]) -> None:
        opens = self.pieces("content", "open") if "content" in self.fields else []
        self.lines += [f"lead: {self.use('_text')}{{STOP}}"]
        if opens:
            begin = " | ".join(self.lark("content", one) for one in opens)
            closes = self.pieces("content", "close")
            ends = [_unescaped(branch.replace("\\n?", "")) for one in closes for branch in _branches(one)]
            end = f"({' | '.join(self.lark('content', one) for one in closes)})" if closes else ""
            self.lines += [f"SAID: {_alternatives(stops + ends)}", f"text: ({begin}) _text{{SAID}} {end}".rstrip()]
        else:
            self.lines.append(f"text: {self.use('_last_text')}{{STOP}}")

    def _thinking(self, field: dict[str, Any]) -> None:
        begin = " | ".join(filter(None, (self.lark("thinking", one) for one in self.pieces("thinking", "open"))))
        ends = [_unescaped(one) for one in self.pieces("thinking", "close")]
        if not begin or len(ends) != 1 or "close_pattern" in field:
            raise self.refuse("thinking", "reasoning that does not begin and end with a string")
        self.lines += [
            f"THINK_END: {_quoted(ends[0])}",
            f"think: {begin}",
            f'thought: {self.use("_text")}{{THINK_END}} {self.literal(ends[0])} "\\n"~0..2',
        ]


_ATOM = re.compile(
    r"(?P<blank>\\s[*+]\??)|(?P<any>\.\*\??)|(?P<start>\^)"
    r"|(?:\(\?:(?P<group>(?:[^()\\]|\\.)*)\)|(?P<char>[^\\.^$*+?{}\[\]|()]|\\[^\w]|\\[nrt]))(?P<maybe>\?)?"
)


def _split(pattern: str, mark: str) -> list[str]:
    """Alternatives outside of groups."""
    out, depth, begin = [], 0, 0
    for found in re.finditer(r"\\.|[()|]", pattern):
        depth += (found[0] == "(") - (found[0] == ")")
        if found[0] == mark and not depth:
            out.append(pattern[begin : found.start()])
            begin = found.end()
    return [*out, pattern[begin:]]


def _branches(pattern: str) -> list[str]:
    """The alternatives of a pattern that is one group, or of any other."""
    whole = re.fullmatch(r"\(\?:((?:[^()\\]|\\.)*)\)(.*)", pattern, re.DOTALL)
    return [one + whole[2] for one in _split(whole[1], "|")] if whole else _split(pattern, "|")


def _unescaped(text: str) -> str:
    """The text of a pattern of literals."""
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r", "t": "\t"}.get(m[1], m[1]), text, flags=re.DOTALL)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _alternatives(texts: list[str]) -> str:
    return " | ".join(_quoted(text) for text in dict.fromkeys(texts))
