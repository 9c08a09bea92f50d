"""Compile specs and grammars: what users call, up to the rules from which stages.py makes a bundle.

Leaves out   the stages behind the rules (stages.py), files and terminals (cli.py).
Invariants   equal spec, tokenizer and options give equal bundles; times are in the report and never in the bundle;
             nothing is written before every stage has passed.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolc.runtime.expected import expect, expect_word
from toolc.runtime.serving.requests import KIND

from .errors import RefusedTools, SpecError
from .key import grammar_digest
from .option_checks import check_fit, checked_options
from .options import Options
from .specs import Spec, read_spec
from .specs.json_values import check_response
from .specs.marks import MARKS, request_of
from .specs.model import Refused, first_of, with_strictness
from .specs.read import selected
from .stages import Clock, Progress, compile_assembled

if TYPE_CHECKING:
    from .compiled import Compiled
    from .grammar.assemble import Assembled, Known
    from .pushdown.member_marks import MembersClash
    from .stages import Tokenizer


_MOST_CLASHES = 6
"""So often a spec is compiled anew without registers for some objects; after that none of its objects has one."""


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No cyclic garbage collection inside: a compile makes many small objects and no garbage that would be worth it."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@_collector_paused()
def compile_tools(
    spec: str | Path | bytes | dict[str, Any] | list[Any] | Callable[..., Any],
    tokenizer: Tokenizer | None = None,
    *,
    eos: Sequence[str | int] = (),
    logits_width: int | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Compiled:
    """Compile a spec: a tools list, an OpenAPI document or a bare JSON Schema, recognised by its content.

    Args:
        spec: a path, as a Path or as text; JSON text, which begins with a bracket; bytes; the value itself; Python
            functions and classes.
        tokenizer: a tokenizer file, a model folder, a Hugging Face id; a tokenizer of transformers, tokenizers or
            mistral-common; or a Vocab that was loaded before. None for the built-in one.
        eos: tokens that end a turn, by name or id; by default what the tokenizer's own files say.
        logits_width: how many logits the model has, which may be more than the tokenizer has ids; by default what the
            model's config.json says.
        options: how to compile.
        progress: called with the name of each stage as it begins.
    """
    options = checked_options(options)
    select = options.selection
    read = read_spec(
        spec, skip=True, select=select, schemas=options.schemas, repair=options.repair, subtypes=options.subtypes
    )
    select.check(read.name)
    return compile_spec(read, tokenizer, eos=eos, logits_width=logits_width, options=options, progress=progress)


@_collector_paused()
def compile_request(
    body: str | Path | bytes | dict[str, Any],
    tokenizer: Tokenizer | None = None,
    *,
    eos: Sequence[str | int] = (),
    logits_width: int | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Compiled:
    """Compile the body of a request: of OpenAI's chat completions or Responses, or of Anthropic's Messages.

    Its "start" is the entry that the request begins with; see docs/specs.md, "Requests of a model". compile_tools does
    the same for what it takes for such a body.
    """
    from .specs.callables import with_documents
    from .specs.requests import request_spec
    from .specs.source import MAX_BYTES, load_document

    options = checked_options(options)
    select = options.selection
    body, declared = with_documents(body, KIND)
    document, name = load_document(body, None if isinstance(body, (str, Path)) else KIND, MAX_BYTES)
    spec = replace(request_spec(document, name, [], select), declared=declared)
    select.check(name)
    return compile_spec(spec, tokenizer, eos=eos, logits_width=logits_width, options=options, progress=progress)


@_collector_paused()
def compile_schema(
    schema: Any,
    tokenizer: Tokenizer | None = None,
    *,
    eos: Sequence[str | int] = (),
    logits_width: int | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
    name: str = "schema",
) -> Compiled:
    """Compile a value that is taken as a JSON Schema, whatever its keys; see compile_tools.

    A response format of OpenAI's, as {"type": "json_object"}, and a Python type are taken for the schema that they say.
    With a protocol in the options the value stands as its models write a final answer, behind reasoning where they have
    it.
    """
    from .specs.read import schema_spec

    options = checked_options(options)
    spec = schema_spec(schema, name, options.schemas)
    return compile_spec(spec, tokenizer, eos=eos, logits_width=logits_width, options=options, progress=progress)


@_collector_paused()
def compile_spec(
    spec: Spec,
    tokenizer: Tokenizer | None = None,
    *,
    eos: Sequence[str | int] = (),
    logits_width: int | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Compiled:
    """Compile a spec that was read before; see compile_tools."""
    hint = "compile_tools reads and compiles: compile_tools(spec, tokenizer)"
    expect(
        spec,
        Spec,
        "compile_spec(spec)",
        "what read_spec gives",
        dict.fromkeys(("str", "PosixPath", "dict", "list"), hint),
    )
    from .protocol_choice import choice_for, with_choice
    from .pushdown.member_marks import MembersClash
    from .vocab.objects import readable

    options = checked_options(options)
    tokenizer = readable(tokenizer)
    choice = choice_for(spec, tokenizer, options)
    options = with_choice(options, choice)
    clock = Clock(f"{spec.name}#", options, progress)
    stated = () if eos is None else eos, logits_width
    known: Known = {}
    clashes: list[MembersClash] = []
    with options.budget.ticking():
        while True:
            clock.begin("schema")
            assembled, spec = assembled_of(spec, options, known, _ruled_out(clashes))
            try:
                compiled = _compile_spec(spec, assembled, tokenizer, stated, options, clock)
                compiled.report["chosen"] = None if choice is None else choice.why
                return compiled
            except RefusedTools as refused:
                spec = _without(spec, refused, options)
            except MembersClash as clash:
                clashes.append(clash)
                known = {}


def _ruled_out(clashes: Sequence[MembersClash]) -> frozenset[str] | None:
    """Places of the objects that no register fits, as was found so far, and UNIONS where it may be any union; None: it
    is not known of which, or many.

    Objects that lie around others are left for later: they may fit without those.
    """
    from .schema.keywords import UNIONS

    found: frozenset[str] = frozenset()
    for number, clash in enumerate(clashes):
        more = clash.places - found if clash.places else frozenset([UNIONS]) - found
        if not more or number == _MOST_CLASHES:
            return None
        found |= {one for one in more if not any(other.startswith(f"{one}/") for other in more)}
    return found


def _without(spec: Spec, refused: RefusedTools, options: Options) -> Spec:
    """The spec without the tools that cannot be compiled, if that is asked for and leaves any.

    Raises ToolcError: the first error otherwise, which knows of the others.
    """
    more = [Refused(spec.tools[n].name, one) for n, one in sorted(refused.errors.items())]
    every = (*spec.refused, *more)
    if not options.skip or len(more) == len(spec.tools):
        error = first_of(every)
        if not options.skip and len(spec.tools) > 1:
            count = len(every)
            left_out = f"with --skip {f'these {count} tools are' if count > 1 else f'{every[0].name} is'} left out"
            error.hint = f"{error.hint}; {left_out}" if error.hint else left_out
        raise error
    kept = tuple(tool for n, tool in enumerate(spec.tools) if n not in refused.errors)
    return replace(spec, tools=kept, refused=every)


def _compile_spec(
    spec: Spec,
    assembled: Assembled,
    tokenizer: Tokenizer | None,
    stated: tuple[Sequence[str | int], int | None],
    options: Options,
    clock: Clock,
) -> Compiled:
    from toolc.runtime.format.meta import SKIPPED

    from .schema.branch_names import unions_of
    from .schema.defaults import defaults_of

    spec = with_strictness(spec, options.strict)
    tools = [
        {"name": tool.name, "pointer": tool.pointer, "description": tool.description}
        | {mark: value for mark in MARKS if (value := getattr(tool, mark)) is not None}
        | ({} if tool.strict is None else {"strict": tool.strict})
        | ({} if tool.request is None else {"operation": True})
        | ({} if tool.name not in assembled.parameters else {"parameters": assembled.parameters[tool.name]})
        | ({} if assembled.arguments["encoding"] != "request" else {"request": request_of(tool)})
        | ({} if tool.custom is None else {"input": "text" if tool.name in assembled.texts else "member"})
        | ({} if tool.name not in assembled.elements else {"elements": assembled.elements[tool.name]})
        | ({} if defaults is None else {"defaults": defaults})
        | ({} if unions is None else {"unions": unions})
        for tool, defaults, unions in zip(
            spec.tools, defaults_of(spec.tools, options.budget), unions_of(spec.tools, options.budget), strict=True
        )
    ]
    about = {"kind": spec.kind, "name": spec.name, "digest": spec.digest, "tools": tools}
    if assembled.begins and (spec.kind == KIND or not tools):
        about["begins"] = assembled.begins
    if assembled.answer:
        about["answer"] = assembled.answer
    skipped = [
        {key: value for key, value in {"tool": one.name, **one.error.as_dict()}.items() if key in SKIPPED}
        for one in spec.refused
    ]
    if skipped:
        about["skipped"] = skipped
    compiled = compile_assembled(assembled, spec.name, about, tokenizer, stated, options, clock, spec.declared)
    compiled.report["unread"] = [f"{spec.name}#{pointer}" for pointer in spec.unread]
    compiled.report["repaired"][:0] = [{"place": one.place, "how": one.how} for one in spec.repairs]
    compiled.report["skipped"] = skipped
    return compiled


@_collector_paused()
def compile_grammar(
    grammar: str | Path | bytes,
    tokenizer: Tokenizer | None = None,
    *,
    eos: Sequence[str | int] = (),
    logits_width: int | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
    name: str | None = None,
    syntax: str | None = None,
    import_paths: Sequence[str | Path] = (),
) -> Compiled:
    """Compile a grammar. See compile_tools for the rest.

    Args:
        grammar: its text, or the path of a file: a Path, or a line that ends with ``.lark``, ``.regex``, ….
        name: how errors call it; by default the file's name.
        syntax: what it is written in: ``"lark"``, ``"regex"``, … (docs/grammars.md); by default as the ending of the
            file says, and text is Lark.
        import_paths: folders in which ``%import`` looks, before that of the file and the grammars of toolc.
    """
    from .source import grammar_source

    lark_text, name, beside = grammar_source(grammar, name, syntax)
    folders = (*import_paths, *beside)
    return _compile_lark(lark_text, name, tokenizer, (eos, logits_width), options, progress, folders)


@_collector_paused()
def compile_regex(
    pattern: str,
    tokenizer: Tokenizer | None = None,
    *,
    flags: str = "",
    dialect: str = "python",
    eos: Sequence[str | int] = (),
    logits_width: int | None = None,
    options: Options | None = None,
    progress: Progress | None = None,
    name: str = "regex",
) -> Compiled:
    """Compile a regular expression, which a whole text has to match. See compile_tools for the rest.

    Args:
        pattern: the expression, without delimiters.
        flags: letters, as of ``(?ims)``.
        dialect: ``"python"``: Python's ``re``; ``"ecma"``: ECMA-262 with the u flag, as in JSON Schema.
        name: how errors call it.
    """
    from .dialects.regex import DIALECTS, regex_text

    for value, which in ((pattern, "pattern"), (flags, "flags")):
        expect(value, str, f"compile_regex({which})", "text", {"Pattern": "give its pattern, and its flags as letters"})
    expect_word(dialect, DIALECTS, "compile_regex(dialect)")
    lark_text = regex_text(pattern, flags, dialect, name)
    return _compile_lark(lark_text, name, tokenizer, (eos, logits_width), options, progress)


def _compile_lark(
    lark_text: str,
    name: str,
    tokenizer: Tokenizer | None,
    stated: tuple[Sequence[str | int], int | None],
    options: Options | None,
    progress: Progress | None,
    folders: tuple[str | Path, ...] = (),
) -> Compiled:
    """Compile Lark text that was made or read."""
    from .grammar.assemble import Assembled

    options = checked_options(options)
    about = {"kind": "grammar", "name": name, "digest": grammar_digest(lark_text, name, folders), "tools": []}
    check_fit(lark_text, options, name)
    clock = Clock(name, options, progress)
    with options.budget.ticking():
        return compile_assembled(Assembled(lark_text, folders=folders), name, about, tokenizer, stated, options, clock)


def grammar_of(spec: Spec, options: Options | None = None) -> Assembled:
    """The rules of a spec, and what became of its schemas.

    A grammar knows no registers: keys stand in any order in objects of few keys alone.
    """
    expect(spec, Spec, "grammar_of(spec)", "what read_spec gives", {"str": "write grammar_of(read_spec(spec))"})
    return assembled_of(spec, checked_options(options), ruled_out=None)[0]


def assembled_of(
    spec: Spec, options: Options, known: Known | None = None, ruled_out: frozenset[str] | None = frozenset()
) -> tuple[Assembled, Spec]:
    """The same, and the spec without the tools that are left out (``skip``).

    Args:
        known: what was written of the same tools before; grows.
        ruled_out: places of objects whose members no register keeps; None: none does.
    """
    known = {} if known is None else known
    from .dialects import lark_text
    from .grammar.assemble import assemble
    from .grammar.protocol import load_protocol
    from .schema import SchemaOptions

    if options.response is not None:
        check_response(options.response)
    if spec.hosted and not (spec.tools and options.skip):
        raise spec.hosted[0].refused(spec.name, alone=not spec.tools)
    hosted = [Refused(tool.type, tool.refused(spec.name, alone=False)) for tool in spec.hosted]
    spec = replace(selected(spec, options.selection), hosted=(), refused=(*spec.refused, *hosted))
    check_fit(spec, options, spec.name)
    bare = spec.kind == "schema" and options.protocol is None
    protocol = None if bare else load_protocol(options.protocol)
    schema_options = SchemaOptions(whitespace=options.whitespace, relax=options.relax, key_order=options.key_order)
    schema_options = replace(schema_options, formats=_formats(options), closed=options.closed)
    schema_options = replace(schema_options, registers=ruled_out is not None, ruled_out=ruled_out or frozenset())
    if options.repair:  # a reference to what is not there cannot be meant either
        schema_options = replace(schema_options, later=True, relax=tuple(sorted({*options.relax, "$ref"})))
    if spec.documents:
        schema_options = replace(schema_options, loader=spec.documents.get)
    if options.digits is not None:
        schema_options = replace(schema_options, digits=options.digits)
    with options.budget.ticking():
        while True:
            strict = with_strictness(spec, options.strict)
            how = protocol, options.named, options.response, known, lark_text
            try:
                assembled = assemble(strict, schema_options, options.budget, *how)
                if spec.refused and not options.skip:
                    raise RefusedTools({})
                return assembled, spec
            except RefusedTools as refused:
                spec = _without(spec, refused, options)


def _formats(options: Options) -> frozenset[str] | None:
    """The formats that are enforced; None: all."""
    from .schema.formats import FORMATS
    from .schema.keywords import NUMBER_FORMATS

    if options.formats == ("assert",):
        return None
    if options.formats == ("annotate",):
        return frozenset()
    known = [*FORMATS, *sorted(NUMBER_FORMATS)]
    for name in options.formats:
        if name not in known:
            raise SpecError("there is no such format", place="Options.formats", found=name, expected=", ".join(known))
    return frozenset(options.formats)
