"""The pipeline, stage by stage: spec → grammar → automaton → tables over a vocabulary → bundle.

Leaves out   every stage (see the folders), files and terminals (cli.py).
Invariants   equal spec, tokenizer and options give equal bundles; times are in the report and never in the bundle;
             nothing is written before every stage has passed.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolc.runtime.expected import expect, expect_word
from toolc.runtime.serving.requests import KIND

from .budget import Budget
from .errors import (
    GrammarError,
    LeftRecursionError,
    RefusedTools,
    SpecError,
    ToolcError,
    UnsupportedError,
    VocabError,
)
from .key import FORMAT, UNSAID, grammar_digest, recipe
from .option_checks import check_fit, checked_options
from .options import BUILTIN, Options, cores, version
from .specs import Spec, read_spec
from .specs.json_values import check_response
from .specs.marks import MARKS, request_of
from .specs.model import Refused, first_of, with_strictness
from .specs.read import selected

if TYPE_CHECKING:
    from toolc.runtime.format.bundle import Bundle
    from toolc.runtime.format.vocab import Vocab

    from .grammar.assemble import Assembled, Known
    from .ir.nodes import Grammar
    from .pushdown.pushdown import Automaton

    Tokenizer = str | Path | Vocab | Any  # Any: the tokenizer of another library, see vocab/objects.py

Progress = Callable[[str], None]
"""Called with the name of each stage as it begins."""

NO_TOKENIZER = (
    f"no tokenizer is given: compiled for the built-in one of 8,192 tokens, which no model has. Give the model's "
    f"tokenizer, or {BUILTIN!r} to mean this one"
)


class BuiltinTokenizerWarning(UserWarning):
    """A bundle was compiled for the built-in tokenizer, since the caller named none."""


@dataclass(frozen=True, repr=False)
class Compiled:
    """A bundle and what is known of how it came to be.

    Attributes:
        bundle: for ``toolc.runtime``, as if it had been opened from a file.
        grammar: what it was compiled from.
        report: states, symbols, profiles, rows, chain length, bytes, tools, restrictions, keywords, seconds by stage,
            the entry that a request begins with ("begins") and fields of it that nobody here knows ("unread"),
            characters that the spec asks for and the tokenizer cannot write ("unwritten"), all that no text can have
            ("unwritable": pointer, keywords, why), and names that are nearly keywords ("misspelt": pointer, keyword,
            meant), keywords of later drafts ("later": pointer, keyword), the tokens that end a turn ("ends"), those of
            the protocol that end none here ("missing_ends"), the marks of its calls that are no tokens here
            ("missing_marks"), why it was chosen ("chosen"), the tools that were left out ("skipped": tool, and what
            `ToolcError.as_dict` says), what was read otherwise than it stands ("repaired": place, how), and the places
            of objects with more keys than any order has room for, which stand in declared order ("many_keys").
        standalone: whether ``write`` packs the vocabulary into the file.
    """

    bundle: Bundle
    grammar: Assembled
    report: dict[str, Any]
    standalone: bool = False

    def __repr__(self) -> str:
        return f"<Compiled in {sum(self.report['seconds'].values()):.2g} s: {self.bundle!r}>"

    def _repr_html_(self) -> str:
        return self.bundle._repr_html_()

    @property
    def grammar_text(self) -> str:
        """The Lark text that it was compiled from."""
        return self.grammar.text

    def write(self, path: str | os.PathLike[str]) -> str:
        """Write the bundle file, whole or not at all; returns its digest."""
        return self.bundle.write(path, standalone=self.standalone)


def _level_of_caller() -> int:
    """How many frames lie between who asks and the first that is not of this package, as warnings count them."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith((__package__, "contextlib")):
        level, frame = level + 1, frame.f_back
    return level


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
    from .vocab.objects import readable

    options = checked_options(options)
    tokenizer = readable(tokenizer)
    choice = choice_for(spec, tokenizer, options)
    options = with_choice(options, choice)
    clock = _Clock(f"{spec.name}#", options, progress)
    eos = () if eos is None else eos
    known: Known = {}
    with options.budget.ticking():
        while True:
            try:
                compiled = _compile_spec(spec, tokenizer, (eos, logits_width), options, clock, known)
                compiled.report["chosen"] = None if choice is None else choice.why
                return compiled
            except RefusedTools as refused:
                spec = _without(spec, refused, options)


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
    tokenizer: Tokenizer | None,
    stated: tuple[Sequence[str | int], int | None],
    options: Options,
    clock: _Clock,
    known: Known,
) -> Compiled:
    from toolc.runtime.format.meta import SKIPPED

    from .schema.branch_names import unions_of
    from .schema.defaults import defaults_of

    clock.begin("schema")
    assembled, spec = assembled_of(spec, options, known)
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
    compiled = _compile(assembled, spec.name, about, tokenizer, stated, options, clock, spec.declared)
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
    clock = _Clock(name, options, progress)
    with options.budget.ticking():
        return _compile(Assembled(lark_text, folders=folders), name, about, tokenizer, stated, options, clock)


def grammar_of(spec: Spec, options: Options | None = None) -> Assembled:
    """The rules of a spec, and what became of its schemas."""
    expect(spec, Spec, "grammar_of(spec)", "what read_spec gives", {"str": "write grammar_of(read_spec(spec))"})
    return assembled_of(spec, checked_options(options))[0]


def assembled_of(spec: Spec, options: Options, known: Known | None = None) -> tuple[Assembled, Spec]:
    """The same, and the spec without the tools that are left out (``skip``).

    Args:
        known: what was written of the same tools before; grows.
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


@contextmanager
def _instead(refused: RefusedTools | None, budget: Budget) -> Iterator[None]:
    """An error inside is one of the tools that were refused as parts, if any were; not that the time is over."""
    try:
        yield
    except ToolcError:
        if refused is None or budget.is_late:
            raise
        raise refused from None


class _Clock:
    """Times the stages and tells about them; also starts the clock of the budget, and looks at it between them."""

    def __init__(self, name: str, options: Options, progress: Progress | None) -> None:
        self.budget = options.budget.start(name)
        self.progress = progress
        self.seconds: dict[str, float] = {}
        self._stage = ""
        self._since = time.perf_counter()

    def begin(self, stage: str) -> None:
        now = time.perf_counter()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since  # a stage may run again
        self._stage, self._since = stage, now
        if stage:
            self.budget.check("")
            if self.progress is not None:
                self.progress(stage)


def _compile(
    assembled: Assembled,
    name: str,
    about: dict[str, Any],
    tokenizer: Tokenizer | None,
    stated: tuple[Sequence[str | int], int | None],  # eos and logits_width
    options: Options,
    clock: _Clock,
    declared: Mapping[str, Any] | None = None,
) -> Compiled:
    from toolc.runtime.format.bundle import Bundle
    from toolc.runtime.format.container import blake
    from toolc.runtime.format.vocab import Vocab
    from toolc.runtime.store.key import key_of

    from .grammar.cached_reader import inlined, read_pieces, shared
    from .grammar.encodable import written
    from .grammar.specials import resolve_specials
    from .lift.completion import close_arrays
    from .lift.lift import lift
    from .lift.only_forced import only_forced
    from .lift.vocab import load_vocab
    from .link.link import link
    from .schema.report import dropped, keyword_counts, misspelt, pack, placed
    from .vocab.encode import encoder
    from .vocab.load import fingerprint
    from .vocab.objects import readable
    from .warmup import warm_if_cold

    warm_if_cold(cores())

    def as_written() -> Grammar:
        """A grammar that people wrote, with its left recursion, where it is the whole."""
        if about["kind"] != "grammar":
            return grammar
        kept, _ = resolve_specials(
            _lines(read(keeps_left=True), budget)[0], vocab.special, ends, str(vocab.meta["source"])
        )
        return written(kept, vocab, budget)[0]

    budget = options.budget
    clock.begin("grammar")  # numba is there now: what it compiles does not count
    text_name = name if about["kind"] == "grammar" else f"the grammar of {name}"  # which `toolc grammar` prints
    keeps_left = False
    if about["kind"] == "grammar":
        from .grammar.reader import read_grammar

        how_read: dict[str, Any] = {"import_paths": assembled.folders, "budget": budget, "in_context": True}
        read = partial(read_grammar, assembled.lark, text_name, **how_read)
        try:
            grammar = read()
        except LeftRecursionError:
            grammar, keeps_left = read(keeps_left=True), True
    else:
        grammar = read_pieces(assembled.lark, assembled.rules, assembled.terminals, assembled.apart, text_name, budget)
    grammar = replace(
        grammar,
        places={**grammar.places, **assembled.places},
        entries=assembled.entries,
        marks={**grammar.marks, **assembled.marks},
    )
    grammar, cut = _lines(grammar, budget)
    clock.begin("tokenizer")
    if isinstance(tokenizer, Vocab):
        vocab, encode, reads = tokenizer, None, None
        if stated != ((), None):
            raise VocabError("a Vocab has its ends of turn and its width", hint="leave out eos and logits_width")
    else:
        if tokenizer is None:
            warnings.warn(NO_TOKENIZER, BuiltinTokenizerWarning, stacklevel=_level_of_caller())
        source = BUILTIN if tokenizer is None else readable(tokenizer)
        vocab, encode = load_vocab(source, *stated), encoder(source)
        reads = None if encode is None else fingerprint(source, *stated)
    ends = _ends(vocab)
    grammar, delimiters = resolve_specials(grammar, vocab.special, ends, str(vocab.meta["source"]))
    less, unwritten = written(grammar, vocab, budget)
    clock.begin("parts")
    context = blake(f"{FORMAT}\n{version()}\n{vocab.digest}\n{reads}".encode())
    linked, refused = None, None
    left_out: tuple[str, ...] = ()
    if less is grammar and not keeps_left:  # else parts of it may derive nothing, and it is compiled as a whole
        how = assembled.common, options.jobs, options.skip
        by_parts = link(grammar, vocab, ends, encode, budget, options.soft_depth, context, *how)
        if isinstance(by_parts, RefusedTools):
            refused = by_parts
        else:
            linked = by_parts
    grammar = less
    if linked is not None:
        tables, counts, modes, separable = linked.tables, linked.counts, linked.modes, linked.separable
        states, told_apart = linked.entries, linked.ends
    else:
        with _instead(refused, budget):
            clock.begin("automaton")
            if grammar.apart:
                grammar = shared(inlined(grammar), budget)
            try:
                automaton = _automaton(
                    grammar, as_written if about["kind"] == "grammar" or assembled.free else None, keeps_left, options
                )
            except GrammarError as error:
                missing = [name for name, token in delimiters.items() if token is None]
                if missing:
                    error.hint = (
                        f"{', '.join(missing)} are text here, since the tokenizer has no such token: "
                        "choose the tokenizer of the model, or another protocol"
                    )
                raise
            clock.begin("tables")
            with budget.blaming(automaton.largest_rule):
                made = lift(automaton, vocab, ends, budget)
                clock.begin("close")
                found, _ = close_arrays(made.tables, vocab, made.rows, made.profiles, encode, budget)
            tables, counts = made.tables.but(**found), made.counts
            modes, separable, states = automaton.modes, automaton.marks.separable, automaton.entries
            told_apart, left_out = automaton.marks.ends, automaton.restrictions
    if encode is not None:
        encode.keep()
    if options.canonical:
        tables = only_forced(tables)
        counts = counts | {"rows": tables.rows}
    entries = {"start": states[grammar.start]} | {entry: states[rule] for entry, rule in grammar.entries.items()}
    clock.begin("bundle")
    unwritable = _unwritable(assembled, unwritten, str(vocab.meta["source"]))
    many_keys = sorted(map(assembled.real, assembled.many_keys))
    meta = {
        "format": FORMAT,
        "compiler": f"toolc {version()}",
        "recipe": recipe(options, about["kind"]),
        "vocab_digest": vocab.digest,
        "vocab_size": vocab.size,
        "vocab_source": vocab.meta["source"],
        **{key: counts[key] for key in ("soft_depth", "capacity", "max_chain", "stack_symbols")},
        "modes": modes,
        "entry": entries,
        "protocol": assembled.protocol,
        "delimiters": delimiters,
        "separable": separable,
        **({"ends": [[state, list(tools)] for state, tools in told_apart.items()]} if told_apart else {}),
        "arguments": assembled.arguments,
        "spec": about | ({"unwritable": unwritable} if unwritable else {}),
        "options": {
            key: value
            for key, value in vars(options).items()
            if key not in ("budget", "jobs", "standalone", "protocol", "response", "schemas")
            and (key, value) not in UNSAID
        },
        "restrictions": sorted({*assembled.restrictions, *left_out, *_of_depth(modes > 1, cut)}),
        **({"many_keys": many_keys} if many_keys else {}),
        "keywords": keyword_counts(assembled.told),
        "report": pack(assembled.told),
        "dropped": sorted(assembled.real(place) for place in dropped(assembled.told)),
        "counts": counts,
    }
    bundle = Bundle(tables, meta, vocab, f"<{name}>", declared or {})
    clock.begin("")
    report = {
        "spec": {key: value for key, value in about.items() if key not in ("tools", "skipped")},
        "tools": [tool["name"] for tool in about["tools"]],
        "protocol": assembled.protocol,
        "entries": list(meta["entry"]),
        "min_tokens": bundle.min_tokens,
        "delimiters": delimiters,
        "tokenizer": {"source": vocab.meta["source"], "size": vocab.size, "digest": vocab.digest},
        "ends": [vocab.shown(token) for token in ends],
        "missing_ends": missing_ends(assembled.turn_ends, vocab),
        "missing_marks": [mark for mark in assembled.call_marks if delimiters.get(mark, 0) is None],
        "chosen": None,
        "begins": about.get("begins"),
        "unread": [],
        "skipped": [],
        "repaired": [
            {"place": f"{assembled.real(place)}/{keyword}", "how": f"{keyword} holds, though it is of a later draft"}
            for place, keyword in placed(assembled.told, "repaired")
        ],
        "later": [
            {"pointer": assembled.real(place), "keyword": keyword} for place, keyword in placed(assembled.told, "later")
        ],
        "unwritten": unwritten,
        "unwritable": unwritable,
        "misspelt": [
            {"pointer": assembled.real(place), "keyword": name, "meant": word}
            for place, name, word in misspelt(assembled.told)
        ],
        "counts": counts,
        "parts": None if linked is None else {"all": linked.parts, "reused": linked.reused},
        "bytes": counts["bytes"],
        "restrictions": meta["restrictions"],
        "many_keys": many_keys,
        "keywords": meta["keywords"],
        "dropped": meta["dropped"],
        "seconds": {stage: round(value, 6) for stage, value in clock.seconds.items()},
        "key": key_of(meta),
    }
    return Compiled(bundle, assembled, report, options.standalone)


def _lines(grammar: Grammar, budget: Budget) -> tuple[Grammar, bool]:
    """The grammar with the lines of indented JSON written, and whether some are left out, deep inside."""
    from .grammar.indentation import has_lines, indented

    return indented(grammar, budget) if has_lines(grammar) else (grammar, False)


def _of_depth(nests: bool, cut: bool) -> list[str]:
    """The restrictions by which recursive values may be written otherwise than others."""
    return ["depth"] * nests + ["indentation"] * cut


def _automaton(
    grammar: Grammar, as_written: Callable[[], Grammar] | None, keeps_left: bool, options: Options
) -> Automaton:
    """The automaton of a grammar; of one that people wrote also where no brackets enclose its recursion."""
    from .pushdown.deterministic import build_deterministic
    from .pushdown.pushdown import build_automaton

    if not keeps_left:
        try:
            return build_automaton(grammar, budget=options.budget, soft_depth=options.soft_depth)
        except (GrammarError, UnsupportedError):
            if as_written is None:
                raise
            grammar = as_written()
    return build_deterministic(grammar, options.budget, options.soft_depth, options.max_depth)


def _unwritable(assembled: Assembled, unwritten: str, tokenizer: str) -> list[dict[str, Any]]:
    """What no text can have: by its schema, or as no token is there for it."""
    found: list[dict[str, Any]] = [
        {"pointer": assembled.real(one.place), "keywords": list(one.keywords), "why": one.why} for one in assembled.lost
    ]
    if unwritten:
        why = f"the tokenizer has no tokens for {' '.join(map(repr, unwritten))}"
        found.append({"pointer": tokenizer, "keywords": [], "why": why})
    return found


def missing_ends(turn_ends: Sequence[str], vocab: Vocab) -> list[str]:
    """Those of a protocol's ends of turn that are tokens of a tokenizer and end no turn there."""
    ends, special = vocab.end_of_turn, vocab.special
    return [name for name in turn_ends if name in special and special[name] not in ends]


def _ends(vocab: Vocab) -> list[int]:
    """The ids that end a turn; there has to be one."""
    ends = vocab.end_of_turn
    if not ends:
        raise VocabError(
            "the tokenizer's files do not say which token ends a turn",
            place=str(vocab.meta["source"]),
            hint="name it with --eos, as in --eos '<|eot_id|>'",
        )
    return ends
