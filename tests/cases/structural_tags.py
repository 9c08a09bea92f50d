"""Structural tags: id, format, texts that are accepted, texts that are refused; and documents that are refused.

The texts of the first table are what XGrammar 0.2.8 accepts and refuses, too.
"""

from __future__ import annotations

from typing import Any

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
_JSON = {"type": "json_schema", "json_schema": CITY}
_ANY = {"type": "any_text"}


def _word(text: str) -> dict[str, Any]:
    return {"type": "const_string", "value": text}


STRUCTURAL_TAGS: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    ("const_string", _word("a{b"), ["a{b"], ["a", "a{b}"]),
    (
        "or",
        {"type": "or", "elements": [_word("x"), {"type": "plus", "content": _word("ab")}]},
        ["x", "abab"],
        ["", "xab"],
    ),
    ("repeat", {"type": "repeat", "min": 1, "max": 2, "content": _word("ab")}, ["ab", "abab"], ["", "ababab"]),
    ("repeat without bound", {"type": "repeat", "min": 1, "max": -1, "content": _word("a")}, ["a", "aaaa"], [""]),
    ("star and optional", {"type": "star", "content": {"type": "optional", "content": _word("a")}}, ["", "aaa"], ["b"]),
    ("regex", {"type": "regex", "pattern": "[A-Z]{3}-[0-9]{4}"}, ["ABC-0123"], ["ABC-012", "xABC-0123"]),
    ("regex with anchors", {"type": "regex", "pattern": "^a+$"}, ["aa"], ["aa\n", ""]),
    (
        "any_text that has to end",
        {"type": "sequence", "elements": [{**_ANY, "excludes": ["!"]}, _word("!")]},
        ["a!", "!"],
        ["!!", "a"],
    ),
    ("max_chars", {"type": "sequence", "elements": [{**_ANY, "max_chars": 3}, _word("!")]}, ["äöü!", "!!"], ["abcd!"]),
    ("max_chars and excludes", {**_ANY, "max_chars": 3, "excludes": ["bb"]}, ["abc", "b"], ["abb", "abcd"]),
    (
        "tag",
        {"type": "tag", "begin": "<t>", "content": _JSON, "end": ["</t>", "</u>"]},
        ['<t>{"city": "B"}</t>', '<t>{"city": "B"}</u>'],
        ['<t>{"city": "B"}', "<t>{}</t>"],
    ),
    (
        "tag around free text",
        {"type": "tag", "begin": "<t>", "content": _ANY, "end": "</t>"},
        ["<t>a</b></t>", "<t></t>"],
        ["<t>a</t></t>", "<t>"],
    ),
    (
        "tags in tags",
        {
            "type": "tag",
            "begin": "(",
            "content": {
                "type": "sequence",
                "elements": [{"type": "tag", "begin": "[", "content": _ANY, "end": "]"}, _ANY],
            },
            "end": ")",
        },
        ["([))])", "([]x)"],
        ["([]))"],
    ),
    (
        "braces in strings of a tag",
        {"type": "tag", "begin": '{"name": "f", "arguments": ', "content": _JSON, "end": "}"},
        ['{"name": "f", "arguments": {"city": "B"}}'],
        ['{"name": "f", "arguments": {"city": "B"}'],
    ),
    (
        "triggered_tags",
        {
            "type": "triggered_tags",
            "triggers": ["<f="],
            "tags": [
                {"type": "tag", "begin": "<f=a>", "content": _JSON, "end": "</f>"},
                {"type": "tag", "begin": "<f=b>", "content": _ANY, "end": "</f>"},
            ],
        },
        ['hi <f=a>{"city": "B"}</f> x <f=b>zz</f><', "", "<"],
        ["<f=c>", "<f=", "<f=b>"],
    ),
    (
        "a trigger that overlaps itself",
        {
            "type": "triggered_tags",
            "triggers": ["aa"],
            "tags": [{"type": "tag", "begin": "aab", "content": _ANY, "end": "c"}],
        },
        ["aabc", "aab c a", "abaabc"],
        ["aaabc", "aa"],
    ),
    (
        "two triggers that overlap",
        {
            "type": "triggered_tags",
            "triggers": ["ab", "bc"],
            "tags": [
                {"type": "tag", "begin": "abx", "content": _word("1"), "end": "."},
                {"type": "tag", "begin": "bcy", "content": _word("2"), "end": "."},
            ],
        },
        ["abx1.", "bcy2.a", "a"],
        ["abcy2."],
    ),
    (
        "at_least_one",
        {
            "type": "triggered_tags",
            "triggers": ["<"],
            "at_least_one": True,
            "tags": [{"type": "tag", "begin": "<a", "content": _ANY, "end": ">"}],
        },
        ["<a>", "<a>x<a>"],
        ["", "x<a>"],
    ),
    (
        "stop_after_first",
        {
            "type": "triggered_tags",
            "triggers": ["<"],
            "stop_after_first": True,
            "tags": [{"type": "tag", "begin": "<a", "content": _ANY, "end": ">"}],
        },
        ["", "x<a>", "x"],
        ["<a>x", "<a><a>"],
    ),
    (
        "exactly one",
        {
            "type": "triggered_tags",
            "triggers": ["<"],
            "stop_after_first": True,
            "at_least_one": True,
            "tags": [{"type": "tag", "begin": "<a", "content": _ANY, "end": ">"}],
        },
        ["<a>"],
        ["", "x<a>", "<a>x"],
    ),
    (
        "excludes of triggered_tags",
        {
            "type": "triggered_tags",
            "triggers": ["<a"],
            "excludes": ["no"],
            "tags": [{"type": "tag", "begin": "<a", "content": _ANY, "end": ">"}],
        },
        ["x<ano>n"],
        ["no", "<a>no"],
    ),
    (
        "triggered_tags in a tag",
        {
            "type": "tag",
            "begin": "(",
            "end": ")",
            "content": {
                "type": "triggered_tags",
                "triggers": ["<"],
                "tags": [{"type": "tag", "begin": "<", "content": _ANY, "end": ">"}],
            },
        },
        ["(a<)>b)", "()"],
        ["(a)b)", "(<)"],
    ),
    (
        "tags_with_separator",
        {
            "type": "tags_with_separator",
            "separator": ",",
            "tags": [{"type": "tag", "begin": "<", "content": {"type": "regex", "pattern": "[0-9]{2}"}, "end": ">"}],
        },
        ["", "<12>", "<12>,<34>"],
        ["<12>,", "<12><34>"],
    ),
    (
        "dispatch",
        {
            "type": "dispatch",
            "loop": False,
            "rules": [["<a>", _word("1")], ["<b>", {"type": "regex", "pattern": "x+"}]],
        },
        ["q<a>1", "<b>xx", "q"],
        ["<a>1q", "<a>"],
    ),
    (
        "dispatch in turn",
        {"type": "dispatch", "rules": [["<a>", _word("1")]], "excludes": ["!"]},
        ["q<a>1q<a>1"],
        ["<a>2", "!"],
    ),
    (
        "qwen_xml",
        {
            "type": "tag",
            "begin": "<function=f>\n",
            "end": "\n</function>",
            "content": {"type": "qwen_xml_parameter", "json_schema": CITY},
        },
        ["<function=f>\n<parameter=city>\nB\n</parameter>\n<parameter=n>\n3\n</parameter>\n</function>"],
        ["<function=f>\n<parameter=n>\n3\n</parameter>\n</function>"],
    ),
    (
        "qwen_xml without new lines",
        {"type": "qwen_xml_parameter", "json_schema": CITY},
        ["<parameter=city>B</parameter><parameter=n>3</parameter>", "<parameter=city>\nB\n</parameter>"],
        ["<parameter=n>3</parameter>"],
    ),
    (
        "glm_xml without new lines",
        {"type": "json_schema", "style": "glm_xml", "json_schema": CITY},
        ["<arg_key>city</arg_key><arg_value>B</arg_value><arg_key>n</arg_key><arg_value>3</arg_value>"],
        [],
    ),
    (
        "minimax_xml",
        {"type": "json_schema", "style": "minimax_xml", "json_schema": CITY},
        ['<parameter name="city">B</parameter>\n<parameter name="n">3</parameter>\n'],
        ['<parameter name="n">3</parameter>\n'],
    ),
    (
        "minimax_m3_xml",
        {"type": "json_schema", "style": "minimax_m3_xml", "json_schema": CITY},
        ["]<]minimax[>[<city>B]<]minimax[>[</city>]<]minimax[>[<n>3]<]minimax[>[</n>"],
        ["]<]minimax[>[<n>3]<]minimax[>[</n>"],
    ),
    (
        "deepseek_xml",
        {"type": "json_schema", "style": "deepseek_xml", "json_schema": CITY},
        [
            '<｜DSML｜parameter name="city" string="true">B</｜DSML｜parameter>\n'
            '<｜DSML｜parameter name="n" string="false">3</｜DSML｜parameter>'
        ],
        ['<｜DSML｜parameter name="city" string="false">3</｜DSML｜parameter>'],
    ),
    (
        "deepseek_v4_1_xml",
        {"type": "json_schema", "style": "deepseek_v4_1_xml", "json_schema": CITY},
        ['<｜DSML｜ parameter name="city" string="true">B</｜DSML｜ parameter>\n'],
        [],
    ),
    (
        "glm_xml",
        {"type": "json_schema", "style": "glm_xml", "json_schema": CITY},
        ["<arg_key>city</arg_key>\n<arg_value>B</arg_value>\n<arg_key>n</arg_key>\n<arg_value>3</arg_value>\n"],
        ["<arg_key>n</arg_key>\n<arg_value>3</arg_value>"],
    ),
    (
        "cohere_xml",
        {"type": "json_schema", "style": "cohere_xml", "json_schema": CITY},
        ['<cofl:value name="city" type="raw">B</cofl:value>'],
        ['<cofl:value name="n" type="json">3</cofl:value>'],
    ),
    (
        "kimi_k3_xml",
        {"type": "json_schema", "style": "kimi_k3_xml", "json_schema": CITY},
        ['<|open|>argument key="city" type="string"<|sep|>B<|close|>argument<|sep|>'],
        [],
    ),
    ("any_order", {**_JSON, "any_order": True}, ['{"n": 3, "city": "x"}', '{"city": "x", "n": 3}'], ['{"n": 3}']),
    (
        "max_whitespace_cnt",
        {**_JSON, "max_whitespace_cnt": 2},
        ['{  "city":"x" }', '{"city": "x"}'],
        ['{   "city":"x" }'],
    ),
]


OLDER: dict[str, Any] = {
    "structures": [{"begin": "<f=a>", "schema": CITY, "end": "</f>"}],
    "triggers": ["<f="],
}
"""The older form, with or without its type."""

_TAG = {"type": "tag", "begin": "<", "content": _ANY, "end": ">"}

REFUSED: list[tuple[str, Any, str, str]] = [
    ("no type", {}, "#/format", "no type"),
    ("unknown", {"type": "tagg"}, "#/format/type", "did you mean 'tag'?"),
    ("stray key", {**_ANY, "exclude": ["x"]}, "#/format/exclude", "did you mean 'excludes'?"),
    ("missing", {"type": "tag", "begin": "a", "content": _ANY}, "#/format", "end is missing"),
    ("kind of a value", {"type": "const_string", "value": 3}, "#/format/value", "expected text"),
    ("empty", {"type": "or", "elements": []}, "#/format/elements", "one item or more"),
    ("no format", {"type": "or", "elements": ["a"]}, "#/format/elements/0", "expected a format"),
    ("any_tokens", {**_TAG, "content": {"type": "any_tokens"}}, "#/format/content/type", "write any_text"),
    ("exclude_token", {"type": "exclude_token"}, "#/format/type", "keeps special tokens out"),
    ("token_dispatch", {"type": "token_dispatch", "rules": []}, "#/format/type", "write dispatch"),
    ("token by its number", {"type": "token", "token": 3}, "#/format/token", "by its content"),
    ("max_tokens", {**_ANY, "max_tokens": 3}, "#/format/max_tokens", "max_chars"),
    ("a long text before a string", {**_ANY, "max_chars": 5000, "excludes": ["x"]}, "#/format/max_chars", "4,096"),
    ("excludes of a schema", {**_JSON, "excludes": ["x"]}, "#/format/excludes", "pattern"),
    ("style", {**_JSON, "style": "qwen"}, "#/format/style", "qwen_xml"),
    ("schema", {"type": "json_schema", "json_schema": {"type": "strin"}}, "#/format/json_schema/type", "string"),
    (
        "schema in a tag",
        {**_TAG, "content": {"type": "json_schema", "json_schema": {"minimum": "3"}}},
        "#/format/content/json_schema/minimum",
        "a number",
    ),
    ("regex", {"type": "regex", "pattern": "(a"}, "#/format/pattern (character 3", "missing )"),
    ("grammar", {"type": "grammar", "grammar": 'start: "a'}, "#/format/grammar (", "malformed"),
    ("repeat", {"type": "repeat", "min": 3, "max": 2, "content": _ANY}, "#/format/max", "≥ 3"),
    (
        "begin of a tag",
        {"type": "triggered_tags", "triggers": ["{"], "tags": [_TAG]},
        "#/format/tags/0/begin",
        "no trigger",
    ),
    (
        "two triggers",
        {"type": "triggered_tags", "triggers": ["<", "<a"], "tags": [{**_TAG, "begin": "<ab"}]},
        "#/format/tags/0/begin",
        "two triggers",
    ),
    (
        "a trigger that is excluded",
        {"type": "triggered_tags", "triggers": ["<"], "excludes": ["<"], "tags": [_TAG]},
        "#/format/triggers",
        "never reached",
    ),
    (
        "a trigger in another",
        {"type": "triggered_tags", "triggers": ["a<", "<"], "tags": [_TAG]},
        "#/format/triggers",
        "never reached",
    ),
    ("no tag", {"type": "tags_with_separator", "separator": ",", "tags": [_ANY]}, "#/format/tags/0/type", "no tag"),
]
