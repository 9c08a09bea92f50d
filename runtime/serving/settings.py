"""Read what an operator says of ordinary requests, from the environment.

    TOOLC_REQUESTS         all (default): every request with tools or a response format is held; named: only those that
                           name a bundle; off: none
    TOOLC_ON_REFUSAL       fallback (default): what toolc refuses is left to the engine, with a warning; 400: it is
                           answered so
    TOOLC_STORE            folder or URL of the bundles, shared between servers; default: `store` in $TOOLC_CACHE
    TOOLC_STORE_BYTES      size limit of that folder (default 8 GiB)
    TOOLC_PROTOCOL         how the model writes calls; default: as the engine's parser says
    TOOLC_COMPILE_SECONDS  how long a compile may take, and a request wait for it (default 30)
    TOOLC_COMPILE_QUEUE    how many compiles may wait (default 32)
    TOOLC_COMPILE_JOBS     processes that compile the parts of one request's tools (default 1)

Invariants   a value that cannot be meant is refused when the server starts, with what may stand there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ServingError
from ..store.fetch import CACHE_BYTES, cache_dir

REQUESTS = ("all", "named", "off")
ON_REFUSAL = ("fallback", "400")


@dataclass(frozen=True)
class Settings:
    """What an operator says; the module says what of.

    Attributes:
        requests: one of REQUESTS.
        on_refusal: one of ON_REFUSAL.
        store: folder or URL.
        store_bytes: its size limit, where it is a folder.
        protocol: a name or a file; None: the engine's parser says it.
        seconds: of a compile, and of the wait for it.
        queue: compiles that may wait.
        jobs: processes of a compile.
    """

    requests: str = "all"
    on_refusal: str = "fallback"
    store: str = ""
    store_bytes: int = CACHE_BYTES
    protocol: str | None = None
    seconds: float = 30.0
    queue: int = 32
    jobs: int = 1

    @property
    def falls_back(self) -> bool:
        """Whether the engine answers what toolc refuses."""
        return self.on_refusal == "fallback"


def settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of an environment; of this process if None.

    Raises:
        ServingError: at a variable.
    """
    said = os.environ if environment is None else environment
    return Settings(
        requests=_word(said, "TOOLC_REQUESTS", REQUESTS),
        on_refusal=_word(said, "TOOLC_ON_REFUSAL", ON_REFUSAL),
        store=said.get("TOOLC_STORE") or str(cache_dir()),
        store_bytes=_number(said, "TOOLC_STORE_BYTES", CACHE_BYTES, 1),
        protocol=said.get("TOOLC_PROTOCOL") or None,
        seconds=float(_number(said, "TOOLC_COMPILE_SECONDS", 30, 1)),
        queue=_number(said, "TOOLC_COMPILE_QUEUE", 32, 1),
        jobs=_number(said, "TOOLC_COMPILE_JOBS", 1, 1),
    )


def _word(said: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    value = said.get(name) or words[0]
    if value not in words:
        raise ServingError("no such choice", place=f"${name}", found=repr(value)[:80], expected=", ".join(words))
    return value


def _number(said: Mapping[str, str], name: str, usual: int, least: int) -> int:
    value = said.get(name)
    if not value:
        return usual
    if not (value.isascii() and value.isdecimal()) or len(value) > 18 or int(value) < least:
        raise ServingError(
            "no such number", place=f"${name}", found=repr(value)[:80], expected=f"a whole number, {least} or more"
        )
    return int(value)
