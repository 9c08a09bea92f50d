"""Find the tokenizer that a path or a hub id means, read it by what is in it, and add what the files beside it say.

Leaves out   the formats: see hf_json.py, tekken.py, tiktoken_ranks.py, sentencepiece_model.py, gguf.py.
Invariants   a file is recognised by its content, never by its name; equal files give equal tables; nothing is fetched
             when a path of that name exists.

Who says what ends a turn, the first that says anything:
  1. the caller (`eos`)
  2. the files of the model, all of them together, as engines stop at any: generation_config.json, config.json with
     its text model (eos_token_id: a number or a list), tokenizer_config.json, special_tokens_map.json (eos_token)
  3. the tokenizer file itself (tekken: `</s>`; SentencePiece: trainer_spec.eos_id; GGUF: eos, eot and eom)
  4. the first of WELL_KNOWN_ENDS that is a control token; the table's end_of_turn_origin says so
An id of config.json counts where it is a control token: many of these files hold what a library writes by default (2).
A name that the tokenizer does not have ends nothing where another is named.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from toolc.runtime.expected import expect, named_kind

from ..errors import VocabError
from ..paths import path_text
from .builtin import NAME, builtin_path
from .files import read_content
from .gguf import is_gguf, read_gguf
from .hf_json import read_hf_json
from .sentencepiece_model import looks_like_sentencepiece, read_sentencepiece
from .table import Draft, TokenTable, is_control, is_entry, is_unused, most_ids
from .tekken import read_tekken
from .tiktoken_ranks import looks_like_ranks, read_ranks

READING = 2
"""Counts in ``fingerprint``: raise it where equal files come to be read in another way."""

WELL_KNOWN_ENDS = (
    "<|eot_id|>",  # Llama 3
    "<|im_end|>",  # ChatML: Qwen, Hermes, ...
    "<|end_of_turn|>",  # OpenChat
    "<end_of_turn>",  # Gemma
    "<|eot|>",  # Llama 4
    "<|return|>",  # Harmony; its <|end|> only ends a message
    "<|END_OF_TURN_TOKEN|>",  # Command R
    "<|end|>",  # Phi 3, and the built-in vocabulary
    "<｜end▁of▁sentence｜>",  # DeepSeek
    "<|end_of_text|>",
    "<|endoftext|>",
    "</s>",
    "<eos>",
)

_TOKENIZER_FILES = ("tokenizer.json", "tekken.json", "tokenizer.model", "tiktoken.model")
_TOKENIZER_GLOBS = ("*tekken*.json", "*.tiktoken", "*.model", "*.model.v*", "*.gguf")
_END_FILES = ("generation_config.json", "config.json", "tokenizer_config.json", "special_tokens_map.json")
_SIDE_FILES = (*_END_FILES, "added_tokens.json")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")

_ID = re.compile("[0-9]{1,18}")

# reads the side file of that name, or None where there is none
SideFile = Callable[[str], Any]


def load_tokens(source: str | Path, eos: Sequence[str | int] = (), logits_width: int | None = None) -> TokenTable:
    """Read a tokenizer.

    Args:
        source: a tokenizer.json, tekken.json, SentencePiece .model, tiktoken rank or GGUF file; a model folder that
            holds one; the name of the built-in vocabulary (``builtin``); or a Hugging Face id like ``Qwen/Qwen3-8B``,
            which ``@revision`` may follow.
        eos: names or ids of the tokens that end a turn; without them the tokenizer's own files say so.
        logits_width: how many logits the model has; without it the model's config.json says so, where there is one.

    Raises:
        VocabError: nothing there, a format or decoder that is not understood, or an unknown name in ``eos``.
    """
    path = _place(source)
    if os.path.isdir(path):  # Path.is_dir raises where a name is too long
        picked = _pick(path)
        side = _no_files if _says_all(picked) else _folder(path)
        return _finish(_read(picked), side, eos, logits_width, path_text(path.resolve().name))
    if os.path.exists(path):
        return _finish(_read(path), _no_files, eos, logits_width, path_text(path.name))
    if str(source) == NAME:
        return _finish(_read(builtin_path()), _no_files, eos, logits_width, NAME)
    if is_hub_id(source):
        return _from_hub(str(source), eos, logits_width)
    raise VocabError(
        "no such tokenizer",
        found=repr(str(path))[:200],
        expected=f"a tokenizer file, a model folder, a Hugging Face id or '{NAME}'",
    )


def fingerprint(source: str | Path, eos: Sequence[str | int] = (), logits_width: int | None = None) -> str | None:
    """A digest of all that ``load_tokens`` would read, so that what is made of it can be cached; None for a hub id."""
    place = _place(source)
    path = builtin_path() if str(source) == NAME and not os.path.exists(place) else place
    if os.path.isdir(path):
        files = [_pick(path), *(path / name for name in _SIDE_FILES if (path / name).is_file())]
    elif os.path.exists(path):
        files = [path]
    else:
        return None
    digest = hashlib.blake2b(digest_size=16)
    name = NAME if path == builtin_path() else path.resolve().name
    if not isinstance(eos, (str, int)):
        expect(eos, Iterable, "eos", "a list of tokens, by names or ids")
    ends = [str(e) for e in ([eos] if isinstance(eos, (str, int)) else eos)]
    digest.update(repr((READING, name, ends, logits_width)).encode())
    for file in files:
        digest.update(path_text(file.name).encode() + b"\n" + read_content(file).digest)
    return digest.hexdigest()


# ---- finding


def is_hub_id(source: Any) -> bool:
    """Whether this is the id of a model on the Hugging Face hub, and no path here."""
    return isinstance(source, str) and not os.path.exists(source) and _HUB_ID.fullmatch(source) is not None


def _place(source: Any) -> Path:
    if not isinstance(source, (str, os.PathLike)):
        raise VocabError(
            "no such tokenizer",
            found=named_kind(source),
            expected="a path, a name, a Vocab, or a tokenizer of transformers, tokenizers or mistral-common",
            hint={"Bundle": "write bundle.vocab", "Compiled": "write compiled.bundle.vocab"}.get(type(source).__name__),
        )
    if not os.fspath(source):
        raise VocabError("no such tokenizer", found='""', expected="a path or a name", hint="this folder is written .")
    return Path(source)


def _pick(folder: Path) -> Path:
    """The tokenizer file of a model folder; tokenizer.json comes first, as its decoder says most."""
    for name in _TOKENIZER_FILES:
        if (folder / name).is_file():
            return folder / name
    for pattern in _TOKENIZER_GLOBS:
        if found := sorted(path for path in folder.glob(pattern) if path.is_file()):
            return found[0]
    vocab = (folder / "vocab.json").is_file() or (folder / "vocab.txt").is_file()
    raise VocabError(
        "this folder holds no tokenizer that toolc reads",
        place=path_text(folder.resolve().name),
        expected=", ".join(_TOKENIZER_FILES),
        hint="save it in the fast format: AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        if vocab
        else None,
    )


def _no_files(name: str) -> None:
    """The side files of a tokenizer that has none."""


def _says_all(path: Path) -> bool:
    """Whether a tokenizer file is GGUF: what reads it looks at no file beside it."""
    try:
        return is_gguf(path)
    except OSError as error:
        raise VocabError(f"cannot be read: {error.strerror or error}", place=path_text(path.name)) from None


def _folder(folder: Path) -> SideFile:
    def side(name: str) -> Any:
        path = folder / name
        return _json(path.read_bytes(), name) if path.is_file() else None

    return side


def _from_hub(source: str, eos: Sequence[str | int], logits_width: int | None) -> TokenTable:
    """Fetch the tokenizer and the small files beside it; the hub's own cache keeps them."""
    for name in _TOKENIZER_FILES:
        path = hub_file(source, name)
        if path is not None:

            def side(other: str) -> Any:
                found = hub_file(source, other)
                return None if found is None else _json(found.read_bytes(), other)

            return _finish(_read(path), side, eos, logits_width, source)
    raise VocabError("this model has no tokenizer that toolc reads", place=source, expected=", ".join(_TOKENIZER_FILES))


def hub_file(source: str, name: str) -> Path | None:
    """A file of a model on the hub; None if the model has none, or the hub cannot be reached and the file may be
    missing.

    Raises:
        VocabError: the hub refuses, or a tokenizer file cannot be had.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    repo, _, revision = source.partition("@")
    try:
        return Path(hf_hub_download(repo, name, revision=revision or None))
    except LocalEntryNotFoundError:  # offline, and not in the cache; a kind of EntryNotFoundError
        if name not in _TOKENIZER_FILES:
            return None
        raise VocabError(
            "this is no path here, and the Hugging Face hub cannot be reached",
            place=source,
            hint="download the model's tokenizer.json and give its path",
        ) from None
    except EntryNotFoundError:
        return None
    except GatedRepoError:
        raise VocabError(
            "the owner of this model asks for its licence to be accepted first",
            place=source,
            hint=f"accept it on https://huggingface.co/{repo} and log in with `hf auth login` (or set HF_TOKEN), "
            "or give a folder of the model",
        ) from None
    except RepositoryNotFoundError:
        raise VocabError(
            "the Hugging Face hub has no such model, or it is private",
            place=source,
            hint="check the name; for a private model log in with `hf auth login`, or set HF_TOKEN",
        ) from None
    except RevisionNotFoundError:
        raise VocabError("this model has no such revision", place=source, found=revision) from None
    except (HfHubHTTPError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise VocabError(f"the Hugging Face hub refused: {reason}", place=source) from None


# ---- reading


def _json(data: bytes, place: str) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise VocabError(f"not JSON: {error}", place=place) from None


def _read(path: Path) -> Draft:
    """Recognise a tokenizer file by its content and read it."""
    place = path_text(path.name)
    try:
        if is_gguf(path):
            return read_gguf(path)
        data = path.read_bytes()
    except OSError as error:
        raise VocabError(f"cannot be read: {error.strerror or error}", place=place) from None
    if data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        document = _json(data.removeprefix(b"\xef\xbb\xbf"), place)
        if "model" in document:
            return read_hf_json(document, place)
        if "config" in document and "vocab" in document:
            return read_tekken(document, place)
        raise VocabError(
            "neither a tokenizer.json nor a tekken.json",
            place=place,
            found=f"the keys {', '.join(list(document)[:5])}",
            expected="a key 'model', or 'config' and 'vocab'",
        )
    if looks_like_ranks(data):
        return read_ranks(data, place)
    if looks_like_sentencepiece(data):
        return read_sentencepiece(data, place)
    if data.startswith(b"version https://git-lfs"):
        raise VocabError("a Git LFS pointer, not the file", place=place, hint="run git lfs pull in the model folder")
    raise VocabError(
        "not a tokenizer file that toolc knows",
        place=place,
        found=repr(data[:16]),
        expected="tokenizer.json, tekken.json, a SentencePiece model, tiktoken ranks or GGUF",
    )


# ---- what the files beside it say


def _finish(
    draft: Draft, side: SideFile, eos: Sequence[str | int], logits_width: int | None, source: str
) -> TokenTable:
    _add_tokens(draft, side)
    if logits_width is not None:
        draft.cut(logits_width, "--logits-width")
    elif (stated := _stated_width(side)) is not None:
        draft.cut(stated, "config.json#/vocab_size")
    if isinstance(eos, (str, int)):
        eos = [eos]
    for which in eos:
        if isinstance(which, bool) or not isinstance(which, (str, int)):
            raise VocabError("no token ends a turn so", place="eos", found=repr(which)[:40], expected="a name or an id")
    if eos:
        return draft.finish([draft.end_of_turn_id(which, "--eos") for which in eos], "--eos", source)
    ends, origin = _named_ends(draft, side)
    if ends:
        return draft.finish(ends, origin, source)
    if draft.end_of_turn:
        origin = "the tokenizer file"
        return draft.finish([draft.end_of_turn_id(token, origin) for token in draft.end_of_turn], origin, source)
    for known in WELL_KNOWN_ENDS:
        if known in draft.special:
            return draft.finish([draft.special[known]], f"well-known name {known}", source)
    return draft.finish([], "", source)


_TEXT_MODELS = ("text_config", "language_config", "llm_config")
"""Where config.json keeps the language model of a model that reads pictures or sound too."""


def _stated_width(side: SideFile) -> int | None:
    """How many logits config.json gives the model: the rows of its embedding."""
    config = side("config.json")
    if not isinstance(config, dict):
        return None
    parts = [part for name in _TEXT_MODELS if isinstance(part := config.get(name), dict)]
    sizes = [size for part in (*parts, config) if type(size := part.get("vocab_size")) is int]
    return sizes[0] if sizes else None


def _named_ends(draft: Draft, side: SideFile) -> tuple[list[int], str]:
    """The ids that the files beside a tokenizer name as ends of turn, and which files those are.

    Raises:
        VocabError: a file names what can end no turn, and no file names anything else.
    """
    found: dict[int, None] = {}
    origins: dict[str, None] = {}
    unknown: list[VocabError] = []
    for name in _END_FILES:
        config = side(name)
        if not isinstance(config, dict):
            continue
        places = [(config, name + "#/")]
        if name == "config.json":
            places += [(config[inner], f"{name}#/{inner}/") for inner in _TEXT_MODELS if inner in config]
        for values, place in places:
            key = "eos_token_id" if name in ("generation_config.json", "config.json") else "eos_token"
            for which in _ends_in(values, key):
                if name == "config.json" and which not in draft.special.values():
                    continue
                try:
                    found[draft.end_of_turn_id(which, place + key)] = None
                except VocabError as error:
                    if name == "generation_config.json" or draft.find(str(which)) is not None:
                        raise
                    unknown.append(error)
                    continue
                origins[name] = None
    if unknown and not found:
        raise unknown[0]
    return list(found), ", ".join(origins)


def _ends_in(values: Any, key: str) -> list[str | int]:
    """What a file names under a key: a name or an id, an object that holds the name, or a list of names or ids."""
    value = values.get(key) if isinstance(values, dict) else None
    if isinstance(value, dict):
        value = value.get("content")
    named = value if isinstance(value, list) else [value]
    usable = [which for which in named if isinstance(which, (str, int)) and not isinstance(which, bool)]
    return usable if len(usable) == len(named) else []


def _add_tokens(draft: Draft, side: SideFile) -> None:
    """Take in added tokens that only the side files name.

    They fill ids that the tokenizer file leaves without text, or mark a token of the same name as control; where they
    contradict the tokenizer file, it wins, as it does in the tokenizers library.
    """
    added: dict[int, tuple[str, bool]] = {}
    listed = side("added_tokens.json")
    for name, token in listed.items() if isinstance(listed, dict) else ():
        if not is_entry(name, token):
            raise _no_entry("added_tokens.json#", name, token)
        added[token] = name, False
    config = side("tokenizer_config.json")
    decoder = config.get("added_tokens_decoder") if isinstance(config, dict) else None
    if isinstance(decoder, dict):
        for key, entry in decoder.items():
            content: Any = entry.get("content") if isinstance(entry, dict) else None
            if not (_ID.fullmatch(key) and is_entry(content, int(key))):
                raise _no_entry("tokenizer_config.json#/added_tokens_decoder", content, key)
            added[int(key)] = content, bool(entry.get("special"))
    taken = set(draft.special.values())
    for token, (name, special) in sorted(added.items()):
        if token in taken or not 0 <= token < most_ids(len(draft.tokens)) or name in draft.special:
            continue
        empty = token >= len(draft.tokens) or not draft.tokens[token]
        if is_control(name, special) or is_unused(name):
            if empty or draft.find(name) == token:
                draft.make_control(name, token)
        elif empty:
            draft.tokens.extend([b""] * (token + 1 - len(draft.tokens)))
            draft.tokens[token] = name.encode()


def _no_entry(place: str, name: Any, token: Any) -> VocabError:
    return VocabError(
        "an added token that no tokenizer has",
        place=place,
        found=f"{name!a}, id {token!a}"[:80],
        expected="a text and a whole number",
    )
