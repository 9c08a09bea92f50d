"""Choose the protocol of a model by its chat template, where a compile names none.

Leaves out   rendering and ranking (templates.py), names of models (grammar/aliases.py).
Invariants   a protocol is chosen only if it reads back the known call that the template writes. Where a compile names
             no protocol and the template writes no calls, or cannot be rendered with one, a call stays plain JSON; the
             report says so. A chat template that writes calls as no protocol does is refused, not guessed.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import GrammarError, SpecError
from .grammar.protocol import AUTO, DEFAULT, has_response_template, protocol_names
from .options import Options
from .specs.model import quote

if TYPE_CHECKING:
    from .specs import Spec
    from .templates import Ranking
    from .vocab.chat_template import ChatTemplate

_SHOWN = 300


class Choice(NamedTuple):
    """A protocol, and the reason for it in words."""

    protocol: str | Path
    why: str


def choice_for(source: Spec | str, tokenizer: Any, options: Options) -> Choice | None:
    """The protocol of a compile, where its options leave that to the model's chat template; None where they do not.

    Args:
        source: a spec that was read, or Lark text, which has no protocol.
        tokenizer: as ``compile_tools`` takes it.
        options: how to compile.

    Raises:
        GrammarError: there is no chat template, or none of toolc's protocols fits.
        SpecError: the chat template cannot be rendered with a call.
        ToolcError: jinja2 is not installed.
    """
    if isinstance(source, str) or (options.protocol is None and not source.tools):
        return None
    return choose(tokenizer, options.protocol)


def choose(tokenizer: Any, protocol: str | Path | None = None) -> Choice | None:
    """The same for any spec with tools. ``protocol``: None, "auto", the folder of a checkpoint, or any other, for which
    nothing is chosen."""
    from .vocab.chat_template import read_chat_template

    folder = None if protocol is None else _checkpoint(protocol)
    if protocol not in (None, AUTO) and (folder is None or has_response_template(folder)):
        return None
    model = tokenizer if folder is None else folder
    template = read_chat_template(model)
    if template is None:
        if protocol is None:
            return None
        raise GrammarError(
            "there is no chat template to choose the protocol by",
            place=str(model) if isinstance(model, (str, Path)) else None,
            expected="a model folder, a GGUF file or a Hugging Face id with a chat template",
            hint="name the protocol; toolc protocols lists them",
        )
    try:
        ranking = _ranking(template)
    except SpecError as error:
        if protocol is None:
            return Choice(DEFAULT, f"{error.message}: {error.found}")
        raise
    best = ranking.best
    if best is not None:
        alike = [
            fit.protocol
            for fit in ranking.fits[1:]
            if (fit.reads, fit.writes, fit.ends) == (best.reads, best.writes, best.ends)
        ]
        also = f"; {' and '.join(alike)} as much" if alike else ""
        return Choice(best.protocol, f"by {template.name}: {best.why}{also}")
    own = _checkpoint(model)
    if own is not None and has_response_template(own):
        return Choice(
            own, f"by the response template of {own.name}; no protocol of toolc reads what {template.name} writes"
        )
    if not ranking.text:
        if protocol is None:
            return Choice(DEFAULT, f"{template.name} writes no calls")
        raise GrammarError(
            "the chat template writes no calls, so the protocol cannot be chosen by it",
            place=template.name,
            hint="name the protocol; toolc protocols lists them",
        )
    tried = ", ".join(fit.protocol for fit in ranking.fits if fit.tried)
    raise GrammarError(
        "the chat template writes calls as no protocol of toolc does",
        place=template.name,
        found=quote(ranking.text, _SHOWN),
        expected=f"a call that one of these reads back: {tried}",
        hint=f"name the protocol, --protocol {DEFAULT} for plain JSON, or write one: docs/protocols.md",
    )


def with_choice(options: Options, choice: Choice | None) -> Options:
    """The options with what was chosen."""
    from dataclasses import replace

    return options if choice is None else replace(options, protocol=choice.protocol)


def _checkpoint(path: Any) -> Path | None:
    """The folder of a checkpoint, if this is one, and no name of a protocol."""
    if not isinstance(path, (str, os.PathLike)) or not os.path.isdir(path):
        return None
    return None if isinstance(path, str) and path in protocol_names() else Path(path)


@lru_cache(maxsize=16)
def _by_text(text: str, name: str, variables: tuple[tuple[str, str], ...]) -> Ranking:
    from .templates import rank_protocols

    return rank_protocols(text, name=name, variables=dict(variables))


def _ranking(template: ChatTemplate) -> Ranking:
    return _by_text(template.text, template.name, tuple(template.variables.items()))
