"""``toolc protocols``: the protocols that toolc brings along, and how each goes with a model.

Leaves out   the ranking: see ../templates.py.
"""

from __future__ import annotations

from ..errors import VocabError
from ..grammar.aliases import ALIASES
from ..grammar.protocol import load_protocol, protocol_names
from ..lift.vocab import load_vocab
from ..vocab.chat_template import read_chat_template
from .terminal import console, facts, print_json


def run(model: str | None, as_json: bool) -> None:
    """List them with the comment at the top of each; for a model, in the order in which they fit."""
    if model is not None:
        _rank(model, as_json)
        return
    about = {name: load_protocol(name).about for name in protocol_names()}
    if as_json:
        print_json({"ok": True, "protocols": about, "aliases": {name: list(also) for name, also in ALIASES.items()}})
    else:
        console().print(facts([(name, text.split("\n")[0].partition(": ")[0]) for name, text in about.items()]))


def _rank(model: str, as_json: bool) -> None:
    from ..templates import rank_protocols

    template = read_chat_template(model)
    if template is None:
        raise VocabError(
            "there is no chat template", place=model, expected="a model folder, a GGUF file or a Hugging Face id"
        )
    special = load_vocab(model).special
    name, variables = template.name, template.variables
    ranking = rank_protocols(template.text, name=name, variables=variables, special=list(special))
    if as_json:
        rows = [{**fit._asdict(), "fits": fit.fits, "why": fit.why} for fit in ranking.fits]
        print_json({"ok": True, "template": name, "text": ranking.text, "ranking": rows})
        return
    out = console()
    out.print(facts([("template", name), ("a call", repr(ranking.text) if ranking.text else "none is written")]))
    out.print(facts([(fit.protocol, fit.why) for fit in ranking.fits if fit.tried]))
    if left := [fit.protocol for fit in ranking.fits if not fit.tried]:
        out.print(
            facts([("not tried", ", ".join(left) + (": no mark of theirs is in the text" if ranking.text else ""))])
        )
