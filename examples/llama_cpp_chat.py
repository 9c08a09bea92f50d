"""One call written by a ``.gguf`` model with llama-cpp-python: ``python llama_cpp_chat.py MODEL.gguf``."""

import sys

from llama_cpp import Llama, LogitsProcessorList

from toolc.compiler import Options, compile_tools
from toolc.runtime import run
from toolc.runtime.adapters.llama_cpp import ToolcLogitsProcessor


def current_weather(place: str, days: int = 1) -> str:
    """Tell the weather of a place."""
    return f"{place}: dry for {days} days"


def main(path: str) -> None:
    llm = Llama(path, n_ctx=2048, verbose=False)
    bundle = compile_tools([current_weather], llm, options=Options(protocol="hermes")).bundle
    processor = ToolcLogitsProcessor(bundle, llm, entry="required", budget=100)
    answer = llm.create_chat_completion(
        [{"role": "user", "content": "Will it rain in Basel this week?"}],
        max_tokens=100,
        logits_processor=LogitsProcessorList([processor]),
    )
    print(run(processor.reader(answer["choices"][0]["finish_reason"]).calls))


if __name__ == "__main__":
    main(*sys.argv[1:])
