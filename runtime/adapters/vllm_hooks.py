"""Put toolc into vLLM: its general plugin, and the two places of vLLM that have no public hook.

    pip install toolc        # beside vLLM: the entry point `toolc` of the group `vllm.general_plugins`

1. `EngineArgs.create_engine_config` (vllm/engine/arg_utils.py), so that `--logits-processors` names the processor once,
   whether the operator does or not. Without the option the V1 runner would hold back the output tokens. (An entry
   point of the group `vllm.logits_processors` would be loaded a second time, beside the option.)
2. `InputProcessor.__init__` (vllm/v1/engine/input_processor.py), so that requests are admitted by the engine's own
   config: what vLLM calls at admission, `LogitsProcessor.validate_params`, is a class method and knows no config.

Leaves out   what is checked: see vllm.py, `Gate`. What a config says: vllm_config.py.
Invariants   loading twice does nothing. vLLM loads the plugin in every process, before a config is made.
Source       vLLM 0.32.0 and 0.33.0.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from .vllm_config import PROCESSOR, masks_in_scheduler, refusal, share_log

_LOG = logging.getLogger(__name__)

PREFIX = "toolc_"
_MARK = "_toolc"


def register() -> None:
    """The general plugin."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.engine.input_processor import InputProcessor

    share_log()
    if hasattr(InputProcessor, _MARK):
        return
    setattr(InputProcessor, _MARK, True)
    create, begin = EngineArgs.create_engine_config, InputProcessor.__init__

    @functools.wraps(create)
    def create_engine_config(self: Any, *arguments: Any, **named: Any) -> Any:
        config = create(self, *arguments, **named)
        name_processor(config)
        return config

    @functools.wraps(begin)
    def __init__(self: Any, vllm_config: Any, *arguments: Any, **named: Any) -> None:
        begin(self, vllm_config, *arguments, **named)
        validate = self.validate_logits_processors_params

        @functools.cache
        def gate() -> Any:
            # Not before a request asks for it. vLLM 0.32 starts no worker on a CPU in a process that has loaded
            # llvmlite: triton_utils/dispatcher.py:139 fails at the objects of its library.
            from .vllm import Gate

            return Gate(vllm_config, lambda: self.tokenizer)

        def admit(params: Any) -> None:
            if any(key.startswith(PREFIX) for key in getattr(params, "extra_args", None) or ()):
                try:
                    gate().admit(params)
                except ValueError as error:  # a plain one would be answered with status 500
                    raise VLLMValidationError(str(error)) from error
            validate(params)

        self.validate_logits_processors_params = admit

    EngineArgs.create_engine_config, InputProcessor.__init__ = create_engine_config, __init__


def name_processor(config: Any) -> None:
    """Have the workers of an engine load the processor, once, wherever they can."""
    from .admitted import engine_folder

    model = config.model_config
    if refusal(config) is not None:
        _LOG.warning("toolc: requests that name a bundle will be refused: %s", refusal(config))
        return
    engine_folder()  # the engine's other processes inherit its name
    if masks_in_scheduler(config):
        return
    names = [name for name in model.logits_processors or () if name != PROCESSOR]
    model.logits_processors = [*names, PROCESSOR]
