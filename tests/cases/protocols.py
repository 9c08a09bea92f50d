"""How each family writes calls, told a second time, without Lark: what tests write out, and what they read back by.

A text is  begin item (joint item)* end;  an item has {name}, {arguments} and perhaps {index}. ``read`` is the
independent reading that decides whether a text is a valid list of calls: delimiters by hand, arguments by codecs.py.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace
from typing import Any

from tests.cases.codecs import Bare, Cofl, Json, Keywords, Positional, Raw, Tags, fits


@dataclass(frozen=True)
class Family:
    """One protocol.

    Attributes:
        item: one call; begin, joint, end: around and between several; many: whether several can stand in one turn.
        tokens: delimiters that are single tokens in tokenizers of the family.
        ends: tokens that end a turn there.
        think: what opens reasoning and what ends it, or nothing.
        text: whether a turn may be text.
        before: text that may stand before the calls, or nothing.
        codec: how arguments are written; first: the index of the first call.
        other: another form of a call; after: text that may stand after the calls.
    """

    item: str
    begin: str = ""
    joint: str = ""
    end: str = ""
    many: bool = True
    tokens: tuple[str, ...] = ()
    ends: tuple[str, ...] = ("<|im_end|>",)
    think: tuple[str, str] | None = None
    text: str = "It is 12 < 13 here."
    before: str = "I look it up."
    codec: Any = field(default_factory=Json)
    first: int = 0
    other: str = ""
    after: str = ""

    @property
    def closers(self) -> set[str]:
        """Tokens that may end a string that has just begun."""
        if isinstance(self.codec, (Bare, Tags)):
            return {self.codec.mark}
        after = self.codec.parameter.partition("{value}")[2] if isinstance(self.codec, Raw) else ""
        return {token for token in self.tokens if after.startswith(token)}

    def write(self, calls: list[tuple[str, Any]], compact: bool = False) -> str:
        """The calls as the family writes them."""
        items = []
        for index, (name, arguments) in enumerate(calls):
            item = self.item.replace("{name}", name).replace("{index}", str(self.first + index))
            items.append(item.replace("{arguments}", self.codec.write(arguments, compact)))
        return self.begin + self.joint.join(items) + self.end

    def read(self, text: str, schemas: dict[str, Any]) -> list[tuple[str, Any]] | None:
        """The calls in a text that is nothing else; None if it is no such text."""
        if self.other and (found := replace(self, item=self.other, other="").read(text, schemas)) is not None:
            return found
        scan = _Scan(text, self.codec, schemas)
        try:
            scan.take(self.begin)
            calls = [scan.call(self.item)]
            while not scan.at(self.end) or (not self.end and scan.rest.strip() not in ("", self.after)):
                scan.take(self.joint)
                calls.append(scan.call(self.item))
            scan.take(self.end)
        except (ValueError, SyntaxError, RecursionError):
            return None
        return calls if scan.rest.strip() in ("", self.after) and (self.many or len(calls) == 1) else None


class _Scan:
    """Reads what a family writes, blanks left open, as parsers of these formats do."""

    def __init__(self, text: str, codec: Any, schemas: dict[str, Any]) -> None:
        self.rest = text
        self.codec = codec
        self.schemas = schemas

    def at(self, text: str) -> bool:
        before = self.rest
        try:
            self.take(text)
        except ValueError:
            return False
        finally:
            self.rest = before
        return True

    def take(self, text: str) -> None:
        for word in re.findall(r'[{}\[\],:"]|[^\s{}\[\],:"]+', text):
            self.rest = self.rest.lstrip()
            if not self.rest.startswith(word):
                raise ValueError(word)
            self.rest = self.rest[len(word) :]

    def call(self, item: str) -> tuple[str, Any]:
        name: str | None = None
        arguments: Any = None
        for piece in re.split(r"(\{name\}|\{arguments\}|\{index\})", item):
            if piece == "{name}":
                self.rest = self.rest.lstrip()
                found = re.match(r"[A-Za-z0-9_.-]+?(?=\.call\(|[^A-Za-z0-9_.-]|$)", self.rest)
                if not found:
                    raise ValueError("name")
                name = found[0]
                self.rest = self.rest[len(name) :]
            elif piece == "{index}":
                found = re.match(r"\d+", self.rest)
                if not found:
                    raise ValueError("index")
                self.rest = self.rest[len(found[0]) :]
            elif piece == "{arguments}":
                arguments, length = self.codec.read(self.rest, self.schemas.get(name or "", {}))
                self.rest = self.rest[length:]
            else:
                self.take(piece)
        assert name is not None
        return name, arguments


def mutations(family: Family, call: tuple[str, Any], rng: random.Random) -> list[str]:
    """Texts that are mostly no valid call."""
    name, arguments = call
    good = family.write([call])
    out = [
        family.write([(name[:-1], arguments)]),
        family.write([(name + "x", arguments)]),
        family.write([(name.upper(), arguments)]),
        family.write([(name, {**arguments, "zzz": 1})]),
        family.write([(name, dict(list(arguments.items())[1:]))]),
        family.write([(name, {key: [value] for key, value in arguments.items()})]),
        family.write([(name, [arguments])]),
        family.write([(name, str(arguments))]),
        good.replace('"', "'"),
        good.replace('"', "", 1),
        good.replace("}", "", 1),
        good.replace(name, "", 1),
        "x" + good,
        good + "x",
        good + good[:1],
        good[1:],
    ]
    out += [good[: rng.randrange(len(good))] for _ in range(4)]
    return out


def is_valid(calls: list[tuple[str, Any]] | None, schemas: dict[str, Any]) -> bool:
    """Whether there are calls, all of them of known tools with arguments that their schemas allow."""
    return calls is not None and all(name in schemas and fits(arguments, schemas[name]) for name, arguments in calls)


_THINK = ("<think>", "</think>")
_OBJECT = '{"name": "{name}", "arguments": {arguments}}'

_GLM = ("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", *_THINK)
_M3 = "]<]minimax[>["


def _dsml(word: str, gap: str = "") -> Family:
    end = f"</｜DSML｜{gap}parameter>\n"
    return Family(
        f'<｜DSML｜{gap}invoke name="{{name}}">\n{{arguments}}</｜DSML｜{gap}invoke>',
        f"\n\n<｜DSML｜{gap}{word}>\n",
        "\n",
        f"\n</｜DSML｜{gap}{word}>",
        tokens=("｜DSML｜", *_THINK),
        ends=("<｜end▁of▁sentence｜>",),
        think=_THINK,
        codec=Raw(
            f'<｜DSML｜{gap}parameter name="{{key}}" string="false">{{value}}' + end,
            f'<｜DSML｜{gap}parameter name="{{key}}" string="true">{{value}}' + end,
        ),
    )


FAMILIES: dict[str, Family] = {
    "json": Family(_OBJECT, many=False, text="", before=""),
    "hermes": Family(
        f"<tool_call>\n{_OBJECT}\n</tool_call>",
        joint="\n",
        tokens=("<tool_call>", "</tool_call>", *_THINK),
        think=_THINK,
    ),
    "llama4_json": Family(
        '{"name": "{name}", "parameters": {arguments}}',
        tokens=("<|python_tag|>", "<|python_start|>", "<|python_end|>"),
        ends=("<|eot|>",),
    ),
    "llama3": Family(
        '{"name": "{name}", "parameters": {arguments}}',
        joint="; ",
        tokens=("<|python_tag|>",),
        ends=("<|eot_id|>",),
        before="",
    ),
    "mistral": Family(_OBJECT, "[TOOL_CALLS] [", ", ", "]", tokens=("[TOOL_CALLS]",), ends=("</s>",)),
    "mistral_v11": Family(
        "[TOOL_CALLS]{name}[ARGS]{arguments}",
        tokens=("[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"),
        ends=("</s>",),
        think=("[THINK]", "[/THINK]"),
    ),
    "deepseek_v3": Family(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```<｜tool▁call▁end｜>",
        "<｜tool▁calls▁begin｜>",
        "\n",
        "<｜tool▁calls▁end｜>",
        tokens=(
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁sep｜>",
        ),
        ends=("<｜end▁of▁sentence｜>",),
        think=_THINK,
    ),
    "deepseek_v31": Family(
        "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
        "<｜tool▁calls▁begin｜>",
        "",
        "<｜tool▁calls▁end｜>",
        tokens=(
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁sep｜>",
            *_THINK,
        ),
        ends=("<｜end▁of▁sentence｜>",),
        think=_THINK,
    ),
    "kimi_k2": Family(
        "<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
        "<|tool_calls_section_begin|>",
        "",
        "<|tool_calls_section_end|>",
        tokens=(
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|tool_call_end|>",
            "<|tool_call_argument_begin|>",
        ),
        think=_THINK,
    ),
    "phi4_mini": Family(
        _OBJECT,
        "<|tool_call|>[",
        ", ",
        "]<|/tool_call|>",
        tokens=("<|tool_call|>", "<|/tool_call|>"),
        ends=("<|end|>",),
    ),
    "granite": Family(
        _OBJECT, "<|tool_call|>[", ", ", "]", tokens=("<|tool_call|>",), ends=("<|end_of_text|>",), think=_THINK
    ),
    "cohere": Family(
        '{"tool_call_id": "{index}", "tool_name": "{name}", "parameters": {arguments}}',
        "<|START_ACTION|>[",
        ", ",
        "]<|END_ACTION|>",
        tokens=(
            "<|START_ACTION|>",
            "<|END_ACTION|>",
            "<|START_THINKING|>",
            "<|END_THINKING|>",
            "<|START_RESPONSE|>",
            "<|END_RESPONSE|>",
        ),
        ends=("<|END_OF_TURN_TOKEN|>",),
        think=("<|START_THINKING|>", "<|END_THINKING|>"),
        before="",
        text="<|START_RESPONSE|>It is 12 < 13 here.<|END_RESPONSE|>",
    ),
    "cohere_cmd5": Family(
        '<cofl:tool_call id="{index}" name="{name}">{arguments}</cofl:tool_call>',
        "<cofl:tool_calls>",
        "",
        "</cofl:tool_calls>",
        tokens=("<cofl:tool_calls>", "</cofl:tool_calls>", "<|START_THINKING|>", "<|END_THINKING|>"),
        ends=("<|END_OF_TURN_TOKEN|>",),
        think=("<|START_THINKING|>", "<|END_THINKING|>"),
        codec=Cofl(),
    ),
    "harmony": Family(
        "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}",
        many=False,
        tokens=("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>"),
        ends=("<|return|>", "<|call|>"),
        think=("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        text="<|channel|>final<|message|>It is 12 < 13 here.",
        before="<|channel|>commentary<|message|>I look it up.<|end|><|start|>assistant",
    ),
    "qwen3_coder": Family(
        "<tool_call>\n<function={name}>\n{arguments}</function>\n</tool_call>",
        joint="\n",
        tokens=("<tool_call>", "</tool_call>", *_THINK),
        think=_THINK,
        codec=Raw("<parameter={key}>\n{value}\n</parameter>\n", python=True),
    ),
    "mimo": Family(
        "<tool_call><function={name}>{arguments}</function></tool_call>",
        joint="\n",
        tokens=("<tool_call>", "</tool_call>", *_THINK),
        think=_THINK,
        codec=Raw("<parameter={key}>{value}</parameter>"),
    ),
    "step3": Family(
        '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">{arguments}</steptml:invoke>'
        "<｜tool_call_end｜>",
        "<｜tool_calls_begin｜>\n",
        "\n",
        "\n<｜tool_calls_end｜>",
        tokens=(
            "<｜tool_calls_begin｜>",
            "<｜tool_calls_end｜>",
            "<｜tool_call_begin｜>",
            "<｜tool_call_end｜>",
            "<｜tool_sep｜>",
            *_THINK,
        ),
        ends=("<|EOT|>",),
        think=_THINK,
        codec=Raw('<steptml:parameter name="{key}">{value}</steptml:parameter>'),
    ),
    "glm45": Family(
        "<tool_call>{name}{arguments}\n</tool_call>",
        joint="\n",
        tokens=_GLM,
        ends=("<|user|>", "<|observation|>", "<|endoftext|>"),
        think=_THINK,
        codec=Raw("\n<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>"),
    ),
    "glm47": Family(
        "<tool_call>{name}{arguments}</tool_call>",
        tokens=_GLM,
        ends=("<|user|>", "<|observation|>", "<|endoftext|>"),
        think=_THINK,
        codec=Raw("<arg_key>{key}</arg_key><arg_value>{value}</arg_value>"),
    ),
    "minimax_m2": Family(
        '<invoke name="{name}">\n{arguments}</invoke>\n',
        "<minimax:tool_call>\n",
        "",
        "</minimax:tool_call>",
        tokens=("<minimax:tool_call>", "</minimax:tool_call>", *_THINK),
        ends=("[e~[",),
        think=_THINK,
        codec=Raw('<parameter name="{key}">{value}</parameter>\n'),
    ),
    "minimax_m3": Family(
        f'{_M3}<invoke name="{{name}}">{{arguments}}{_M3}</invoke>\n',
        f"{_M3}<tool_call>\n",
        "",
        f"{_M3}</tool_call>",
        tokens=(_M3, "<mm:think>", "</mm:think>"),
        ends=("[e~[",),
        think=("<mm:think>", "</mm:think>"),
        codec=Tags(_M3),
    ),
    "deepseek_v32": _dsml("function_calls"),
    "deepseek_v4": _dsml("tool_calls"),
    "deepseek_v41": _dsml("calls", " "),
    "kimi_k3": Family(
        '<|open|>call tool="{name}" index="{index}"<|sep|>{arguments}<|close|>call<|sep|>',
        "<|open|>tools<|sep|>",
        "",
        "<|close|>tools<|sep|>",
        tokens=("<|open|>", "<|close|>", "<|sep|>"),
        ends=("<|end_of_msg|>",),
        think=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        text="<|open|>response<|sep|>It is 12 < 13 here.<|close|>response<|sep|>",
        before="<|open|>response<|sep|>I look it up.<|close|>response<|sep|>",
        codec=Raw('<|open|>argument key="{key}" type="{type}"<|sep|>{value}<|close|>argument<|sep|>'),
        first=1,
    ),
    "gemma4": Family(
        "<|tool_call>call:{name}{arguments}<tool_call|>",
        tokens=("<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>", "<|tool_response>"),
        ends=("<turn|>",),
        think=("<|channel>thought\n", "<channel|>"),
        codec=Bare('<|"|>'),
    ),
    "functiongemma": Family(
        "<start_function_call>call:{name}{arguments}<end_function_call>",
        tokens=("<start_function_call>", "<end_function_call>", "<escape>"),
        ends=("<end_of_turn>",),
        codec=Bare("<escape>"),
    ),
    "pythonic": Family(
        "{name}({arguments})",
        "[",
        ", ",
        "]",
        tokens=("<|python_start|>", "<|python_end|>", "<|python_tag|>"),
        ends=("<|eot|>",),
        before="",
        codec=Keywords(),
    ),
    "llama3_builtin": Family(
        "<|python_tag|>{name}.call({arguments})",
        many=False,
        tokens=("<|python_tag|>",),
        ends=("<|eom_id|>", "<|eot_id|>"),
        before="",
        codec=Keywords(),
    ),
    "olmo3": Family(
        "{name}({arguments})", "<function_calls>", "\n", "</function_calls>", think=_THINK, codec=Keywords()
    ),
    "lfm2": Family(
        "{name}({arguments})",
        "<|tool_call_start|>[",
        ", ",
        "]<|tool_call_end|>",
        tokens=("<|tool_call_start|>", "<|tool_call_end|>", *_THINK),
        think=_THINK,
        codec=Keywords(),
    ),
    "react": Family(
        "Action: {name}\nAction Input: {arguments}",
        many=False,
        think=("Thought:", "\n"),
        text='Action: Finish\nAction Input: {"return_type": "give_answer", "final_answer": "It is 12 < 13."}',
        before="",
    ),
    "toolkengpt": Family("<T>{name}({arguments})=", tokens=("<T>",), ends=("</s>",), codec=Positional()),
    "apertus": Family(
        '{"{name}": {arguments}}',
        "<|tools_prefix|>[",
        ", ",
        "]<|tools_suffix|>",
        tokens=("<|tools_prefix|>", "<|tools_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>"),
        ends=("<|assistant_end|>",),
        think=("<|inner_prefix|>", "<|inner_suffix|>"),
    ),
    "apriel": Family(
        _OBJECT,
        "<tool_calls>[",
        ", ",
        "]</tool_calls>",
        tokens=("<tool_calls>", "</tool_calls>"),
        ends=("<|end|>",),
        think=("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
    ),
    "dots": Family(
        '<invoke name="{name}">\n{arguments}</invoke>\n',
        "<dots_function_call>\n",
        "",
        "</dots_function_call>",
        tokens=("<dots_function_call>", "</dots_function_call>", *_THINK),
        ends=("<|endofresponse|>",),
        think=_THINK,
        codec=Raw('<parameter name="{key}">{value}</parameter>\n'),
    ),
    "ernie45": Family(
        f"<tool_call>\n{_OBJECT}\n</tool_call>",
        joint="\n",
        tokens=("<tool_call>", "</tool_call>", "<response>", "</response>", *_THINK),
        ends=("<|end_of_sentence|>",),
        think=_THINK,
    ),
    "gigachat3": Family(
        f"<|message_sep|>\n\nfunction call<|role_sep|>\n{_OBJECT}",
        many=False,
        tokens=("<|message_sep|>", "<|role_sep|>"),
        ends=("</s>",),
        after="<|message_sep|>",
    ),
    "gigachat31": Family(
        f"<|function_call|>{_OBJECT}", many=False, tokens=("<|function_call|>",), ends=("<|message_sep|>", "</s>")
    ),
    "gigachat35": Family(
        '<｜GCML｜invoke name="{name}">\n{arguments}</｜GCML｜invoke>\n',
        "\n\n<｜GCML｜tool_calls>\n",
        "",
        "</｜GCML｜tool_calls>",
        tokens=("｜GCML｜", *_THINK),
        ends=("</s>",),
        think=_THINK,
        codec=Raw(
            '<｜GCML｜parameter name="{key}" string="false">{value}</｜GCML｜parameter>\n',
            '<｜GCML｜parameter name="{key}" string="true">{value}</｜GCML｜parameter>\n',
        ),
    ),
    "granite_20b_fc": Family(
        f"<function_call> {_OBJECT}", joint="\n", tokens=("<function_call>",), ends=("<|endoftext|>",)
    ),
    "hunyuan_a13b": Family(
        _OBJECT,
        "<tool_calls>[",
        ", ",
        "]</tool_calls>",
        tokens=("<tool_calls>", "</tool_calls>", "<answer>", "</answer>", *_THINK),
        ends=("<|eos|>",),
        think=_THINK,
        after="</answer>",
    ),
    "hy_v3": Family(
        "<tool_call>{name}<tool_sep>\n{arguments}</tool_call>\n",
        "<tool_calls>\n",
        "",
        "</tool_calls>",
        tokens=("<tool_calls>", "</tool_calls>", "<tool_sep>", *_GLM),
        ends=("<|eos|>",),
        think=_THINK,
        codec=Raw("<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"),
    ),
    "hy_v4": Family(
        "<tool_call>{name}{arguments}</tool_call>",
        "<tool_calls>",
        "",
        "</tool_calls>",
        tokens=("<tool_calls>", "</tool_calls>", *_GLM),
        ends=("<|eos|>",),
        think=_THINK,
        codec=Raw("<arg_key>{key}</arg_key><arg_value>{value}</arg_value>"),
    ),
    "inkling": Family(
        '<|content_invoke_tool_json|>{"name": "{name}", "args": {arguments}}<|end_message|>',
        joint="<|message_model|>",
        tokens=(
            "<|message_model|>",
            "<|end_message|>",
            "<|content_text|>",
            "<|content_thinking|>",
            "<|content_invoke_tool_json|>",
        ),
        ends=("<|content_model_end_sampling|>",),
        think=("<|content_thinking|>", "<|end_message|><|message_model|>"),
        text="<|content_text|>It is 12 < 13 here.<|end_message|>",
        before="<|content_text|>I look it up.<|end_message|><|message_model|>",
    ),
    "internlm": Family(
        '<|action_start|><|plugin|>\n{"name": "{name}", "parameters": {arguments}}<|action_end|>',
        many=False,
        tokens=("<|action_start|>", "<|plugin|>", "<|action_end|>", *_THINK),
        think=_THINK,
        other='<|action_start|><|plugin|>\n{"name": "{name}", "arguments": {arguments}}<|action_end|>',
    ),
    "iquest_q1": Family(
        "<iquest_tool_call>{name}{arguments}</iquest_tool_call>",
        tokens=("<iquest_tool_call>", "</iquest_tool_call>", *_GLM[2:]),
        think=_THINK,
        codec=Raw("<arg_key>{key}</arg_key><arg_value>{value}</arg_value>"),
    ),
    "jamba": Family(
        _OBJECT,
        "<tool_calls>[\n    ",
        ",\n    ",
        "\n]</tool_calls>",
        tokens=("<tool_calls>", "</tool_calls>"),
        ends=("<|eom|>",),
    ),
    "k2_horizon": Family(
        "<ifm|tool_call>{name}{arguments}</ifm|tool_call>",
        "<ifm|tool_calls>",
        "",
        "</ifm|tool_calls>",
        tokens=(
            *(
                f"<{end}ifm|{what}>"
                for what in ("tool_calls", "tool_call", "arg_key", "arg_value")
                for end in ("", "/")
            ),
            "<ifm|think>",
            "</ifm|think>",
        ),
        ends=("<|im_end|>",),
        think=("<ifm|think>", "</ifm|think>"),
        codec=Raw("<ifm|arg_key>{key}</ifm|arg_key><ifm|arg_value>{value}</ifm|arg_value>"),
    ),
    "longcat": Family(
        f"<longcat_tool_call>\n{_OBJECT}\n</longcat_tool_call>",
        joint="\n",
        tokens=("<longcat_tool_call>", "</longcat_tool_call>", "<longcat_think>", "</longcat_think>"),
        ends=("</longcat_s>",),
        think=("<longcat_think>", "</longcat_think>"),
    ),
    "minicpm5": Family(
        '<function name="{name}">{arguments}</function>',
        joint="\n",
        tokens=_THINK,
        think=_THINK,
        codec=Raw('<param name="{key}">{value}</param>'),
    ),
    "muse": Family(
        ' to={name}<|message|><atem:function_calls>\n<atem:invoke name="{name}">\n{arguments}</atem:invoke>\n'
        "</atem:function_calls>",
        joint="<|eom|><|start|>assistant",
        tokens=("<|start|>", "<|message|>", "<|eom|>"),
        ends=("<|eot|>",),
        think=(" to=self<|message|>", "<|eom|><|start|>assistant"),
        text=" to=user<|message|>It is 12 < 13 here.",
        before=" to=user<|message|>I look it up.<|eom|><|start|>assistant",
        codec=Raw('<atem:parameter name="{key}">{value}</atem:parameter>\n'),
    ),
    "plamo3": Family(
        "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>{name}<|plamo:end_tool_name:plamo|>"
        "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{arguments}"
        "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
        "<|plamo:begin_tool_requests:plamo|>",
        "",
        "<|plamo:end_tool_requests:plamo|>",
        tokens=("<|plamo:begin_", "<|plamo:end_", ":plamo|>", "<|plamo:constrain|>", "<|plamo:msg|>"),
        ends=("<|plamo:tag|>",),
        think=("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
    ),
    "seed_oss": Family(
        "<seed:tool_call>\n<function={name}>\n{arguments}</function>\n</seed:tool_call>",
        joint="\n",
        tokens=("<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>"),
        ends=("<seed:eos>",),
        think=("<seed:think>", "</seed:think>"),
        codec=Raw("<parameter={key}>{value}</parameter>\n", python=True),
    ),
    "xlam": Family(_OBJECT, "[", ", ", "]", tokens=(), ends=("<|eot_id|>",), think=_THINK, before=""),
    "functionary_v31": Family("<function={name}>{arguments}</function>", ends=("<|eom_id|>", "<|eot_id|>")),
    "functionary_v32": Family(
        "{name}\n{arguments}",
        joint=">>>",
        ends=("<|eot_id|>",),
        text="all\nIt is 12 < 13 here.",
        before="all\nI look it up.>>>",
    ),
    "hy3_opensource": Family(
        "<tool_call:opensource>{name}<tool_sep:opensource>\n{arguments}</tool_call:opensource>\n",
        "<tool_calls:opensource>\n",
        "",
        "</tool_calls:opensource>",
        tokens=(
            *(
                f"<{end}{what}:opensource>"
                for what in ("tool_calls", "tool_call", "arg_key", "arg_value", "think")
                for end in ("", "/")
            ),
            "<tool_sep:opensource>",
        ),
        ends=("<｜hy_eos:opensource｜>",),
        think=("<think:opensource>", "</think:opensource>"),
        codec=Raw(
            "<arg_key:opensource>{key}</arg_key:opensource>\n<arg_value:opensource>{value}</arg_value:opensource>\n"
        ),
    ),
    "nemotron_nano_v2": Family(
        _OBJECT, "<TOOLCALL>[", ", ", "]</TOOLCALL>", tokens=_THINK, ends=("<SPECIAL_12>",), think=_THINK
    ),
}
