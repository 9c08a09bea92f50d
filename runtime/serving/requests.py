"""Read the body of a request: what it is compiled from, and where its answer begins in the bundle.

    OpenAI chat completions   tools, tool_choice, parallel_tool_calls, response_format
    OpenAI Responses          the same with flat tools, and text.format
    Anthropic Messages        tools, tool_choice with disable_parallel_tool_use, output_config.format (or output_format)

The forms differ where the meaning does, so a body is read without being told which API it is of.

Leaves out   what schemas mean, and whether tools can be compiled (the compiler's specs/); bundles and their entries
             (docs/protocols.md, "Entries"); messages, sampling and whether the prompt opens reasoning.
Invariants   `content` depends on the tools and on the schema of the answer alone: requests that differ in
             `tool_choice`, `parallel_tool_calls`, `strict` or the descriptions of tools have one content, and so one
             bundle. Nothing is dropped in silence: a field that constrains the answer and is not read here is refused
             at its pointer; a field that nobody here knows is listed in `unread`. A content's document is the body of a
             request again, and has itself for content.
Strict       a schema is enforced whatever `strict` says: in these APIs false is what is meant where nothing is said.
Source       the API references of OpenAI and Anthropic, November 2026; vLLM 0.33, entrypoints/{openai,anthropic}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..calls.json_text import packed
from ..errors import RequestError
from ..expected import did_you_mean, named_kind
from ..format.container import blake

if TYPE_CHECKING:
    from ..format.bundle import Bundle

KIND: Final = "request"
"""What a spec of this kind is called in the meta of bundles."""
ANY_OBJECT: dict[str, Any] = {"type": "object"}
"""The schema of ``json_object``."""
STRUCTURAL_TAG: Final = "structural_tag"
FORMATS = ("text", "json_object", "json_schema", STRUCTURAL_TAG)
"""Types of a response format."""
_FORMAT_PLACES = (("response_format",), ("text", "format"), ("output_config", "format"), ("output_format",))
_WORDS = ("auto", "required", "none")
_ANTHROPIC = {"auto": "auto", "any": "required", "none": "none", "tool": "tool"}
_READ = ("tools", "tool_choice", "parallel_tool_calls", "response_format", "text", "output_config", "output_format")
_OTHERS = {
    "functions": 'write tools: [{"type": "function", "function": …}]',
    "function_call": "write tool_choice",
    "mcp_servers": "list the tools of the servers under tools",
    "structured_outputs": None,
    "guided_json": "write response_format",
    "guided_regex": None,
    "guided_choice": None,
    "guided_grammar": None,
    "json_schema": "write response_format",
    "structural_tag": "write response_format",
    "regex": None,
    "ebnf": None,
    "grammar": None,
}
"""Fields that constrain an answer in ways that are not read here → what to write instead."""
_NO_PART_OF_A_TOOL = (
    "description", "strict", "cache_control", "defer_loading", "allowed_callers", "input_examples",
    "eager_input_streaming",
)  # fmt: skip
"""What a tool says that changes nothing of what a call may be."""
_PASSED_OVER = frozenset(
    """
    messages model audio frequency_penalty logit_bias logprobs max_completion_tokens max_tokens metadata modalities n
    prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort
    safety_identifier seed service_tier stop store stream stream_options temperature top_logprobs top_p user verbosity
    background conversation include input instructions max_output_tokens max_tool_calls previous_response_id reasoning
    truncation
    cache_control container context_management inference_geo stop_sequences system thinking top_k betas
    use_beam_search min_p repetition_penalty length_penalty stop_token_ids include_stop_str_in_output ignore_eos
    min_tokens skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens truncation_side prompt_logprobs
    logprob_token_ids allowed_token_ids bad_words echo add_generation_prompt continue_final_message add_special_tokens
    documents chat_template chat_template_kwargs media_io_kwargs mm_processor_kwargs priority request_id session_id
    return_tokens_as_token_ids return_token_ids cache_salt kv_transfer_params ec_transfer_params vllm_xargs
    thinking_token_budget include_reasoning separate_reasoning stream_reasoning watermarking repetition_detection
    stream_interval extra_body extra_headers rid lora_path no_stop_trim stop_regex custom_params
    """.split()
)
"""Fields that say nothing of what an answer may be: prompts, sampling, transport."""


class Start(NamedTuple):
    """Where the answer to a request begins.

    Attributes:
        entry: of the bundle.
        tools: the only ones that may be called, for `Bundle.subset`; None for all.
    """

    entry: str
    tools: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Content:
    """What a request is compiled from.

    Attributes:
        tools: as OpenAI's chat completions list them, without what changes no call.
        response: the schema that an answer without calls has to meet, or the structural tag; None for any text.
        places: pointer in `document` → pointer in the body that was read, where they differ.
    """

    tools: tuple[dict[str, Any], ...]
    response: dict[str, Any] | bool | None = None
    places: Mapping[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The same as the body of a request, which `toolc.compiler.compile_request` takes."""
        found: dict[str, Any] = {"tools": list(self.tools)} if self.tools else {}
        if self.tag:
            found["response_format"] = self.response
        elif self.response is not None:
            found["response_format"] = {"type": "json_schema", "json_schema": {"schema": self.response}}
        return found

    @property
    def tag(self) -> bool:
        """Whether the response is a structural tag."""
        return isinstance(self.response, dict) and self.response.get("type") == STRUCTURAL_TAG

    @property
    def answer_place(self) -> str:
        """Where in the body its schema or structural tag stands."""
        return self.place("/response_format" if self.tag else "/response_format/json_schema/schema")

    @cached_property
    def digest(self) -> str:
        """BLAKE2b-128, hex: equal for equal contents. It is the digest of the spec in the bundle's meta.

        Raises:
            RequestError: the content is nothing that JSON can say, or nests some thousand deep.
        """
        try:
            return blake(KIND.encode(), b"\n", packed(self.document)).hex()
        except (ValueError, TypeError) as error:
            raise RequestError("this is no JSON that is read here", place="tools", found=str(error)[:80]) from None

    def place(self, pointer: str) -> str:
        """Where in the body a place of the document stands."""
        for head in sorted(self.places, key=len, reverse=True):
            if pointer == head or pointer.startswith(head + "/"):
                return self.places[head] + pointer[len(head) :]
        return pointer


@dataclass(frozen=True)
class Request:
    """A request, read.

    Attributes:
        name: how errors call it.
        content: what it is compiled from; None if nothing constrains the answer.
        choice: "auto", "required", "none", or "tool" for the one tool in `allowed`.
        one: whether at most one call may stand in the answer.
        allowed: the only tools that may be called; None for all.
        unread: pointers of fields that are not known here.
    """

    name: str
    content: Content | None
    choice: str = "auto"
    one: bool = False
    allowed: tuple[str, ...] | None = None
    unread: tuple[str, ...] = ()

    @property
    def asks(self) -> str:
        """The entry that it begins with, without reasoning (docs/protocols.md, "Entries")."""
        if self.content is None:
            raise RequestError("nothing constrains the answer to this request", place=f"{self.name}#")
        if self.choice == "tool":
            assert self.allowed is not None
            return f"tool:{self.allowed[0]}"
        if self.content.response is None:
            entry = self.choice
        elif self.choice == "none" or not self.content.tools or (self.content.tag and self.choice == "auto"):
            return "response"  # a structural tag says the whole answer, calls among it
        else:
            entry = "either" if self.choice == "auto" else self.choice
        return f"{entry}/one" if self.one and entry != "none" else entry

    def start(self, bundle: Bundle, reasoning: str | None = None) -> Start:
        """Where the answer begins in the bundle of its content.

        Args:
            bundle: what `content` compiled to.
            reasoning: "outside" if reasoning may come first, "inside" if the prompt has opened it, "" for none; None:
                it may come first wherever the protocol has any.

        Raises:
            RequestError: the protocol has no such entry, or the bundle is another request's.
        """
        known = {str(tool["name"]) for tool in bundle.tools}
        wanted = known if self.allowed is None else set(self.allowed)
        if self.content is not None and not wanted <= known:
            raise RequestError(
                "the bundle was compiled from another request",
                place=bundle.name,
                found=_names(known) or "no tools",
                expected=_names(wanted),
            )
        entries, asked = bundle.meta["entry"], self.asks
        tools = None if wanted == known else self.allowed
        if asked in entries and self.choice == "tool":
            tools = None
        elif self.choice == "tool":
            asked = "required/one"
        if asked not in entries:
            raise RequestError(
                f"the protocol {bundle.meta.get('protocol') or '(none)'} has no such answer",
                place=f"{self.name}#",
                found=asked,
                expected="one of " + ", ".join(sorted({entry for entry in entries if "/" not in entry} - {"start"})),
                hint=_HINTS.get(asked.partition("/")[0]),
            )
        if reasoning is None:
            return Start(f"{asked}/outside" if f"{asked}/outside" in entries else asked, tools)
        entry = f"{asked}/{reasoning}" if reasoning else asked
        if entry not in entries:
            raise RequestError(
                f"the protocol {bundle.meta.get('protocol') or '(none)'} has no reasoning of this kind",
                place=f"{self.name}#",
                found=repr(reasoning),
            )
        return Start(entry, tools)


_HINTS = {
    "auto": 'its models write nothing beside calls: say tool_choice "required", or compile for the model\'s protocol',
    "none": "its models write nothing but calls: leave the tools out",
}


def read_request(body: Any, name: str = KIND) -> Request:
    """Read the body of a request of OpenAI's chat completions or Responses, or of Anthropic's Messages.

    Args:
        body: the JSON value.
        name: how errors call it.

    Raises:
        RequestError: at a pointer; it is no such body, or asks for what is not read here.
    """
    _want(body, dict, f"{name}#", "the body of a request: an object")
    for key, hint in _OTHERS.items():
        if body.get(key) not in (None, [], {}, ""):
            raise RequestError(
                "this constrains the answer in a way that is not read here",
                place=f"{name}#/{key}",
                found=key,
                hint=hint,
            )
    for key, usual in (("continue_final_message", False), ("add_generation_prompt", True)):
        if body.get(key) not in (None, usual):
            raise RequestError(
                "the answer would begin inside of a message", place=f"{name}#/{key}", found=_shown(body[key]),
                expected="true" if usual else "false",
            )  # fmt: skip
    tools, places = _tools(body.get("tools"), name)
    response, at = _response(body, name)
    content = None if not tools and response is None else Content(tuple(tools), response, places)
    if at and content is not None:
        places["/response_format" if content.tag else "/response_format/json_schema/schema"] = at
    known = dict(_names_of(tools))
    choice, one, allowed = _choice(body.get("tool_choice"), known, f"{name}#/tool_choice")
    parallel = body.get("parallel_tool_calls")
    if parallel is not None:
        _want(parallel, bool, f"{name}#/parallel_tool_calls", "true or false")
    if choice in ("required", "tool") and not tools:
        raise RequestError("there are no tools to call", place=f"{name}#/tool_choice", found=choice, expected="tools")
    unread = [f"/{_escape(key)}" for key in body if key not in _READ and key not in _OTHERS and key not in _PASSED_OVER]
    unread += _unread_in(body, "text", ("format", "verbosity"))
    unread += _unread_in(body, "output_config", ("format", "effort", "task_budget"))
    return Request(name, content, choice, one or parallel is False, allowed, tuple(unread))


def is_request(value: Any) -> bool:
    """Whether an object is the body of a request, rather than a list of tools or a schema."""
    if not isinstance(value, dict):
        return False
    said = value.keys() & {"tool_choice", "parallel_tool_calls", "response_format", "functions", "function_call"}
    if isinstance(value.get("tools"), list) or isinstance(value.get("response_format"), dict):
        talks = value.keys() & {"messages", "input", "model", "text", "output_config", "output_format"}
        return bool(said or talks)
    talks = {"model"} & value.keys() and {"messages", "input"} & value.keys()
    return bool(talks) and "properties" not in value


def is_response_format(value: Any) -> bool:
    """Whether an object is a response format, and no schema: none of its types is one of a schema."""
    return isinstance(value, dict) and (value.get("type") in FORMATS or _is_older_tag(value))


def _is_older_tag(value: dict[str, Any]) -> bool:
    """Whether an object is a structural tag of the older form, which needs no type."""
    return (
        value.get("type") in (None, STRUCTURAL_TAG)
        and isinstance(value.get("structures"), list)
        and "triggers" in value
    )


def response_of(value: Any, place: str) -> tuple[dict[str, Any] | bool | None, str]:
    """The schema of a response format, and where it stands; None for text.

    Args:
        value: OpenAI's, of chat completions or Responses, or Anthropic's.
        place: of it, as errors name it.

    Raises:
        RequestError: it is none.
    """
    _want(value, dict, place, f"a response format: an object of type {', '.join(FORMATS)}")
    kind = value.get("type")
    if kind is None and _is_older_tag(value):
        kind, value = STRUCTURAL_TAG, {"type": STRUCTURAL_TAG, **value}
    if kind not in FORMATS:
        raise RequestError(
            "no such response format", place=f"{place}/type", found=_shown(kind), expected=", ".join(FORMATS)
        )
    if kind == STRUCTURAL_TAG:
        return _structural_tag(value, place), place
    if kind != "json_schema":
        _only(value, ("type",), place)
        return (None, "") if kind == "text" else (ANY_OBJECT, place)
    if "json_schema" in value:
        _only(value, ("type", "json_schema"), place)
        place += "/json_schema"
        value = _want(value["json_schema"], dict, place, "an object with a schema")
    _only(value, ("type", "name", "description", "schema", "strict"), place)
    if value.get("strict") is not None:
        _want(value["strict"], bool, f"{place}/strict", "true or false")
    if value.get("schema") is None:
        raise RequestError(
            "the response format has no schema", place=place, expected="schema", hint="or the type json_object"
        )
    schema = value["schema"]
    if not isinstance(schema, bool):
        _want(schema, dict, f"{place}/schema", "a JSON Schema")
    return schema, f"{place}/schema"


def _structural_tag(value: dict[str, Any], place: str) -> dict[str, Any]:
    """A structural tag without keys that say nothing; the compiler reads what is in it."""
    if value.get("format") is None and value.get("structures") is None:
        raise RequestError(
            "the structural tag has no format", place=place, expected="format",
            hint="or structures and triggers, the older form",
        )  # fmt: skip
    return {key: one for key, one in value.items() if one is not None}


def _response(body: dict[str, Any], name: str) -> tuple[dict[str, Any] | bool | None, str]:
    """The schema of the answer, and its pointer."""
    found: dict[str, Any] | bool | None = None
    at = ""
    for keys in _FORMAT_PLACES:
        value: Any = body
        pointer = ""
        for key in keys:
            if pointer:
                _want(value, dict, f"{name}#{pointer}", "an object")
            value, pointer = value.get(key), f"{pointer}/{key}"
            if value is None:
                break
        if value is None:
            continue
        schema, place = response_of(value, f"{name}#{pointer}")
        if schema is None:
            continue
        if at:
            raise RequestError("two response formats", place=f"{name}#{pointer}", expected=f"only that at {name}#{at}")
        found, at = schema, place.partition("#")[2]
    return found, at


def _tools(value: Any, name: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The tools in the form of chat completions, and where they stand: those that are in no form known here as they
    are, for the compiler to refuse."""
    if value is None:
        return [], {}
    places: dict[str, str] = {}
    return _listed(value, name, "/tools", places), places


def _listed(value: Any, name: str, pointer: str, places: dict[str, str]) -> list[dict[str, Any]]:
    """The tools of a list at a pointer; ``places`` receives where they stand."""
    _want(value, list, f"{name}#{pointer}", "a list of tools")
    tools: list[dict[str, Any]] = []
    for number, tool in enumerate(value):
        here = f"{pointer}/{number}"
        _want(tool, dict, f"{name}#{here}", "a tool: an object")
        if tool.get("type") == "namespace" and isinstance(tool.get("tools"), list):
            inside = _listed(tool["tools"], name, f"{here}/tools", places)
            tools.append({**_without(tool, ("tools",)), "tools": inside})
            continue
        if tool.get("type") == "custom" and ("custom" in tool or "format" in tool) and "input_schema" not in tool:
            tools.append(_custom(tool, here, places))
            continue
        if tool.get("type") == "function" and "function" in tool:
            inner = tool["function"]
            around = _without(tool, ("type", "function"))
        elif tool.get("type") == "function":
            inner, around = _without(tool, ("type",)), {}
            places[f"{here}/function"] = here
        elif tool.get("type") in (None, "custom") and isinstance(tool.get("input_schema"), dict):
            inner, around = _without(tool, ("type", "input_schema")), {}
            if "parameters" not in inner:
                inner["parameters"] = tool["input_schema"]
                places[f"{here}/function/parameters"] = f"{here}/input_schema"
            else:
                inner["input_schema"] = tool["input_schema"]
            places[f"{here}/function"] = here
        else:
            tools.append(tool)
            continue
        if isinstance(inner, dict):
            inner = _without(inner, ())
        tools.append({"type": "function", "function": inner, **around})
    return tools


def _custom(tool: dict[str, Any], here: str, places: dict[str, str]) -> dict[str, Any]:
    """A custom tool in the form of chat completions; what is in no known form stays as it is."""
    inner, around = tool.get("custom"), _without(tool, ("type", "custom"))
    if "custom" not in tool:
        inner, around = around, {}
        places[f"{here}/custom"] = here
    if isinstance(inner, dict):
        inner = _without(inner, ())
        form = inner.get("format")
        at = places.get(f"{here}/custom", f"{here}/custom") + "/format"
        if isinstance(form, dict) and form.get("type") == "grammar" and "grammar" not in form:
            inner["format"] = {"type": "grammar", "grammar": {key: form[key] for key in form if key != "type"}}
            places[f"{here}/custom/format/grammar"] = at
    return {"type": "custom", "custom": inner, **around}


def _without(tool: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """A tool without some keys, and without what changes no call."""
    return {key: value for key, value in tool.items() if key not in keys and key not in _NO_PART_OF_A_TOOL}


def _names_of(tools: Iterable[dict[str, Any]], space: str = "") -> Iterator[tuple[str, str]]:
    """The names of functions and custom tools, with their types; of those in a namespace as NAMESPACE__NAME."""
    for tool in tools:
        kind = "custom" if "custom" in tool else "function"
        inner = tool.get(kind)
        if tool.get("type") == "namespace" and isinstance(tool.get("tools"), list):
            yield from _names_of(tool["tools"], f"{space}{tool.get('name')}__")
        elif isinstance(inner, dict):
            yield space + str(inner.get("name")), kind


def _choice(value: Any, known: Mapping[str, str], place: str) -> tuple[str, bool, tuple[str, ...] | None]:
    """What `tool_choice` says: the choice, whether there is at most one call, and the only tools."""
    if value is None:
        return "auto", False, None
    if isinstance(value, str):
        if value not in _WORDS:
            hint = 'write "required"' if value == "any" else did_you_mean(value, _WORDS)
            if value in known:
                hint = f'write {{"type": "function", "function": {{"name": "{value}"}}}}'
            raise RequestError(
                "no such tool_choice", place=place, found=repr(value)[:80], expected=", ".join(_WORDS), hint=hint
            )
        return value, False, None
    _want(value, dict, place, 'a word or an object, as {"type": "function", …}')
    kind = value.get("type")
    if kind in _CALLABLE:
        return "tool", True, (_chosen(value, kind, known, place),)
    if kind == "allowed_tools":
        holder, at = value, place
        if "allowed_tools" in value:
            _only(value, ("type", "allowed_tools"), place)
            at = f"{place}/allowed_tools"
            holder = _want(value["allowed_tools"], dict, at, "an object with mode and tools")
            _only(holder, ("mode", "tools"), at)
        else:
            _only(value, ("type", "mode", "tools"), place)
        mode = holder.get("mode", "auto")
        if mode not in ("auto", "required"):
            raise RequestError("no such mode", place=f"{at}/mode", found=_shown(mode), expected="auto, required")
        return mode, False, tuple(_allowed(holder.get("tools"), known, f"{at}/tools"))
    if isinstance(kind, str) and kind in _ANTHROPIC:
        _only(value, ("type", "disable_parallel_tool_use", *(("name",) if kind == "tool" else ())), place)
        alone = value.get("disable_parallel_tool_use")
        if alone is not None:
            _want(alone, bool, f"{place}/disable_parallel_tool_use", "true or false")
        if kind == "tool":
            return "tool", True, (_tool_name(value, known, place),)
        return _ANTHROPIC[kind], bool(alone), None
    raise RequestError(
        "no such tool_choice", place=f"{place}/type", found=_shown(kind),
        expected="function, custom, allowed_tools, or Anthropic's " + ", ".join(_ANTHROPIC),
        hint="toolc writes no calls of tools that the API itself runs" if isinstance(kind, str) else None,
    )  # fmt: skip


def _allowed(listed: Any, known: Mapping[str, str], place: str) -> Iterator[str]:
    _want(listed, list, place, "a list of tools")
    if not listed:
        raise RequestError("no tool is allowed", place=place, expected="at least one", hint='or tool_choice "none"')
    seen = set()
    for number, one in enumerate(listed):
        at = f"{place}/{number}"
        _want(one, dict, at, 'a tool, as {"type": "function", …}')
        if one.get("type") not in _CALLABLE:
            expected = ", ".join(_CALLABLE)
            raise RequestError("no such tool", place=f"{at}/type", found=_shown(one.get("type")), expected=expected)
        tool = _chosen(one, one["type"], known, at)
        if tool not in seen:
            seen.add(tool)
            yield tool


_CALLABLE = ("function", "custom")
"""Types of tools that a choice may name."""


def _chosen(value: dict[str, Any], kind: str, known: Mapping[str, str], place: str) -> str:
    """The tool that a choice names, flat or below its type."""
    holder, at = value, place
    if kind in value:
        _only(value, ("type", kind), place)
        at = f"{place}/{kind}"
        holder = _want(value[kind], dict, at, "an object with a name")
        _only(holder, ("name",), at)
    else:
        _only(value, ("type", "name"), place)
    tool = _tool_name(holder, known, at)
    if known[tool] != kind:
        raise RequestError(
            "the tool is of another type", place=f"{place}/type", found=_shown(kind), expected=known[tool]
        )
    return tool


def _tool_name(holder: dict[str, Any], known: Mapping[str, str], place: str) -> str:
    """The name of a tool that there is."""
    tool = holder.get("name")
    _want(tool, str, f"{place}/name", "the name of a tool")
    assert isinstance(tool, str)
    if tool not in known:
        raise RequestError(
            "no such tool",
            place=f"{place}/name",
            found=repr(tool)[:80],
            expected=_names(known) or "tools to choose from",
            hint=did_you_mean(tool, known),
        )
    return tool


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:20])


def _unread_in(body: dict[str, Any], key: str, known: tuple[str, ...]) -> list[str]:
    value = body.get(key)
    return [f"/{key}/{_escape(one)}" for one in value if one not in known] if isinstance(value, dict) else []


def _only(value: dict[str, Any], known: tuple[str, ...], place: str) -> None:
    """Refuse an object with keys that are not read: beside what constrains an answer they would change it."""
    for key in value:
        if key not in known and value[key] is not None:
            raise RequestError(
                "this is not read here",
                place=f"{place}/{_escape(key)}",
                found=repr(key)[:80],
                expected=", ".join(known),
            )


def _want(value: Any, kind: type, place: str, expected: str) -> Any:
    if not isinstance(value, kind):
        raise RequestError("", place=place, found=_shown(value), expected=expected)
    return value


def _shown(value: Any) -> str:
    names = {dict: "an object", list: "an array", type(None): "null"}
    if isinstance(value, (str, int, float)):
        return repr(value)[:80]
    return names.get(type(value)) or named_kind(value)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
