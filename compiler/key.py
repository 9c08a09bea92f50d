"""The key of a bundle before it is compiled: what stores call it, worked out from what it would be compiled from.

Leaves out   the key's own definition: see runtime/store/key.py, which works it out from a bundle.
Invariants   the key of what a compile gives is the key that is worked out here. Every option counts but those named in
             NO_PART; a protocol counts by its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import unidata_version

from toolc.runtime.expected import expect
from toolc.runtime.format.container import blake
from toolc.runtime.store.key import key_of

from .errors import GrammarError
from .option_checks import check_fit, checked_options
from .options import BUILTIN, Options, version
from .specs import Spec

if TYPE_CHECKING:
    from toolc.runtime.format.vocab import Vocab

FORMAT = 1
"""Of the meta of bundles; raised when its fields change their meaning."""

REVISION = 23
"""Of what a version of toolc compiles; raised when mending it changes masks, and with the format version of bundles: no
store takes old bundles for new."""

NO_PART = ("budget", "jobs", "standalone", "protocol", "schemas")
"""Options that change no bundle, or count otherwise: a protocol by its text, what schemas refer to in the spec; with
``skip`` the limits."""

UNSAID = (("max_depth", None), ("canonical", False), ("closed", False))
"""Options that are not written down where they have this value: older keys do not have them."""


def recipe(options: Options, kind: str) -> str:
    """How a spec of this kind is compiled: BLAKE2b-128, hex, of options, protocol, the version and REVISION; of a
    grammar, whose expressions are those of Python, also of the Unicode that this Python knows."""
    from .grammar.protocol import load_protocol
    from .specs.exact_numbers import write_json
    from .specs.json_values import check_response

    if options.response is not None:
        check_response(options.response)
    said = {name: value for name, value in vars(options).items() if name not in NO_PART and (name, value) not in UNSAID}
    if options.skip:  # then limits decide which tools are in it; that of seconds leaves out none
        budget = options.budget
        said["limits"] = [budget.states, budget.pattern_states, budget.rows, budget.bytes]
    bare = kind == "grammar" or (kind == "schema" and options.protocol is None)
    protocol = None if bare else load_protocol(options.protocol)
    named = None if protocol is None else [protocol.name, protocol.text]
    unicode = [unidata_version] if kind == "grammar" else []
    return blake(write_json([said, named, version(), REVISION, *unicode], ascii_only=True).encode()).hex()


def grammar_digest(lark_text: str, name: str = "grammar.lark", import_paths: Sequence[str | Path] = ()) -> str:
    """BLAKE2b-128, hex, of a grammar that is given as text, and of what it imports; what a spec's digest is to a spec.

    Raises:
        GrammarError: at a place in ``name``; half of a surrogate pair cannot be written as UTF-8.
    """
    from .grammar.imports import imported_texts

    if not isinstance(lark_text, str):
        raise GrammarError("a grammar is text", place=name, found=type(lark_text).__name__)
    try:
        data = lark_text.encode()
    except UnicodeEncodeError as error:
        before = lark_text[: error.start]
        raise GrammarError(
            "a lone surrogate is no text",
            place=f"{name}:{before.count(chr(10)) + 1}:{error.start - before.rfind(chr(10))}",
            found=ascii(lark_text[error.start]),
        ) from None
    imported = imported_texts(lark_text, name, import_paths)
    return blake(b"grammar\n" + data, *(b"\n%import\n" + text.encode() for text in imported)).hex()


def source_key(
    source: Spec | str,
    vocab: Vocab | str | Path | None = None,
    options: Options | None = None,
    name: str = "grammar.lark",
    import_paths: Sequence[str | Path] = (),
) -> str:
    """The key of what `source` compiles to.

    Args:
        source: a spec that was read, or Lark text.
        vocab: the vocabulary, or a tokenizer as ``compile_tools`` takes it.
        options: how it is compiled.
        name: how errors call Lark text.
        import_paths: folders in which Lark text's %import looks.

    Raises:
        ToolcError: it would not be compiled so: an option does not fit it, or there is no such protocol.
    """
    from toolc.runtime.format.vocab import Vocab

    from .lift.vocab import load_vocab
    from .protocol_choice import choice_for, with_choice
    from .vocab.objects import readable

    options = checked_options(options)
    if not isinstance(source, str):
        expect(source, Spec, "source_key(source)", "what read_spec gives, or Lark text")
    check_fit(source, options, name)
    vocab = readable(vocab)
    options = with_choice(options, choice_for(source, vocab, options))
    if not isinstance(vocab, Vocab):
        vocab = load_vocab(BUILTIN if vocab is None else vocab)
    kind = "grammar" if isinstance(source, str) else source.kind
    digest = grammar_digest(source, name, import_paths) if isinstance(source, str) else source.digest
    meta: dict[str, Any] = {
        "format": FORMAT,
        "recipe": recipe(options, kind),
        "vocab_digest": vocab.digest,
        "spec": {"kind": kind, "digest": digest},
    }
    return key_of(meta)
