"""What the tests against real engines share. They skip where the engine or the model is absent, and say why; under
`make engines`, which has fetched both ($TOOLC_ENGINES is "required"), they fail there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .model import model_folder
from .serving import Server, environment, serving

HINT = "`make engines` makes the environment, and fetches the model"
END = "<|im_end|>"
ANSWER = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}, "ok": {"type": "boolean"}},
    "required": ["n", "ok"],
    "additionalProperties": False,
}
"""The schema of the bundle `answer`."""


@pytest.fixture(scope="session")
def model() -> Path:
    """The small model; skips where vLLM or the model is absent."""
    absent = pytest.fail if os.environ.get("TOOLC_ENGINES") == "required" else pytest.skip
    if importlib.util.find_spec("vllm") is None:
        absent(f"vLLM is not installed in this environment: {HINT}")
    if not model_folder().is_dir():
        absent(f"no model in {model_folder()}: {HINT}")
    return model_folder()


def compiled(spec: Path, to: Path, model: Path | None, *more: str) -> Path:
    """A bundle of a spec for a model's tokenizer; for the built-in vocabulary if None."""
    command = [sys.executable, "-m", "toolc.compiler.cli", "compile", str(spec), "-o", str(to), *more]
    if model is not None:
        command += ["--tokenizer", str(model / "tokenizer.json")]
    subprocess.run(command, check=True, capture_output=True)
    return to


@pytest.fixture(scope="session")
def bundles(model: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of bundles: right ones, calls in no protocol (`plain`), other ends of turn (`ends`), another tokenizer
    (`other`).
    """
    folder = tmp_path_factory.mktemp("bundles")
    weather = repository / "tools_specs" / "weather.json"
    compiled(weather, folder / "weather.toolc", model, "--protocol", "hermes", "--eos", END)
    compiled(weather, folder / "plain.toolc", model, "--eos", END)
    schema = folder / "schema.json"
    schema.write_text(json.dumps(ANSWER))
    compiled(schema, folder / "answer.toolc", model, "--eos", END)
    compiled(schema, folder / "ends.toolc", model, "--eos", END, "--eos", "<|endoftext|>")
    compiled(schema, folder / "other.toolc", None)
    return folder


@pytest.fixture(scope="session")
def server(model: Path, bundles: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the V1 runner: two front ends, the processor named by the operator too, few blocks of memory."""
    place = tmp_path_factory.mktemp("server")
    arguments = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--api-server-count", "2"]
    arguments += ["--logits-processors", "toolc.runtime.adapters.vllm:ToolcLogitsProcessor"]
    arguments += ["--block-size", "32", "--num-gpu-blocks-override", "40"]
    variables = environment(TOOLC_BUNDLES=str(bundles), TOOLC_STORE=str(place / "store"), VLLM_PLUGINS="toolc")
    with serving(model, place / "log.txt", variables, arguments) as found:
        yield found
