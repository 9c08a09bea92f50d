"""Turn tokenizer objects into files that toolc reads: of transformers, tokenizers, mistral-common, llama-cpp-python.

Leaves out   reading files: load.py. Whatever is no such object is given back: a path, a name, a Vocab.
Invariants   no library is imported: an object is told by the module of its class. What is written lies in toolc's cache
             folder under the digest of its content, so equal objects give one folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from toolc.runtime.expected import named_kind
from toolc.runtime.format.vocab import vocab_cache_dir

from ..errors import VocabError

_MODEL_FILES = ("generation_config.json", "config.json")
_MOST_PARTS = 4  # objects inside of one another


def readable(source: Any) -> Any:
    """A path for a tokenizer object; anything else as it is.

    Raises:
        VocabError: an object of these libraries that holds no tokenizer that can be written.
    """
    for _ in range(_MOST_PARTS):
        libraries = {kind.__module__.partition(".")[0] for kind in type(source).__mro__}
        if "transformers" in libraries and hasattr(source, "tokenizer"):  # a processor of pictures and text
            source = source.tokenizer
        elif "transformers" in libraries and hasattr(source, "save_pretrained"):
            return _of_transformers(source)
        elif "tokenizers" in libraries and hasattr(source, "to_str"):
            return _kept({"tokenizer.json": source.to_str().encode()}, "tokenizer")
        elif "mistral_common" in libraries and hasattr(source, "instruct_tokenizer"):
            source = source.instruct_tokenizer
        elif "mistral_common" in libraries and hasattr(source, "file_path"):
            return Path(source.file_path)
        elif "mistral_common" in libraries and hasattr(source, "tokenizer"):
            source = source.tokenizer
        elif "llama_cpp" in libraries and isinstance(getattr(source, "model_path", None), str):
            return Path(source.model_path)
        elif libraries & {"transformers", "tokenizers", "mistral_common", "llama_cpp"}:
            break
        else:
            return source
    raise VocabError(
        "this object holds no tokenizer that can be read",
        found=named_kind(source),
        expected="a tokenizer of transformers, tokenizers or mistral-common",
        hint="or give the tokenizer's file, or the model's folder",
    )


def _of_transformers(tokenizer: Any) -> Path:
    """What the tokenizer itself writes, with what the model's folder says of ends of turn and the width of logits."""
    with tempfile.TemporaryDirectory(prefix="toolc-") as folder:
        tokenizer.save_pretrained(folder)
        paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]  # templates lie in a folder of it
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    model = str(getattr(tokenizer, "name_or_path", "") or "")
    for name in _MODEL_FILES:
        if name not in files and (path := _beside(model, name)) is not None:
            files[name] = path.read_bytes()
    if "tokenizer_config.json" in files:  # where it was read from is no part of it
        said = json.loads(files["tokenizer_config.json"])
        for key in ("name_or_path", "local_files_only", "is_local"):
            said.pop(key, None)
        files["tokenizer_config.json"] = json.dumps(said, sort_keys=True).encode()
    return _kept(files, os.path.basename(model.rstrip("/")) or "tokenizer")


def _beside(model: str, name: str) -> Path | None:
    """A small file of the model that a tokenizer came from, if it is on this machine."""
    if os.path.isdir(model):
        path = Path(model, name)
        return path if path.is_file() else None
    if not model or os.path.exists(model):
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(model, name)
    except HFValidationError:  # the name is of no hub
        return None
    return Path(found) if isinstance(found, str) else None


def _kept(files: dict[str, bytes], name: str) -> Path:
    """The folder of these files in the cache."""
    digest = hashlib.blake2b(digest_size=8)
    for key in sorted(files):
        digest.update(f"{key}\n{len(files[key])}\n".encode() + files[key])
    short = re.sub(r"[^\w.-]", "_", name)[:60] or "tokenizer"
    target = vocab_cache_dir() / "tokenizers" / f"{short}-{digest.hexdigest()}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".", dir=target.parent))
    for key, data in files.items():
        (made / key).parent.mkdir(parents=True, exist_ok=True)
        (made / key).write_bytes(data)
    try:
        made.rename(target)
    except OSError:  # another process was first
        shutil.rmtree(made, ignore_errors=True)
        if not target.is_dir():
            raise
    return target
