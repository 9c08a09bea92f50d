"""A protocol, that is how a model writes calls of tools: its text, the rules it gives, and where a text may begin.

A protocol is Lark text that defines

    tool{name, arguments}   what differs from tool to tool; name is a string, arguments a rule     needed
                            (or parameters, keywords, positional, request: see arguments.py; a third parameter,
                            again, is the name once more, where the format repeats it)
    call{tools}             exactly one call                                                       needed
    text_tool{name, input}  the same of a custom tool whose input is a text as it is                else an object
    calls{tools}            one call or more                                                       else one call
    text                    what may be said instead of a call                                     else a call is needed
    lead, tail              what may be said before calls, and after them                          else nothing
    silence, trail          what stands before and after calls where nothing may be said           else nothing
    response{value}         a structured response, of JSON, in place of text                       else the value alone
    RESERVED, ANSWER        the name of a tool whose call is the text, and JSON Schemas of its arguments, of which one
                            holds                                                                  else none
    opened{tools}           a call whose opening mark has been read                                 else none
    think, thought          what opens reasoning; reasoning from there up to and with its end      else no reasoning
    unthought               what may stand in place of reasoning                                    else nothing
    _w, _c, _k              blanks between tokens of JSON as the family writes them, those around a comma and around a
                            colon, where the compile asks for no others                     else as json.dumps writes

A parameter ``tools_x`` of call or calls takes the alternatives of a template ``tool_x``. From these come the *entries*,
the places where a text may begin (docs/protocols.md): ``choice[/one][/outside or /inside]``, and "start" for what is
asked most.

Leaves out   the rules of arguments (../schema), the joined text (assemble.py), tokens or text (specials.py).
Invariants   entries and names follow the order above; rules made here begin with an underscore.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import GrammarError, SpecError
from ..ir.nodes import EMPTY, Expr, Ref, Use, choice, sequence
from ..paths import path_text

FOLDER = Path(__file__).resolve().parents[2] / "grammars"
SHARED = "protocol"
DEFAULT = "json"
AUTO = "auto"
CONFIGURATION = "tokenizer_config.json"

_RULE = re.compile(r"(?m)^[!?]*([a-z_][a-z0-9_]*)[ \t]*(?:\{([^}\n]*)\})?[ \t]*(?:\.-?\d+)?[ \t]*:")
_DEFINED = re.compile(r"(?m)^[!?]*([A-Za-z_]\w*)[ \t]*(?:\{([^}\n]*)\})?[ \t]*(?:\.-?\d+)?[ \t]*:")
_IMPORT = re.compile(r"(?m)^%import[ \t]+\.?protocol[ \t]*\(([^)]*)\)[ \t]*\n?")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_MARK = re.compile(rf"_(?:tag|token|end)\{{({STRING.pattern})\}}")
_GAPS = ("_w", "_c", "_k")
_BLANK = r'(?:"(?: |\\[ntr])+"|/(?: |\\[ntr]|\(\?:|[()\[\]*+?|]|\{\d+(?:,\d*)?\})+/)'
_SOME = rf"(?:{_BLANK}|\({_BLANK}(?: *\| *{_BLANK})*\))(?:[?*+]| ?~ ?\d+(?:\.\.\d+)?)?"
_GAP = {"_w": re.compile(_SOME)} | {
    name: re.compile(rf'(?:{_SOME} +)?"{sign}"(?: +{_SOME})?') for name, sign in (("_c", ","), ("_k", ":"))
}

ARGUMENTS = ("arguments", "parameters", "keywords", "positional", "request")
"""What the second parameter of ``tool`` may be called; see arguments.py."""


@dataclass(frozen=True)
class Protocol:
    """A protocol's text and what it defines.

    Attributes:
        name: of the file, without its ending.
        text: its Lark text, with what it imports of grammars/protocol.lark in place of the import.
        about: the comment at its top.
        rules: every rule with its parameters.
        gaps: those of ``_w``, ``_c`` and ``_k`` that its family writes in a way of its own, with their bodies; they are
            not in the text, where those of the compile take their places.
    """

    name: str
    text: str
    about: str
    rules: dict[str, tuple[str, ...]]
    gaps: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> set[str]:
        """Every rule, parameter and terminal in its text, which no other part may define."""
        found = _DEFINED.findall(self.text)
        return {name for name, _ in found} | {one for _, params in found for one in re.findall(r"\w+", params)}

    def has(self, rule: str) -> bool:
        """Whether it defines a rule."""
        return rule in self.rules

    @property
    def ignores(self) -> bool:
        """Whether it ignores something, which may then stand in arguments, too."""
        return bool(re.search(r"(?m)^[ \t]*%ignore\b", self.text))

    @property
    def arguments(self) -> str:
        """How it writes arguments: one of ARGUMENTS."""
        return self.rules["tool"][1]

    @property
    def turn_ends(self) -> tuple[str, ...]:
        """The tokens with which models of this protocol end a turn, as TURN_END lists them."""
        return self.strings("TURN_END")

    @property
    def marks(self) -> tuple[str, ...]:
        """The delimiters of calls that are tokens of its models, in the order of the text."""
        free = {"text", "lead", "tail", "silence", "trail", "response", "think", "thought", "unthought"}
        todo = [rule for rule in self.rules if not rule.startswith("_") and rule not in free]
        reached = set(todo)
        while todo:
            for rule in re.findall(r"(?<!\w)_\w+", STRING.sub("", self.body(todo.pop()))):
                if rule in self.rules and rule not in reached:
                    reached.add(rule)
                    todo.append(rule)
        bodies = "\n".join(self.body(rule) for rule in self.rules if rule in reached)
        return tuple(dict.fromkeys(json.loads(text) for text in _MARK.findall(bodies)))

    def strings(self, terminal: str) -> tuple[str, ...]:
        """The strings that a terminal lists; none where it is not defined."""
        return tuple(json.loads(text) for text in STRING.findall(self.body(terminal)))

    def body(self, name: str) -> str:
        """What a rule or terminal is defined as; empty where it is not defined."""
        found = re.search(rf"(?m)^{name}[ \t]*(?:\{{[^}}\n]*\}})?[ \t]*:((?:.*\n(?=[ \t]*\|))*.*)", self.text)
        return found[1] if found else ""


def protocol_names() -> list[str]:
    """The protocols that toolc brings along, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.lark") if path.stem != SHARED)


def load_protocol(which: str | Path | None) -> Protocol:
    """A protocol by its name, from a .lark file, or from a checkpoint's response template (a JSON file or its folder).

    Raises:
        GrammarError: there is none, or it lacks a rule that it has to define.
        UnsupportedError: something in a response template cannot be derived.
    """
    which = DEFAULT if which is None else which
    if not isinstance(which, (str, os.PathLike)):
        raise GrammarError("no such protocol", found=type(which).__name__, expected="a name or a path")
    path = Path(which)
    if isinstance(which, str) and which in protocol_names():  # ./hermes is the folder
        path = FOLDER / f"{which}.lark"
    elif os.path.isfile(path / CONFIGURATION):
        path = path / CONFIGURATION
    if path.suffix == ".json":
        return _from_response_template(path)
    if path.suffix != ".lark":
        path = FOLDER / f"{_named(str(which))}.lark"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise GrammarError(f"cannot read this protocol: {reason}", place=path_text(path.name)) from None
    return parse_protocol(text, path_text(path.stem))


def _named(name: str) -> str:
    """The protocol that a name means."""
    from .aliases import nearest, protocol_called

    found = protocol_called(name, protocol_names())
    if found is None and name == AUTO:
        raise GrammarError(
            "the protocol is chosen by the chat template of a model",
            found=AUTO,
            expected="a model folder, a GGUF file or a Hugging Face id as the tokenizer",
            hint="name the protocol; toolc protocols lists them",
        )
    if found is None:
        near = nearest(name, protocol_names())
        raise GrammarError(
            "no such protocol",
            found=repr(name),
            expected="a protocol's or a model's name, a .lark file, a checkpoint, or auto",
            hint=f"did you mean {' or '.join(near)}?" if near else "toolc protocols lists the names",
        )
    return found


def has_response_template(folder: Path) -> bool:
    """Whether a checkpoint says how its texts are read, so that a protocol can be derived."""
    from ..specs.source import MAX_BYTES, load_document
    from .response_template import is_response_template

    path = folder / CONFIGURATION
    return path.is_file() and is_response_template(load_document(path, None, MAX_BYTES)[0])


def _from_response_template(path: Path) -> Protocol:
    from ..specs.source import MAX_BYTES, load_document
    from .response_template import is_response_template, protocol_text

    document, _ = load_document(path, None, MAX_BYTES)
    name = path_text(path.parent.name or path.stem if path.name == CONFIGURATION else path.stem)
    if not is_response_template(document):
        raise GrammarError(
            "no response template in this file", place=path.name, expected="an object with response_template, or fields"
        )
    return parse_protocol(protocol_text(document, name), name)


def parse_protocol(text: str, name: str) -> Protocol:
    """A protocol from its text."""
    about = "\n".join(line[2:].strip() for line in re.match(r"(?://.*\n)*", text)[0].splitlines())  # type: ignore[index]
    rules = {rule: tuple(re.findall(r"\w+", params or "")) for rule, params in _RULE.findall(text)}
    for rule, known, why in (
        ("tool", [("name", one) for one in ARGUMENTS], "tool{name, arguments}: what differs from tool to tool"),
        ("call", [("tools",)], "call{tools}: one call"),
    ):
        found = rules.get(rule, ())
        if found[: len(known[0])] not in known or (rule == "tool" and found[2:] not in ((), ("again",))):
            raise GrammarError(
                f"the protocol {name} does not define {rule}",
                place=f"{name}.lark",
                expected=why,
                hint="see docs/protocols.md",
            )
    for rule in ("call", "calls", "opened"):
        for param in rules.get(rule, ()):
            if not param.startswith("tools") or "tool" + param[5:] not in rules:
                raise GrammarError(
                    f"the parameter {param} of {rule} has no template",
                    place=f"{name}.lark",
                    expected=f"tool{param[5:]}{{name, arguments}}" if param.startswith("tools") else "tools, tools_…",
                )
    for rule in [rule for rule in rules if re.fullmatch(r"tool(?:_\w+)?", rule)] if "text_tool" in rules else ():
        if rules.get(f"text_{rule}") != ("name", "input"):
            raise GrammarError(
                f"the protocol {name} has calls of custom tools, but not in place of all others",
                place=f"{name}.lark",
                expected=f"text_{rule}{{name, input}}",
            )
    text, gaps = _without_gaps(text, name)
    return Protocol(name, _with_shared(text), about, rules, gaps)


def _without_gaps(text: str, name: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The text without its definitions of gaps, and these."""
    gaps = {}
    for found in re.finditer(r"(?m)^(_[wck])[ \t]*:[ \t]*(.*?)[ \t]*$\n?", text):
        rule, body = found[1], found[2]
        if not _GAP[rule].fullmatch(body):
            sign = {"_c": 'a comma, ",", and ', "_k": 'a colon, ":", and '}.get(rule, "")
            raise GrammarError(
                f"the protocol {name} defines {rule} as something else than a gap between tokens of JSON",
                place=f"{name}.lark:{text[: found.start()].count(chr(10)) + 1}",
                found=body,
                expected=f"{sign}blanks: strings or regular expressions of spaces, new lines and tabs, on one line",
                hint='for example _w: /\\n */? or _c: "," " "?',
            )
        gaps[rule] = body
        text = text.replace(found[0], "", 1)
    return text, tuple(gaps.items())


def _with_shared(text: str) -> str:
    """The text with the definitions of what it imports from grammars/protocol.lark, gaps left out."""
    wanted = {name for names in _IMPORT.findall(text) for name in re.findall(r"\w+", names)}
    if not wanted:
        return text
    shared = (FOLDER / f"{SHARED}.lark").read_text(encoding="utf-8")
    bodies = {m[1]: shared[m.start() :].split("\n", 1)[0] for m in _RULE.finditer(shared)}
    todo = list(wanted)
    while todo:
        for name in re.findall(r"(?<!\w)_\w+", bodies.get(todo.pop(), "")):
            if name in bodies and name not in wanted:
                wanted.add(name)
                todo.append(name)
    lines = [body for name, body in bodies.items() if name in wanted and name not in _GAPS]
    return _IMPORT.sub("", text).rstrip("\n") + "\n" + "".join(line + "\n" for line in lines)


def shared_templates(names: Iterable[str], there: Container[str]) -> str:
    """The text of templates of grammars/protocol.lark, but of those that are there."""
    text = (FOLDER / f"{SHARED}.lark").read_text(encoding="utf-8")
    lines = {found[1]: text[found.start() :].split("\n", 1)[0] for found in _RULE.finditer(text)}
    return "".join(lines[name] + "\n" for name in sorted(names) if name not in there)


def entries_of(
    protocol: Protocol,
    named: list[str],
    alternatives: Callable[[str, str | None], str] | None,
    response: str = "",
    begins: str = "",
    whole_response: bool = False,
    action: str = "",
) -> tuple[dict[str, str], dict[str, Expr], str]:
    """Where a text may begin.

    Args:
        protocol: with its rules.
        named: the tools that get an entry of their own.
        alternatives: (template, a tool's name or None for all) → the rule that stands for a parameter of call and
            calls; None where there are no tools, but a response.
        response: rule of a structured response; empty for none.
        whole_response: whether that is the whole text of an answer, which the protocol puts nothing around.
        begins: the entry, without reasoning, that "start" is, where it may be; empty for what is asked most.
        action: the tool whose call is what the protocol says instead of a call; empty for none.

    Returns:
        Entry → rule, "start" first; the rules' bodies; and the entry that "start" is.

    Raises:
        SpecError: there is no such entry.
    """

    def use(rule: str, tool: str | None) -> Expr:
        rule = rule if protocol.has(rule) else "call"
        assert alternatives is not None
        return Use(rule, tuple([Ref(alternatives("tool" + param[5:], tool)) for param in protocol.rules[rule]]))

    def part(*names: str) -> Expr:
        return next((Ref(name) for name in names if protocol.has(name)), EMPTY)

    def free(rule: str) -> Expr:
        calls = sequence(part("lead"), use(rule, None), part("tail", "trail"))
        return calls if action else choice(Ref("text"), calls)

    silence, trail = part("silence"), part("trail")

    def alone(rule: str, tool: str | None = None) -> Expr:
        return sequence(silence, use(rule, tool), trail)

    bodies: dict[str, tuple[str, Expr | None]] = {}
    tools = alternatives is not None
    if tools and protocol.has("text"):
        bodies["auto"] = "_auto", free("calls")
        bodies["auto/one"] = "_auto_one", free("call")
    if tools:
        bodies["required"] = "_required", alone("calls")
        bodies["required/one"] = "_required_one", alone("call")
    if tools and protocol.has("text"):
        bodies["none"] = ("_none", alone("call", action)) if action else ("text", None)
    if response:
        around = protocol.has("response") and not whole_response
        whole = Use("response", (Ref(response),)) if around else Ref(response)
        bodies["response"] = "_response", whole
    if tools and response:
        bodies["either"] = "_either", choice(whole, alone("calls"))
        bodies["either/one"] = "_either_one", choice(whole, alone("call"))
    if tools and protocol.has("opened"):
        bodies["opened"] = "_opened", use("opened", None)
    for number, tool in enumerate(named):
        bodies[f"tool:{tool}"] = f"_named_{number}", alone("call", tool)
    entries: dict[str, str] = {}
    rules: dict[str, Expr] = {}
    rule_of: dict[Expr, str] = {}
    think, thought, unthought = part("think"), part("thought"), part("unthought")
    for entry, (rule, body) in bodies.items():
        if body is not None:
            rule = rule_of.setdefault(body, rule)
            rules[rule] = body
        entries[entry] = rule
        stem, answer = "_" + rule.strip("_"), Ref(rule)
        if EMPTY not in (think, thought):
            options = [answer, sequence(think, thought, answer)]
            rules[f"{stem}_outside"] = choice(*options, *([] if unthought == EMPTY else [sequence(unthought, answer)]))
            entries[f"{entry}/outside"] = f"{stem}_outside"
        if thought != EMPTY:
            rules[f"{stem}_inside"] = sequence(thought, answer)
            entries[f"{entry}/inside"] = f"{stem}_inside"
    begins = begins or next(entry for entry in ("auto", "required", "response") if entry in entries)
    if begins not in entries:
        raise SpecError(
            f"the protocol {protocol.name} has no answer of this kind",
            found=begins,
            expected="one of " + ", ".join(entry for entry in entries if "/" not in entry),
            hint="name the model's protocol with --protocol" if protocol.name == DEFAULT else None,
        )
    rules = {"start": Ref(entries.get(f"{begins}/outside", entries[begins])), **rules}
    return {"start": "start", **entries}, rules, begins
