"""Run the stages that make a bundle from rules: grammar, tokenizer, parts or automaton and tables, close, bundle.

    grammar     rules and protocol are read as one grammar
    tokenizer   its vocabulary is loaded; delimiters become tokens, what it cannot write is removed
    parts       each tool is compiled apart, and the tables are joined (link/)
    automaton, tables, close    where that cannot be: the grammar as a whole (pushdown/, lift/)
    bundle      tables, meta and vocabulary are put together

Leaves out   from specs to rules: see pipeline.py and schema/. What meta and report say: see compiled.py.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .budget import Budget
from .compiled import Compiled, Facts, meta_of, report_of
from .errors import GrammarError, LeftRecursionError, RefusedTools, ToolcError, UnsupportedError, VocabError
from .key import FORMAT
from .options import BUILTIN, Options, cores, version

if TYPE_CHECKING:
    from pathlib import Path

    from toolc.runtime.format.vocab import Vocab

    from .grammar.assemble import Assembled
    from .ir.nodes import Grammar
    from .link.link import Linked
    from .pushdown.pushdown import Automaton
    from .vocab.encode import Encode

    Tokenizer = str | Path | Vocab | Any  # Any: the tokenizer of another library, see vocab/objects.py

Progress = Callable[[str], None]
"""Called with the name of each stage as it begins."""

NO_TOKENIZER = (
    f"no tokenizer is given: compiled for the built-in one of 8,192 tokens, which no model has. Give the model's "
    f"tokenizer, or {BUILTIN!r} to mean this one"
)


class BuiltinTokenizerWarning(UserWarning):
    """A bundle was compiled for the built-in tokenizer, since the caller named none."""


def _level_of_caller() -> int:
    """How many frames lie between who asks and the first that is not of this package, as warnings count them."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith((__package__, "contextlib")):
        level, frame = level + 1, frame.f_back
    return level


class Clock:
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


@dataclass(frozen=True)
class Target:
    """The tokenizer that a bundle is for.

    Attributes:
        vocab: its vocabulary.
        encode: writes texts as its tokens; None: nothing is known but the vocabulary.
        reads: a fingerprint of the files that ``encode`` reads.
        ends: ids that end a turn.
    """

    vocab: Vocab
    encode: Encode | None
    reads: str | None
    ends: list[int]

    @property
    def name(self) -> str:
        """What errors call it."""
        return str(self.vocab.meta["source"])


def target_of(tokenizer: Tokenizer | None, stated: tuple[Sequence[str | int], int | None]) -> Target:
    """Load a tokenizer.

    Args:
        tokenizer: as `compile_tools` takes it.
        stated: tokens that end a turn, and the width of the logits, where the caller said so.

    Raises:
        VocabError: it cannot be read, or nothing says which token ends a turn.
    """
    from toolc.runtime.format.vocab import Vocab

    from .lift.vocab import load_vocab
    from .vocab.encode import encoder
    from .vocab.load import fingerprint
    from .vocab.objects import readable

    if isinstance(tokenizer, Vocab):
        if stated != ((), None):
            raise VocabError("a Vocab has its ends of turn and its width", hint="leave out eos and logits_width")
        return Target(tokenizer, None, None, _ends(tokenizer))
    if tokenizer is None:
        warnings.warn(NO_TOKENIZER, BuiltinTokenizerWarning, stacklevel=_level_of_caller())
    source = BUILTIN if tokenizer is None else readable(tokenizer)
    vocab, encode = load_vocab(source, *stated), encoder(source)
    reads = None if encode is None else fingerprint(source, *stated)
    return Target(vocab, encode, reads, _ends(vocab))


class _Source:
    """The grammar as it is before it meets a tokenizer.

    Attributes:
        grammar: with the marks and places of the spec; the lines of indented JSON are written.
        keeps_left: its left recursion is still there, as it could not be rewritten.
        cut: whether deep inside some of these lines are left out.
    """

    def __init__(self, assembled: Assembled, kind: str, name: str, budget: Budget) -> None:
        self._assembled, self._budget = assembled, budget
        self._is_text = kind == "grammar"  # Lark text that was given as it is
        self._name = name if self._is_text else f"the grammar of {name}"  # which `toolc grammar` prints
        self.keeps_left = False
        try:
            grammar = self._read(keeps_left=False)
        except LeftRecursionError:
            if not self._is_text:
                raise
            grammar, self.keeps_left = self._read(keeps_left=True), True
        grammar = replace(
            grammar,
            places={**grammar.places, **assembled.places},
            entries=assembled.entries,
            marks={**grammar.marks, **assembled.marks},
        )
        self.grammar, self.cut = _lines(grammar, budget)

    def _read(self, keeps_left: bool) -> Grammar:
        assembled = self._assembled
        if not self._is_text:
            from .grammar.cached_reader import read_pieces

            pieces = assembled.lark, assembled.rules, assembled.terminals, assembled.apart
            return read_pieces(*pieces, self._name, self._budget)
        from .grammar.reader import read_grammar

        how: dict[str, Any] = {"import_paths": assembled.folders, "budget": self._budget, "in_context": True}
        return read_grammar(assembled.lark, self._name, keeps_left=keeps_left, **how)

    def as_written(self, grammar: Grammar, target: Target) -> Callable[[], Grammar] | None:
        """Gives a grammar that people wrote with its left recursion, for a tokenizer; None: no person wrote it.

        Args:
            grammar: the same, as the stages have made it so far.
        """
        if not self._is_text:
            return (lambda: grammar) if self._assembled.free else None

        def anew() -> Grammar:
            from .grammar.encodable import written
            from .grammar.specials import resolve_specials

            kept, _ = _lines(self._read(keeps_left=True), self._budget)
            kept, _ = resolve_specials(kept, target.vocab.special, target.ends, target.name)
            return written(kept, target.vocab, self._budget)[0]

        return anew


def compile_assembled(
    assembled: Assembled,
    name: str,
    about: dict[str, Any],
    tokenizer: Tokenizer | None,
    stated: tuple[Sequence[str | int], int | None],
    options: Options,
    clock: Clock,
    declared: Mapping[str, Any] | None = None,
) -> Compiled:
    """Compile rules for a tokenizer.

    Args:
        name: of the spec, for errors.
        about: what the meta tells of the spec.
        tokenizer, stated: see `target_of`.
        clock: runs.
        declared: types of the arguments, by tool.
    """
    from toolc.runtime.format.bundle import Bundle

    from .grammar.encodable import written
    from .grammar.specials import resolve_specials
    from .lift.member_ways import has_members
    from .lift.only_forced import only_forced
    from .lift.registers import with_registers
    from .warmup import warm_if_cold

    warm_if_cold(cores())
    budget = options.budget
    clock.begin("grammar")  # numba is there now: what it compiles does not count
    source = _Source(assembled, about["kind"], name, budget)
    clock.begin("tokenizer")
    target = target_of(tokenizer, stated)
    resolved, delimiters = resolve_specials(source.grammar, target.vocab.special, target.ends, target.name)
    grammar, unwritten = written(resolved, target.vocab, budget)
    clock.begin("parts")
    linked: Linked | RefusedTools | None = None
    if grammar is resolved and not source.keeps_left:  # else parts of it may derive nothing
        linked = _by_parts(grammar, target, assembled, options)
    if linked is None or isinstance(linked, RefusedTools):
        with _instead(linked, budget):
            linked = _as_a_whole(grammar, source, target, delimiters, options, clock)
    if target.encode is not None:
        target.encode.keep()
    if has_members(linked.tables):
        clock.begin("registers")
        linked = replace(linked, tables=with_registers(linked.tables, target.vocab, budget))
    if options.canonical:
        tables = only_forced(linked.tables)
        linked = replace(linked, tables=tables, counts=linked.counts | {"rows": tables.rows})
    clock.begin("bundle")
    states = linked.entries
    facts = Facts(
        about,
        assembled,
        target.vocab,
        linked,
        {"start": states[grammar.start]} | {entry: states[rule] for entry, rule in grammar.entries.items()},
        delimiters,
        {*assembled.restrictions, *linked.restrictions, *_of_depth(linked.modes > 1, source.cut)},
        unwritten,
    )
    bundle = Bundle(linked.tables, meta_of(facts, options), target.vocab, f"<{name}>", declared or {})
    clock.begin("")
    return Compiled(bundle, assembled, report_of(facts, bundle, clock.seconds), options.standalone)


def _by_parts(grammar: Grammar, target: Target, assembled: Assembled, options: Options) -> Linked | RefusedTools | None:
    """Compile tools apart and join them; None: the grammar cannot be cut up."""
    from toolc.runtime.format.container import blake

    from .link.link import link

    context = blake(f"{FORMAT}\n{version()}\n{target.vocab.digest}\n{target.reads}".encode())
    tokenizer = target.vocab, target.ends, target.encode
    how = assembled.common, options.jobs, options.skip
    return link(grammar, *tokenizer, options.budget, options.soft_depth, context, *how)


def _as_a_whole(
    grammar: Grammar,
    source: _Source,
    target: Target,
    delimiters: Mapping[str, int | None],
    options: Options,
    clock: Clock,
) -> Linked:
    """Make one automaton of the grammar and lift it to the vocabulary."""
    from .grammar.cached_reader import inlined, shared
    from .lift.completion import close_arrays
    from .lift.lift import lift
    from .link.link import Linked

    budget = options.budget
    clock.begin("automaton")
    if grammar.apart:
        grammar = shared(inlined(grammar), budget)
    try:
        automaton = automaton_of(grammar, source.as_written(grammar, target), source.keeps_left, options)
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
        made = lift(automaton, target.vocab, target.ends, budget)
        clock.begin("close")
        found, *_ = close_arrays(made.tables, target.vocab, made.rows, made.profiles, target.encode, budget)
    return Linked(
        made.tables.but(**found),
        made.counts,
        automaton.modes,
        automaton.entries,
        automaton.marks.separable,
        automaton.marks.ends,
        parts=None,
        reused=0,
        restrictions=automaton.restrictions,
    )


def _lines(grammar: Grammar, budget: Budget) -> tuple[Grammar, bool]:
    """The grammar with the lines of indented JSON written, and whether some are left out, deep inside."""
    from .grammar.indentation import has_lines, indented

    return indented(grammar, budget) if has_lines(grammar) else (grammar, False)


def _of_depth(nests: bool, cut: bool) -> list[str]:
    """The restrictions by which recursive values may be written otherwise than others."""
    return ["depth"] * nests + ["indentation"] * cut


@contextmanager
def _instead(refused: RefusedTools | None, budget: Budget) -> Iterator[None]:
    """An error inside is one of the tools that were refused as parts, if any were; not that the time is over."""
    try:
        yield
    except ToolcError:
        if refused is None or budget.is_late:
            raise
        raise refused from None


def automaton_of(
    grammar: Grammar, as_written: Callable[[], Grammar] | None, keeps_left: bool, options: Options
) -> Automaton:
    """The automaton of a grammar; of one that people wrote also where no brackets enclose its recursion."""
    from .pushdown.deterministic import build_deterministic
    from .pushdown.member_marks import MembersClash, member_of
    from .pushdown.pushdown import build_automaton

    if not keeps_left:
        try:
            return build_automaton(grammar, budget=options.budget, soft_depth=options.soft_depth)
        except (GrammarError, UnsupportedError):
            if as_written is None:
                raise
            grammar = as_written()
    automaton = build_deterministic(grammar, options.budget, options.soft_depth, options.max_depth)
    if any(map(member_of, automaton.specials)):
        raise MembersClash
    return automaton


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
