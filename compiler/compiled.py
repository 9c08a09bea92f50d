"""Describe what was compiled: the meta of its bundle, and the report.

Leaves out   how it was compiled: see stages.py. The keywords of schemas: see schema/report.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .key import FORMAT, UNSAID, recipe
from .options import Options, version

if TYPE_CHECKING:
    from toolc.runtime.format.bundle import Bundle
    from toolc.runtime.format.vocab import Vocab

    from .grammar.assemble import Assembled
    from .link.link import Linked


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


@dataclass(frozen=True)
class Facts:
    """What the stages found that meta and report tell.

    Attributes:
        about: the spec, as the meta tells of it.
        assembled: its rules.
        vocab: of the tokenizer.
        linked: the tables, and what came with them.
        entries: name → state.
        delimiters: of the protocol: content → token, or None where it is text.
        restrictions: of the spec and of the automaton.
        unwritten: characters that the tokenizer cannot write.
    """

    about: dict[str, Any]
    assembled: Assembled
    vocab: Vocab
    linked: Linked
    entries: dict[str, int]
    delimiters: dict[str, int | None]
    restrictions: set[str]
    unwritten: str

    @property
    def many_keys(self) -> list[str]:
        """Places of objects with too many keys for any order."""
        return sorted(map(self.assembled.real, self.assembled.many_keys))

    @cached_property
    def unwritable(self) -> list[dict[str, Any]]:
        """What no text can have: by its schema, or as no token is there for it."""
        assembled = self.assembled
        found: list[dict[str, Any]] = [
            {"pointer": assembled.real(one.place), "keywords": list(one.keywords), "why": one.why}
            for one in assembled.lost
        ]
        if self.unwritten:
            why = f"the tokenizer has no tokens for {' '.join(map(repr, self.unwritten))}"
            found.append({"pointer": str(self.vocab.meta["source"]), "keywords": [], "why": why})
        return found


def meta_of(facts: Facts, options: Options) -> dict[str, Any]:
    """The meta of a bundle: docs/format.md, "Meta"."""
    from .schema.report import dropped, keyword_counts, pack

    about, assembled, linked, vocab = facts.about, facts.assembled, facts.linked, facts.vocab
    return {
        "format": FORMAT,
        "compiler": f"toolc {version()}",
        "recipe": recipe(options, about["kind"]),
        "vocab_digest": vocab.digest,
        "vocab_size": vocab.size,
        "vocab_source": vocab.meta["source"],
        **{key: linked.counts[key] for key in ("soft_depth", "capacity", "max_chain", "stack_symbols")},
        "modes": linked.modes,
        "entry": facts.entries,
        "protocol": assembled.protocol,
        "delimiters": facts.delimiters,
        "separable": linked.separable,
        **({"ends": [[state, list(tools)] for state, tools in linked.ends.items()]} if linked.ends else {}),
        "arguments": assembled.arguments,
        "spec": about | ({"unwritable": facts.unwritable} if facts.unwritable else {}),
        "options": {
            key: value
            for key, value in vars(options).items()
            if key not in ("budget", "jobs", "standalone", "protocol", "response", "schemas")
            and (key, value) not in UNSAID
        },
        "restrictions": sorted(facts.restrictions),
        **({"many_keys": facts.many_keys} if facts.many_keys else {}),
        "keywords": keyword_counts(assembled.told),
        "report": pack(assembled.told),
        "dropped": sorted(assembled.real(place) for place in dropped(assembled.told)),
        "counts": linked.counts,
    }


def report_of(facts: Facts, bundle: Bundle, seconds: Mapping[str, float]) -> dict[str, Any]:
    """The report of a compile; see `Compiled`.

    Args:
        seconds: of each stage.
    """
    from toolc.runtime.store.key import key_of

    from .schema.report import misspelt, placed

    about, assembled, linked, vocab, meta = facts.about, facts.assembled, facts.linked, facts.vocab, bundle.meta
    return {
        "spec": {key: value for key, value in about.items() if key not in ("tools", "skipped")},
        "tools": [tool["name"] for tool in about["tools"]],
        "protocol": assembled.protocol,
        "entries": list(meta["entry"]),
        "min_tokens": bundle.min_tokens,
        "delimiters": facts.delimiters,
        "tokenizer": {"source": vocab.meta["source"], "size": vocab.size, "digest": vocab.digest},
        "ends": [vocab.shown(token) for token in vocab.end_of_turn],
        "missing_ends": missing_ends(assembled.turn_ends, vocab),
        "missing_marks": [mark for mark in assembled.call_marks if facts.delimiters.get(mark, 0) is None],
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
        "unwritten": facts.unwritten,
        "unwritable": facts.unwritable,
        "misspelt": [
            {"pointer": assembled.real(place), "keyword": name, "meant": word}
            for place, name, word in misspelt(assembled.told)
        ],
        "counts": linked.counts,
        "parts": None if linked.parts is None else {"all": linked.parts, "reused": linked.reused},
        "bytes": linked.counts["bytes"],
        "restrictions": meta["restrictions"],
        "many_keys": facts.many_keys,
        "keywords": meta["keywords"],
        "dropped": meta["dropped"],
        "seconds": {stage: round(value, 6) for stage, value in seconds.items()},
        "key": key_of(meta),
    }


def missing_ends(turn_ends: Sequence[str], vocab: Vocab) -> list[str]:
    """Those of a protocol's ends of turn that are tokens of a tokenizer and end no turn there."""
    ends, special = vocab.end_of_turn, vocab.special
    return [name for name in turn_ends if name in special and special[name] not in ends]
