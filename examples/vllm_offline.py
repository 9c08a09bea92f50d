"""One call written under vLLM, without a server: ``TOOLC_BUNDLES=. python vllm_offline.py [MODEL]``."""

import os
import sys

from transformers import AutoTokenizer
from vllm import LLM, SamplingParams

from toolc.compiler import Options, compile_tools
from toolc.runtime import read_calls, run


def current_weather(place: str, days: int = 1) -> str:
    """Tell the weather of a place."""
    return f"{place}: dry for {days} days"


def main(name: str = "Qwen/Qwen3-0.6B") -> None:
    os.environ.setdefault("TOOLC_BUNDLES", ".")
    compiled = compile_tools([current_weather], AutoTokenizer.from_pretrained(name), options=Options(protocol="hermes"))
    compiled.write("weather.toolc")
    engine = LLM(name)
    asked = SamplingParams(max_tokens=100, extra_args={"toolc_bundle": "weather", "toolc_entry": "required"})
    (out,) = engine.chat([{"role": "user", "content": "Will it rain in Basel this week?"}], asked)
    print(run(read_calls(compiled.bundle, out.outputs[0].token_ids, "required")))


if __name__ == "__main__":
    main(*sys.argv[1:])
