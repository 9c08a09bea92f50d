"""Turns with calls as the chat templates and encoders of the families write them, blanks and all.

Written by hand from each source, which the protocol's own file names; nothing here is made by the tests' own writer
(protocols.py), so a mistake in that one shows. A row holds protocol, entry, text, calls.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

TOOLS: list[dict[str, Any]] = [
    {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string"},
                "days": {"type": "integer"},
                "exact": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "at": {
                    "type": "object",
                    "properties": {"lat": {"type": "number"}, "ok": {"type": "boolean"}},
                    "required": ["lat"],
                },
                "note": {"type": ["string", "null"]},
            },
            "required": ["place"],
        },
    },
    {"name": "list_stations", "parameters": {"type": "object", "properties": {}}},
]

MUCH: dict[str, Any] = {
    "place": "Zürich <b>",
    "days": 3,
    "exact": True,
    "tags": ["a", "b c"],
    "at": {"lat": 47.4, "ok": False},
    "note": None,
}
LITTLE: dict[str, Any] = {"place": "Bern"}
NO_NOTE = ("weather", {key: value for key, value in MUCH.items() if key != "note"})
WEATHER, SMALL, STATIONS = ("weather", MUCH), ("weather", LITTLE), ("list_stations", {})

_JSON = (
    '{"place": "Zürich <b>", "days": 3, "exact": true, "tags": ["a", "b c"], "at": {"lat": 47.4, "ok": false},'
    ' "note": null}'
)
_BARE = '{"place": "Bern"}'
_PYTHON = (
    "weather(place='Zürich <b>', days=3, exact=True, tags=['a', 'b c'], at={\"lat\": 47.4, \"ok\": false}, note=None)"
)


class Rendering(NamedTuple):
    """One turn.

    Attributes:
        protocol: its name; entry: where the text begins.
        text: the turn, without the token that ends it.
        calls: what is called in it.
        whitespace: the blanks that the compile asks for.
    """

    protocol: str
    entry: str
    text: str
    calls: list[tuple[str, Any]]
    whitespace: str = "spaced"


def _dsml(word: str, end: str = "") -> str:
    return (
        f"{end}\n\n<｜DSML｜{word}>\n"
        '<｜DSML｜invoke name="weather">\n'
        '<｜DSML｜parameter name="place" string="true">Zürich <b></｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="exact" string="false">true</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="tags" string="false">["a", "b c"]</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="at" string="false">{"lat": 47.4, "ok": false}</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="note" string="false">null</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n"
        '<｜DSML｜invoke name="list_stations">\n'
        "\n"
        f"</｜DSML｜invoke>\n</｜DSML｜{word}>"
    )


_GLM45 = (
    "\n<tool_call>weather\n<arg_key>place</arg_key>\n<arg_value>Zürich <b></arg_value>\n<arg_key>days</arg_key>\n"
    "<arg_value>3</arg_value>\n<arg_key>exact</arg_key>\n<arg_value>true</arg_value>\n<arg_key>tags</arg_key>\n"
    '<arg_value>["a", "b c"]</arg_value>\n<arg_key>at</arg_key>\n<arg_value>{"lat": 47.4, "ok": false}</arg_value>\n'
    "<arg_key>note</arg_key>\n<arg_value>null</arg_value>\n</tool_call>\n<tool_call>list_stations\n</tool_call>"
)
_GLM47 = (
    "<tool_call>weather<arg_key>place</arg_key><arg_value>Zürich <b></arg_value><arg_key>days</arg_key>"
    "<arg_value>3</arg_value><arg_key>exact</arg_key><arg_value>true</arg_value><arg_key>tags</arg_key>"
    '<arg_value>["a", "b c"]</arg_value><arg_key>at</arg_key><arg_value>{"lat": 47.4, "ok": false}</arg_value>'
    "<arg_key>note</arg_key><arg_value>null</arg_value></tool_call><tool_call>list_stations</tool_call>"
)
_QWEN = (
    "<tool_call>\n<function=weather>\n<parameter=place>\nZürich <b>\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
    '<parameter=exact>\nTrue\n</parameter>\n<parameter=tags>\n["a", "b c"]\n</parameter>\n<parameter=at>\n'
    '{"lat": 47.4, "ok": false}\n</parameter>\n<parameter=note>\nNone\n</parameter>\n</function>\n</tool_call>\n'
    "<tool_call>\n<function=list_stations>\n</function>\n</tool_call>"
)
_M2 = (
    '<minimax:tool_call>\n<invoke name="weather">\n<parameter name="place">Zürich <b></parameter>\n'
    '<parameter name="days">3</parameter>\n<parameter name="exact">true</parameter>\n'
    '<parameter name="tags">["a", "b c"]</parameter>\n<parameter name="at">{"lat": 47.4, "ok": false}</parameter>\n'
    '<parameter name="note">null</parameter>\n</invoke>\n<invoke name="list_stations">\n</invoke>\n'
    "</minimax:tool_call>"
)
_N = "]<]minimax[>["
_M3 = (
    f'{_N}<tool_call>\n{_N}<invoke name="weather">{_N}<place>Zürich <b>{_N}</place>{_N}<days>3{_N}</days>'
    f"{_N}<exact>true{_N}</exact>{_N}<tags>{_N}<item>a{_N}</item>{_N}<item>b c{_N}</item>{_N}</tags>"
    f"{_N}<at>{_N}<lat>47.4{_N}</lat>{_N}<ok>false{_N}</ok>{_N}</at>{_N}</invoke>\n"
    f'{_N}<invoke name="list_stations">{_N}</invoke>\n{_N}</tool_call>'
)
_CMD5 = (
    '<cofl:tool_calls><cofl:tool_call id="0" name="weather"><cofl:value name="place" type="raw">Zürich <b></cofl:value>'
    '<cofl:value name="days" type="json">3</cofl:value><cofl:value name="exact" type="json">true</cofl:value>'
    '<cofl:value name="tags" type="list"><cofl:value type="raw">a</cofl:value><cofl:value type="raw">b c</cofl:value>'
    '</cofl:value><cofl:value name="at" type="dict"><cofl:value name="lat" type="json">47.4</cofl:value>'
    '<cofl:value name="ok" type="json">false</cofl:value></cofl:value><cofl:value name="note" type="json">null'
    '</cofl:value></cofl:tool_call><cofl:tool_call id="1" name="list_stations"></cofl:tool_call></cofl:tool_calls>'
)
_K2 = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>"
    f"{_JSON}<|tool_call_end|><|tool_call_begin|>functions.list_stations:1<|tool_call_argument_begin|>{{}}"
    "<|tool_call_end|><|tool_calls_section_end|>"
)
_K3 = (
    '<|open|>tools<|sep|><|open|>call tool="weather" index="1"<|sep|><|open|>argument key="place" type="string"<|sep|>'
    'Zürich <b><|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|>'
    '<|open|>argument key="exact" type="boolean"<|sep|>true<|close|>argument<|sep|><|open|>argument key="tags" '
    'type="array"<|sep|>["a", "b c"]<|close|>argument<|sep|><|open|>argument key="at" type="object"<|sep|>'
    '{"lat": 47.4, "ok": false}<|close|>argument<|sep|><|open|>argument key="note" type="null"<|sep|>null<|close|>'
    'argument<|sep|><|close|>call<|sep|><|open|>call tool="list_stations" index="2"<|sep|><|close|>call<|sep|>'
    "<|close|>tools<|sep|><|close|>message<|sep|>"
)
_SILENT = "<|open|>response<|sep|><|close|>response<|sep|>"
_COMMENTARY = "<|channel|>commentary to=functions.weather"
_TO = " to=functions.weather<|channel|>commentary"
_GEMMA = (
    '<|tool_call>call:weather{at:{lat:47.4,ok:false},days:3,exact:true,note:None,place:<|"|>Zürich <b><|"|>,'
    'tags:[<|"|>a<|"|>,<|"|>b c<|"|>]}<tool_call|><|tool_call>call:list_stations{}<tool_call|>'
)
_COHERE = (
    '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "weather", "parameters": '
    + _JSON
    + '},\n    {"tool_call_id": "1", "tool_name": "list_stations", "parameters": {}}\n]<|END_ACTION|>'
)
_R1 = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
    f"{_JSON}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>list_stations\n```json\n{{}}\n```"
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
_V31 = (
    f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{_JSON}<｜tool▁call▁end｜>"
    "<｜tool▁call▁begin｜>list_stations<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
_HERMES = (
    f'<tool_call>\n{{"name": "weather", "arguments": {_JSON}}}\n</tool_call>\n'
    '<tool_call>\n{"name": "list_stations", "arguments": {}}\n</tool_call>'
)
_LIST = f'[{{"name": "weather", "arguments": {_JSON}}}, {{"name": "list_stations", "arguments": {{}}}}]'
_LISTED = f'[{{"name": "weather", "arguments": {_JSON}, "id": "aB3dE5gH7"}}]'
_BOTH = [WEATHER, STATIONS]

RENDERINGS: list[Rendering] = [
    Rendering(*row)
    for row in [
        ("hermes", "required", _HERMES, _BOTH),
        ("hermes", "auto", "I look.\n" + _HERMES, _BOTH),
        ("hermes", "auto/outside", "<think>\nhm\n</think>\n\n" + _HERMES, _BOTH),
        ("hermes", "required/inside", "hm\n</think>\n\n" + _HERMES, _BOTH),
        ("hermes", "required", '<tool_call>{"name": "list_stations", "arguments": {}}</tool_call>', [STATIONS]),
        ("qwen3_coder", "required", _QWEN, _BOTH),
        ("qwen3_coder", "auto", "I look.\n\n" + _QWEN, _BOTH),
        ("qwen3_coder", "required/inside", "hm\n</think>\n\n" + _QWEN, _BOTH),
        ("llama3", "required", f'{{"name": "weather", "parameters": {_JSON}}}', [WEATHER]),
        ("llama4_json", "auto", f'I look.{{"name": "weather", "parameters": {_JSON}}}', [WEATHER]),
        ("llama4_json", "auto", f'{{"name": "weather", "parameters": {_JSON}}}' * 2, [WEATHER, WEATHER]),
        ("mistral", "required", "[TOOL_CALLS] " + _LISTED, [WEATHER]),
        ("mistral", "required", "[TOOL_CALLS]" + _LIST, _BOTH),
        ("mistral_v11", "required", f"[TOOL_CALLS]weather[ARGS]{_JSON}[TOOL_CALLS]list_stations[ARGS]{{}}", _BOTH),
        ("mistral_v11", "required", f"[TOOL_CALLS]weather[CALL_ID]aB3dE5gH7[ARGS]{_BARE}", [SMALL]),
        ("mistral_v11", "auto/outside", f"[THINK]hm[/THINK]I look.[TOOL_CALLS]weather[ARGS]{_BARE}", [SMALL]),
        ("mistral_v11", "auto/outside", f"<think>\nhm\n</think>\n[TOOL_CALLS]weather[ARGS]{_BARE}", [SMALL]),
        ("deepseek_v3", "required", _R1, _BOTH),
        ("deepseek_v3", "required/inside", "hm\n</think>\n\n" + _R1, _BOTH),
        ("deepseek_v31", "required", _V31, _BOTH),
        ("deepseek_v31", "auto/inside", "hm</think>I look." + _V31, _BOTH),
        ("deepseek_v32", "required", _dsml("function_calls"), _BOTH),
        ("deepseek_v32", "required/inside", _dsml("function_calls", "hm</think>"), _BOTH),
        ("deepseek_v4", "auto", _dsml("tool_calls", "I look."), _BOTH),
        ("deepseek_v4", "required/inside", _dsml("tool_calls", "hm</think>"), _BOTH),
        ("kimi_k2", "required", _K2, _BOTH),
        ("kimi_k2", "auto/outside", "<think>hm</think>I look." + _K2, _BOTH),
        (
            "kimi_k3",
            "required/inside",
            "hm<|close|>think<|sep|>" + _SILENT + _K3,
            _BOTH,
        ),
        ("kimi_k3", "required", "<|close|>response<|sep|>" + _K3, _BOTH),
        ("kimi_k3", "auto", "I look.<|close|>response<|sep|>" + _K3, _BOTH),
        ("glm45", "required/outside", "\n<think>hm</think>" + _GLM45, _BOTH),
        ("glm45", "required", _GLM45, _BOTH),
        ("glm45", "auto/outside", "\n<think></think>\nI look." + _GLM45, _BOTH),
        ("glm47", "required/inside", "hm</think>" + _GLM47, _BOTH),
        ("glm47", "auto", "I look." + _GLM47, _BOTH),
        (
            "harmony",
            "required",
            f"{_COMMENTARY} <|constrain|>json<|message|>{_JSON}",
            [WEATHER],
        ),
        (
            "harmony",
            "required",
            f"{_COMMENTARY}<|constrain|>json<|message|>{_JSON}",
            [WEATHER],
        ),
        ("harmony", "required", f"{_TO} json<|message|>{_JSON}", [WEATHER]),
        (
            "harmony",
            "required",
            f"{_TO} <|constrain|>json<|message|>{_JSON}",
            [WEATHER],
        ),
        (
            "harmony",
            "auto/outside",
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.list_stations "
            "<|constrain|>json<|message|>{}",
            [STATIONS],
        ),
        (
            "harmony",
            "required/outside",
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant to=functions.list_stations<|channel|>commentary"
            " json<|message|>{}",
            [STATIONS],
        ),
        ("phi4_mini", "required", f"<|tool_call|>{_LIST}<|/tool_call|>", _BOTH),
        ("phi4_mini", "required", f"functools{_LIST}", _BOTH),
        ("granite", "required", f"<|tool_call|>{_LIST}", _BOTH),
        ("granite", "required", f"<|tool_call|> {_LIST}", _BOTH),
        ("granite", "auto", f"<tool_call>{_LIST}", _BOTH),
        ("gemma4", "required", _GEMMA, _BOTH),
        ("gemma4", "auto/outside", "<|channel>thought\nhm<channel|>" + _GEMMA + "I looked.", _BOTH),
        (
            "functiongemma",
            "required",
            "<start_function_call>call:weather{at:{lat:47.4,ok:false},days:3,exact:true,note:None,"
            "place:<escape>Zürich <b><escape>,tags:[<escape>a<escape>,<escape>b c<escape>]}<end_function_call>",
            [WEATHER],
        ),
        ("minimax_m2", "required", "\n" + _M2, _BOTH),
        ("minimax_m2", "required/inside", "hm\n</think>\n\n\n" + _M2, _BOTH),
        ("minimax_m2", "auto", "I look.\n" + _M2, _BOTH),
        (
            "deepseek_v41",
            "required/inside",
            'hm</think>\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="weather">\n<｜DSML｜ parameter name="place" '
            'string="true">Bern</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>',
            [SMALL],
        ),
        (
            "step3",
            "required",
            '<｜tool_calls_begin｜>\n<｜tool_call_begin｜>\nfunction<｜tool_sep｜><steptml:invoke name="weather">'
            '<steptml:parameter name="place">Bern</steptml:parameter><steptml:parameter name="days">3'
            "</steptml:parameter></steptml:invoke><｜tool_call_end｜>\n<｜tool_call_begin｜>\nfunction<｜tool_sep｜>"
            '<steptml:invoke name="list_stations"></steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>',
            [("weather", {"place": "Bern", "days": 3}), STATIONS],
        ),
        (
            "step3",
            "auto",
            "I look.<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>"
            '<steptml:invoke name="weather">\n'
            '<steptml:parameter name="place">Bern</steptml:parameter>\n<steptml:parameter name="days">3'
            "</steptml:parameter>\n</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>",
            [("weather", {"place": "Bern", "days": 3})],
        ),
        (
            "mimo",
            "required/outside",
            "<think>hm</think><tool_call><function=weather><parameter=place>Bern</parameter><parameter=exact>true"
            "</parameter></function></tool_call>",
            [("weather", {"place": "Bern", "exact": True})],
        ),
        ("llama3_builtin", "required", '<|python_tag|>weather.call(place="Bern")', [SMALL]),
        ("granite", "auto/outside", f"<think>hm</think><|tool_call|>{_LIST}", _BOTH),
        ("minimax_m3", "required/inside", "hm</mm:think>" + _M3, [NO_NOTE, STATIONS]),
        ("cohere", "required/outside", "<|START_THINKING|>hm<|END_THINKING|>" + _COHERE, _BOTH),
        ("cohere_cmd5", "required/outside", "<|START_THINKING|>hm<|END_THINKING|>" + _CMD5, _BOTH),
        ("pythonic", "required", f"[{_PYTHON.replace('false', 'False')}, list_stations()]", _BOTH),
        ("pythonic", "required", '<|python_start|>[weather(place="Bern")]<|python_end|>', [SMALL]),
        ("lfm2", "required", f"<|tool_call_start|>[{_PYTHON}, list_stations()]<|tool_call_end|>", _BOTH),
        (
            "lfm2",
            "auto/outside",
            "<think>hm</think>I look.<|tool_call_start|>[weather(place='Bern')]<|tool_call_end|>",
            [SMALL],
        ),
        (
            "olmo3",
            "required",
            "<function_calls>\n"
            + _PYTHON.replace("True", "true").replace("None", "null").replace("['a', 'b c']", '["a", "b c"]')
            + "\nlist_stations()\n</function_calls>",
            _BOTH,
        ),
    ]
]

ODD: dict[str, Any] = {
    "place": 'a"b\\c\n\té <x> {y} [z] ```',
    "days": -3,
    "exact": False,
    "tags": [],
    "at": {"lat": -1.5e-7, "ok": True},
    "note": "ok",
}
"""What is escaped in JSON, the signs of formats, an empty array, numbers of every form."""

_LINES = 'line "one" <b>\n  line two\\n\n\nlast'
_SAID = ("weather", {"place": _LINES})
_KIMI = "<|tool_calls_section_begin|><|tool_call_begin|>functions.{}<|tool_call_end|><|tool_calls_section_end|>"
_R1_CALL = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
_V31_CALL = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"

AROUND_JSON: list[tuple[str, str, str]] = [
    ("json", "required", '{"name": "weather", "arguments": %s}'),
    ("hermes", "auto", 'Sure!\n\n<tool_call>\n{"name": "weather", "arguments": %s}\n</tool_call>\nDone.'),
    ("llama3", "required", '{"name": "weather", "parameters": %s}'),
    ("llama3", "auto", '<|python_tag|>{"name": "weather", "parameters": %s}'),
    ("llama3", "auto", '{"type": "function", "name": "weather", "parameters": %s}'),
    ("mistral", "auto", 'I look.[TOOL_CALLS] [{"name": "weather", "arguments": %s, "id": "aB3dE5gH7"}]'),
    ("mistral_v11", "auto", "I look.[TOOL_CALLS]weather[CALL_ID]aB3dE5gH7[ARGS]%s"),
    ("deepseek_v3", "auto", "I look.\n" + _R1_CALL.format("weather\n```json\n%s\n```")),
    ("deepseek_v31", "required/inside", "hm</think>" + _V31_CALL.format("weather<｜tool▁sep｜>%s")),
    ("kimi_k2", "auto/outside", "<think>hm</think>I look. " + _KIMI.format("weather:12<|tool_call_argument_begin|>%s")),
    ("harmony", "auto", "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant" + _COMMENTARY
     + " <|constrain|>json<|message|>%s"),
    ("phi4_mini", "auto", 'I look. <|tool_call|>[{"name": "weather", "arguments": %s}]<|/tool_call|>'),
    ("granite", "auto", 'I look.<|tool_call|>[{"name": "weather", "arguments": %s}]'),
    ("cohere", "required", '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "weather", "parameters": %s}\n]'
     "<|END_ACTION|>"),
    ("react", "auto", "Action: weather\nAction Input: %s"),
    ("react", "start", "Thought: I need it.\nAction: weather\nAction Input: %s"),
]  # fmt: skip
"""Turns around the arguments as JSON, in every way in which JSON is written."""

RENDERINGS += [
    Rendering(protocol, entry, text % json.dumps(ODD, **how), [("weather", ODD)], "flexible" if other else "spaced")
    for protocol, entry, text in AROUND_JSON
    for how, other in (
        ({"ensure_ascii": False}, False),
        ({}, False),
        ({"separators": (",", ":")}, protocol != "harmony"),
        ({"indent": 2}, protocol != "react"),
    )
]

_INDENTED = json.dumps([{"name": "weather", "arguments": ODD}, {"name": "list_stations", "arguments": {}}], indent=4)
RENDERINGS += [
    Rendering("granite", "auto", f"<|tool_call|>{_INDENTED}", [("weather", ODD), STATIONS]),
    Rendering("granite", "auto", f"<|tool_call|>{json.dumps(json.loads(_INDENTED)[1:], indent=4)}", [STATIONS]),
    Rendering("react", "auto", f"Action: weather\nAction Input: {json.dumps(ODD, indent=0)}", [("weather", ODD)]),
    Rendering(
        "toolkengpt", "auto", 'It is <T>weather("Bern",-3,true)=', [("weather", LITTLE | {"days": -3, "exact": True})]
    ),
]


def _stations(protocol: str) -> str:
    """A call without arguments."""
    return {
        "deepseek_v32": '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="list_stations">\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>",
        "hermes": '<tool_call>\n{"name": "list_stations", "arguments": {}}\n</tool_call>',
        "minimax_m3": f'{_N}<tool_call>\n{_N}<invoke name="list_stations">{_N}</invoke>\n{_N}</tool_call>',
        "cohere_cmd5": '<cofl:tool_calls><cofl:tool_call id="0" name="list_stations"></cofl:tool_call>'
        "</cofl:tool_calls>",
    }[protocol]


_SIX = '<｜DSML｜parameter name="place" string="true">'
RENDERINGS += [
    Rendering(*row)
    for row in [
        ("hermes", "auto/outside", "<think>\nThe user wants <b>.\n</think>\n\nI look."
         "\n" + _stations("hermes"), [STATIONS]),
        ("hermes", "auto/outside", "<think>\n\n</think>\n\n" + _stations("hermes"), [STATIONS]),
        ("hermes", "auto", "\n\n".join([_stations("hermes")] * 2), [STATIONS, STATIONS]),
        ("hermes", "auto", _stations("hermes") + "\n", [STATIONS]),
        ("qwen3_coder", "auto/outside", "<think>\nhm\n</think>\n\nI look.\n\n" + _QWEN, _BOTH),
        (
            "qwen3_coder",
            "required",
            f"<tool_call>\n<function=weather>\n<parameter=place>\n{_LINES}\n</parameter>\n<parameter=days>\n-3\n"
            "</parameter>\n<parameter=tags>\n[]\n</parameter>\n</function>\n</tool_call>",
            [("weather", {"place": _LINES, "days": -3, "tags": []})],
        ),
        (
            "qwen3_coder",
            "required",
            "<tool_call>\n<function=list_stations>\n\n</function>\n</tool_call>",
            [STATIONS],
        ),
        ("mimo", "auto", "I look.<tool_call><function=list_stations></function></tool_call>", [STATIONS]),
        ("mimo", "required", f"<tool_call><function=weather><parameter=place>{_LINES}</parameter></function>"
         f"</tool_call>", [_SAID]),
        (
            "glm45",
            "auto/outside",
            f"\n<think>hm</think>\nI look.\n<tool_call>weather\n<arg_key>place</arg_key>\n<arg_value>{_LINES}"
            "</arg_value>\n</tool_call>\n<tool_call>list_stations\n</tool_call>",
            [_SAID, STATIONS],
        ),
        ("glm45", "auto/inside", "hm</think>\nI look.\n<tool_call>list_stations\n</tool_call>", [STATIONS]),
        (
            "glm47",
            "auto/outside",
            f"<think>hm</think>I look.<tool_call>weather<arg_key>place</arg_key><arg_value>{_LINES}</arg_value>"
            "</tool_call><tool_call>list_stations</tool_call>",
            [_SAID, STATIONS],
        ),
        (
            "minimax_m2",
            "auto/outside",
            f'<think>\nhm\n</think>\n\nI look.\n<minimax:tool_call>\n<invoke name="weather">\n<parameter name="p'
            f'lace">{_LINES}'
            "</parameter>\n</invoke>\n</minimax:tool_call>",
            [_SAID],
        ),
        (
            "minimax_m3",
            "auto",
            f'I look.\n{_N}<tool_call>\n{_N}<invoke name="weather">{_N}<place>{_LINES}{_N}</place>{_N}</invoke>\n'
            f"{_N}</tool_call>",
            [_SAID],
        ),
        ("minimax_m3", "auto/outside", "</mm:think>I look." + _stations("minimax_m3"), [STATIONS]),
        ("minimax_m3", "required/outside", "</mm:think>" + _stations("minimax_m3"), [STATIONS]),
        ("minimax_m3", "auto/outside", "</mm:think>It is 12 < 13.", []),
        ("cohere_cmd5", "auto", "<|START_TEXT|>I look.<|END_TEXT|>" + _stations("cohere_cmd5"), [STATIONS]),
        ("cohere_cmd5", "auto/outside", "<|START_THINKING|>hm<|END_THINKING|><|START_TEXT|>No.<|END_TEXT|>", []),
        (
            "cohere_cmd5",
            "required",
            '<cofl:tool_calls><cofl:tool_call id="0" name="weather"><cofl:value name="place" type="raw">echo "a"'
            ' >> b && c'
            '</cofl:value><cofl:value name="more" type="dict"><cofl:value name="fresh" type="json">true</cofl:value>'
            '<cofl:value name="tags" type="list"><cofl:value type="raw">x</cofl:value><cofl:value type="dict">'
            '</cofl:value>'
            "</cofl:value></cofl:value></cofl:tool_call></cofl:tool_calls>",
            [("weather", {"place": 'echo "a" >> b && c', "more": {"fresh": True, "tags": ["x", {}]}})],
        ),
        ("cohere", "auto/outside", "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>12 < 3<|END_RESPONSE|>", []),
        (
            "deepseek_v32",
            "auto/outside",
            f'<think>hm</think>I look.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="weather">\n{_SIX}{_LINES}'
            "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
            [_SAID],
        ),
        ("deepseek_v32", "auto", "I look." + _stations("deepseek_v32"), [STATIONS]),
        ("lfm2", "auto", "<|tool_call_start|>[weather(place=\"Bern\")]<|tool_call_end|>Checking.", [SMALL]),
        (
            "lfm2",
            "required",
            '<|tool_call_start|>[weather(place="a\\"b \\n é", days=-3, exact=False, tags=[], at'
            '={"lat": -1.5, "ok": True}, '
            'note="it\'s")]<|tool_call_end|>',
            [("weather", {"place": 'a"b \n é', "days": -3, "exact": False, "tags": [], "at": {"lat": -1.5, "ok": True},
                          "note": "it's"})],
        ),
        ("pythonic", "auto", "[weather(place='Bern', tags=['a'], at={'lat': 1.0})]",
         [("weather", {"place": "Bern", "tags": ["a"], "at": {"lat": 1.0}})]),
        ("pythonic", "required", '[weather(place="Bern"), list_stations(), weather(place="Genève", note=None)]',
         [SMALL, STATIONS, ("weather", {"place": "Genève", "note": None})]),
        ("olmo3", "auto", 'I look.\n<function_calls>\nweather(place="a \\"b\\"", exact=true)\nlist_stations()\n'
         '</function_calls>',
         [("weather", {"place": 'a "b"', "exact": True}), STATIONS]),
        ("llama3_builtin", "auto", '<|python_tag|>weather.call(place="weather in Menlo Park, \\"CA\\"")',
         [("weather", {"place": 'weather in Menlo Park, "CA"'})]),
        (
            "gemma4",
            "auto",
            f'I look.<|tool_call>call:weather{{place:<|"|>{_LINES}<|"|>,days:-3,tags:[],at:{{lat:-1.5}}}}<tool_call|>',
            [("weather", {"place": _LINES, "days": -3, "tags": [], "at": {"lat": -1.5}})],
        ),
        (
            "functiongemma",
            "auto",
            "<start_function_call>call:list_stations{}<end_function_call>"
            f"<start_function_call>call:weather{{place:<escape>{_LINES}<escape>}}<end_function_call>",
            [STATIONS, _SAID],
        ),
        ("kimi_k3", "auto/outside", "<|open|>think<|sep|>hm<|close|>think<|sep|>"
         "<|open|>response<|sep|>I look.<|close|>response<|sep|>" + _K3, _BOTH),
        ("kimi_k3", "auto/inside", "hm<|close|>think<|sep|>"
         "<|open|>response<|sep|>No.<|close|>response<|sep|><|close|>message<|sep|>", []),
        ("step3", "auto/outside", "<think>\nhm\n</think>\n<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function"
         "<｜tool_sep｜>"
         f'<steptml:invoke name="weather"><steptml:parameter name="place">{_LINES}</steptml:parameter></steptml:invoke>'
         "<｜tool_call_end｜>\n<｜tool_calls_end｜>", [_SAID]),
        ("toolkengpt", "auto", 'It is <T>list_stations()=12. Then <T>weather("x", -3, false)=1.',
         [STATIONS, ("weather", {"place": "x", "days": -3, "exact": False})]),
        ("deepseek_v41", "auto", 'I look.\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="list_stations">\n'
         "</｜DSML｜ invoke>\n"
         "</｜DSML｜ calls>", [STATIONS]),
        ("deepseek_v4", "auto/outside", f'<think>hm</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="weather">'
         f'\n{_SIX}{_LINES}'
         "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>", [_SAID]),
    ]
]  # fmt: skip

_LISTED_JSON = f'[{{"name": "weather", "arguments": {_JSON}}}, {{"name": "list_stations", "arguments": {{}}}}]'
_GCML = "｜GCML｜"
_ATEM = ' to={0}<|message|><atem:function_calls>\n<atem:invoke name="{0}">\n{1}</atem:invoke>\n</atem:function_calls>'
_PLAMO = (
    "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>{0}<|plamo:end_tool_name:plamo|>"
    "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{1}<|plamo:end_tool_arguments:plamo|>"
    "<|plamo:end_tool_request:plamo|>"
)
RENDERINGS += [  # of families whose formats the engines' parsers and templates of packages tell
    Rendering(*row)
    for row in [
        (
            "lfm2",
            "auto",
            "<|tool_call_start|>[weather(place='a\nb')]<|tool_call_end|>",
            [("weather", {"place": "a\nb"})],
        ),
        (
            "lfm2",
            "auto",
            '<|tool_call_start|>[weather(place="a\n\tb\\n")]<|tool_call_end|>I look.',
            [("weather", {"place": "a\n\tb\n"})],
        ),
        (
            "apertus",
            "auto/outside",
            f'<|inner_prefix|>hm<|inner_suffix|>I look.<|tools_prefix|>[{{"weather": {_JSON}}}, '
            '{"list_stations": {}}]<|tools_suffix|>',
            _BOTH,
        ),
        ("apriel", "auto/inside", f"hm\n[BEGIN FINAL RESPONSE]\n\n<tool_calls>{_LISTED_JSON}</tool_calls>\n", _BOTH),
        (
            "hunyuan_a13b",
            "auto/outside",
            f"<think>\nhm\n</think>\n<answer>\n<tool_calls>{_LISTED_JSON}</tool_calls>\n</answer>",
            _BOTH,
        ),
        (
            "jamba",
            "required",
            f' <tool_calls>[\n    {{"name": "weather", "arguments": {_JSON}}},\n'
            '    {"name": "list_stations", "arguments": {}}\n]</tool_calls>',
            _BOTH,
        ),
        (
            "ernie45",
            "auto/outside",
            f'<think>hm\n</think>\n\n<tool_call>\n{{"name": "weather", "arguments": {_JSON}}}\n'
            '</tool_call>\n<tool_call>\n{"name": "list_stations", "arguments": {}}\n</tool_call>\n',
            _BOTH,
        ),
        (
            "gigachat3",
            "auto",
            f'I look.<|message_sep|>\n\nfunction call<|role_sep|>\n{{"name": "weather", "arguments": {_JSON}}}'
            "<|message_sep|>\n\n",
            [WEATHER],
        ),
        ("gigachat31", "auto", f'I look.<|function_call|>{{"name": "weather", "arguments": {_JSON}}}', [WEATHER]),
        (
            "gigachat35",
            "auto/outside",
            f'<think>hm</think>\n\n<{_GCML}tool_calls>\n<{_GCML}invoke name="weather">\n'
            f'<{_GCML}parameter name="place" string="true">{_LINES}</{_GCML}parameter>\n'
            f'<{_GCML}parameter name="note" string="false">null</{_GCML}parameter>\n</{_GCML}invoke>\n'
            f'<{_GCML}invoke name="list_stations">\n</{_GCML}invoke>\n</{_GCML}tool_calls>',
            [("weather", {"place": _LINES, "note": None}), STATIONS],
        ),
        (
            "granite_20b_fc",
            "auto",
            f'<function_call> {{"name": "weather", "arguments": {_JSON}}}\n'
            '<function_call> {"name": "list_stations", "arguments": {}}\n',
            _BOTH,
        ),
        (
            "hy_v3",
            "auto",
            "I look.<tool_calls>\n<tool_call>list_stations<tool_sep>\n</tool_call>\n"
            f"<tool_call>weather<tool_sep>\n<arg_key>place</arg_key>\n<arg_value>{_LINES}</arg_value>\n</tool_call>\n</tool_calls>",
            [STATIONS, _SAID],
        ),
        (
            "hy_v3",
            "required",
            "<tool_calls><tool_call>weather<tool_sep><arg_key>place</arg_key><arg_value>Bern</arg_value>"
            "</tool_call></tool_calls>",
            [SMALL],
        ),
        (
            "inkling",
            "auto/outside",
            "<|content_thinking|>hm<|end_message|><|message_model|><|content_text|>I look."
            "<|end_message|><|message_model|><|content_invoke_tool_json|>"
            '{"name":"weather","args":{"place":"Bern"}}<|end_message|>',
            [SMALL],
        ),
        (
            "internlm",
            "auto",
            f'I look.<|action_start|><|plugin|>\n{{"name": "weather", "arguments": {_JSON}}}<|action_end|>',
            [WEATHER],
        ),
        (
            "k2_horizon",
            "auto/outside",
            "<ifm|think_fast>hm</ifm|think_fast>\n<ifm|tool_calls><ifm|tool_call>weather<ifm|arg_key>"
            "place</ifm|arg_key><ifm|arg_value>Bern</ifm|arg_value></ifm|tool_call>\n<ifm|tool_call>list_stations"
            "</ifm|tool_call></ifm|tool_calls>",
            [SMALL, STATIONS],
        ),
        (
            "longcat",
            "auto",
            f'<longcat_tool_call>\n{{"name": "weather", "arguments": {_JSON}}}\n</longcat_tool_call>\n',
            [WEATHER],
        ),
        (
            "minicpm5",
            "auto",
            'Hm.<function name="weather"><param name="place">Bern</param><param name="exact">True</param>'
            '<param name="note">None</param></function>\n<function name="list_stations"></function>\n',
            [("weather", {"place": "Bern", "exact": True, "note": None}), STATIONS],
        ),
        (
            "muse",
            "auto/outside",
            " to=self<|message|>hm<|eom|><|start|>assistant to=user<|message|>I look.<|eom|><|start|>assistant"
            + _ATEM.format("weather", f'<atem:parameter name="place">{_LINES}</atem:parameter>\n')
            + "<|eom|><|start|>assistant"
            + _ATEM.format("list_stations", ""),
            [_SAID, STATIONS],
        ),
        (
            "plamo3",
            "auto/outside",
            "<|plamo:begin_think:plamo|>hm<|plamo:end_think:plamo|><|plamo:begin_tool_requests:plamo|>"
            + _PLAMO.format("weather", _JSON)
            + _PLAMO.format("list_stations", "{}")
            + "<|plamo:end_tool_requests:plamo|>",
            _BOTH,
        ),
        (
            "seed_oss",
            "auto/outside",
            "<seed:think>hm</seed:think>\nI look.\n\n<seed:tool_call>\n<function=weather>\n"
            "<parameter=place>Bern</parameter>\n<parameter=exact>True</parameter>\n</function>\n</seed:tool_call>",
            [("weather", {"place": "Bern", "exact": True})],
        ),
        ("xlam", "required", _LISTED_JSON, _BOTH),
        (
            "dots",
            "auto",
            'I look.<dots_function_call><invoke name="weather"><parameter name="place">Bern</parameter></invoke>'
            '<invoke name="list_stations"></invoke></dots_function_call>',
            [SMALL, STATIONS],
        ),
        (
            "functionary_v31",
            "auto",
            f"I look.<function=weather>{_JSON}</function><function=list_stations>{{}}</function>",
            _BOTH,
        ),
        ("functionary_v32", "auto", f"all\nI look.>>>weather\n{_JSON}>>>list_stations\n{{}}", _BOTH),
        ("nemotron_nano_v2", "auto/inside", f"hm\n</think>\n\n<TOOLCALL>{_LISTED_JSON}</TOOLCALL>", _BOTH),
    ]
]
