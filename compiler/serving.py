"""Compile what requests of a server ask for: one tokenizer and protocol, one content after the other.

Leaves out   the process that this runs in: see runtime/serving/worker.py. What a request asks for:
             runtime/serving/requests.py.
Invariants   `key` is the key of what `compile` gives.
"""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolc.runtime.serving.requests import KIND

from .budget import Budget
from .options import Options, cores
from .warmup import is_cold, warm_up

if TYPE_CHECKING:
    from toolc.runtime.format.bundle import Bundle
    from toolc.runtime.serving.worker import Setup

    from .specs import Spec

_WARM = {
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "look",
                "parameters": {
                    "type": "object",
                    "properties": {"at": {"type": "string"}, "times": {"type": "integer"}},
                    "required": ["at"],
                },
            },
        }
    ]
}


class Serving:
    """The compiler of one server.

    Args:
        setup: what contents are compiled for. Small tools are compiled once, so that kernels are there.
    """

    def __init__(self, setup: Setup) -> None:
        from .lift.vocab import load_vocab

        self._setup = setup
        if is_cold():
            warm_up(cores())  # what fails here is compiled, or fails, with the first tools
        self._vocab = load_vocab(setup.tokenizer, setup.ends, setup.logits_width)
        self.compile(_WARM)
        gc.freeze()

    @property
    def vocab_digest(self) -> str:
        """Of the tokenizer that is served."""
        return self._vocab.digest

    def key(self, document: dict[str, Any]) -> str:
        """The key of the bundle that a document compiles to."""
        from .key import source_key

        return source_key(self._spec(document), self._vocab, self._options())

    def compile(self, document: dict[str, Any]) -> Bundle:
        """The bundle of a document."""
        from .pipeline import compile_spec

        setup = self._setup
        spec, options, width = self._spec(document), self._options(), setup.logits_width
        return compile_spec(spec, setup.tokenizer, eos=setup.ends, logits_width=width, options=options).bundle

    def _spec(self, document: dict[str, Any]) -> Spec:
        from .specs.requests import request_spec

        # Every way of asking has its entry; which of them a request begins with is not asked here.
        return replace(request_spec(document, KIND), begins="")

    def _options(self) -> Options:
        setup = self._setup
        return Options(protocol=setup.protocol, budget=Budget(seconds=setup.seconds), jobs=setup.jobs)
