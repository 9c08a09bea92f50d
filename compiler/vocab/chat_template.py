"""Read the chat template of a model: from its folder, from a GGUF file, or from the Hugging Face hub.

Leaves out   rendering it (../templates.py).
Invariants   of several templates, the one for tools is read (``tool_use``), else ``default``. Tokens that a template
             names (``bos_token``) come from tokenizer_config.json. A tokenizer file alone has no template.
Source       transformers 5.23, tokenization_utils_base.py, save_chat_templates and from_pretrained.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import VocabError
from ..paths import path_text
from .gguf import chat_template, is_gguf
from .load import hub_file, is_hub_id

_CONFIGURATION = "tokenizer_config.json"
_FILES = ("additional_chat_templates/tool_use.jinja", "chat_template.jinja")
_NAMES = ("tool_use", "default")
_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")


class ChatTemplate(NamedTuple):
    """A chat template.

    Attributes:
        text: of Jinja.
        name: how errors call the template: the model and the file.
        variables: texts of the tokens that templates name.
    """

    text: str
    name: str
    variables: dict[str, str]


def read_chat_template(source: Any) -> ChatTemplate | None:
    """The chat template of a model; None where there is none.

    Args:
        source: a model folder, a GGUF file, or a Hugging Face id; whatever else a tokenizer may be has none.

    Raises:
        VocabError: a file cannot be read, or the hub refuses.
    """
    if is_hub_id(source):
        return _of_files(lambda name: hub_file(source, name), str(source))
    if not isinstance(source, (str, os.PathLike)) or not os.path.exists(source):
        return None
    path = Path(source)
    if path.is_dir():
        found = _of_files(lambda name: path / name if (path / name).is_file() else None, path.resolve().name)
        if found is not None:
            return found
        files = sorted(file for file in path.glob("*.gguf") if file.is_file())
    else:
        files = [path]
    try:
        for file in files:
            if is_gguf(file) and (text := chat_template(file)) is not None:
                return ChatTemplate(text, path_text(file.name), {})
    except OSError as error:
        raise VocabError(f"cannot be read: {error.strerror or error}", place=path_text(files[0].name)) from None
    return None


def _of_files(find: Callable[[str], Path | None], model: str) -> ChatTemplate | None:
    """The template among the files of a model."""
    found = find(_CONFIGURATION)
    said = None if found is None else _read(found, json.loads)
    said = said if isinstance(said, dict) else {}
    tokens = {name: said.get(name) for name in _TOKENS}
    texts = {name: token.get("content") if isinstance(token, dict) else token for name, token in tokens.items()}
    variables = {name: text for name, text in texts.items() if isinstance(text, str)}
    for name in _FILES:
        file = find(name)
        if file is not None:
            return ChatTemplate(_read(file, str), f"{path_text(model)}/{name}", variables)
    text = said.get("chat_template")
    if isinstance(text, list):
        named = {one.get("name"): one.get("template") for one in text if isinstance(one, dict)}
        text = next((named[name] for name in _NAMES if name in named), None)
    return ChatTemplate(text, f"{path_text(model)}/{_CONFIGURATION}", variables) if isinstance(text, str) else None


def _read(path: Path, parse: Callable[[str], Any]) -> Any:
    """What a file holds, as UTF-8."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise VocabError(f"cannot be read: {error.strerror or error}", place=path_text(path.name)) from None
    except ValueError as error:  # of UTF-8, or of JSON
        raise VocabError(f"cannot be read: {error}", place=path_text(path.name)) from None
