"""tekken.json of Mistral: special tokens take the first ids, then the ranked bytes follow.

Leaves out   the pattern that cuts text, and the image and audio sections.
Invariants   id = rank for special tokens, rank + default_num_special_tokens for the others; the table ends at
             default_vocab_size, so ranks beyond it are not tokens. Special tokens that the file does not name are
             called <SPECIAL_n>; a file without a list of them (version v7 and older) has Mistral's first twenty.
Source       mistral_common 1.13, tokens/tokenizers/tekken.py; tests/vocab/ decodes with that library.
"""

from __future__ import annotations

import base64
from typing import Any

from ..errors import VocabError
from .table import Draft, most_ids

_FIRST_TWENTY = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"),
    *("[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]"),
    *("[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)
_WITHOUT_LIST = {"v1", "v2", "v3", "v7"}


def read_tekken(data: dict[str, Any], place: str) -> Draft:
    """The token bytes of a parsed tekken.json.

    Raises:
        VocabError: counts that contradict each other, or a malformed document.
    """
    try:
        config, vocab = data["config"], data["vocab"]
        size, reserved = int(config["default_vocab_size"]), int(config["default_num_special_tokens"])
        listed = data.get("special_tokens")
        if listed is None:
            if config.get("version") not in _WITHOUT_LIST:
                raise VocabError(
                    "only versions up to v7 may leave out special_tokens",
                    place=f"{place}#/config/version",
                    found=repr(config.get("version")),
                )
            named = dict(zip(_FIRST_TWENTY, range(len(_FIRST_TWENTY))))
        else:
            named = {str(token["token_str"]): int(token["rank"]) for token in listed}
        wanted = size - reserved
        by_rank = {int(token["rank"]): token["token_bytes"] for token in vocab}
        if not (0 <= reserved <= size <= min(reserved + len(vocab), most_ids(len(vocab)))) or any(
            not 0 <= r < reserved for r in named.values()
        ):
            raise VocabError(
                "the counts contradict each other",
                place=f"{place}#/config",
                found=f"{size} tokens, {reserved} of them special, {len(named)} named, {len(vocab)} ranked",
            )
        tokens = [b""] * reserved
        tokens.extend(base64.b64decode(by_rank[rank]) for rank in range(wanted))
    except (KeyError, TypeError, ValueError) as error:
        raise VocabError(f"not a tekken file: {error!r}", place=place) from None
    taken = set(named.values())
    named.update((f"<SPECIAL_{n}>", n) for n in range(reserved) if n not in taken)
    return Draft(tokens=tokens, special=named, end_of_turn=[named["</s>"]] if "</s>" in named else [])
