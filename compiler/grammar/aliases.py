"""Find the protocol that a name of a model means, and the nearest names to one that means none.

Leaves out   choosing by a chat template, which says more than a name (../protocol_choice.py).
Invariants   an alias is no protocol's name. Capitals, points, hyphens and blanks do not count.
"""

from __future__ import annotations

import difflib
import re

ALIASES: dict[str, tuple[str, ...]] = {
    "cohere": ("command-r7b", "command-a", "north"),
    "deepseek_v3": ("deepseek-r1",),
    "deepseek_v31": ("deepseek-v3.2-exp",),
    "glm45": ("glm-4.6",),
    "glm47": ("glm-5", "ling-3", "spark-2.5", "poolside"),
    "functionary_v32": ("functionary",),
    "granite": ("granite-3",),
    "granite_20b_fc": ("granite-20b-functioncalling",),
    "harmony": ("gpt-oss", "openai"),
    "hermes": ("hermes-2", "hermes-3", "qwen2.5", "qwen3", "granite-4", "qwq", "smollm3", "trinity"),
    "hunyuan_a13b": ("hunyuan",),
    "hy3_opensource": ("hy3",),
    "internlm": ("internlm2", "internlm2.5", "intern-s1"),
    "kimi_k2": ("kimi-k2-thinking", "kimi-k2.5"),
    "lfm2": ("lfm2.5",),
    "llama3": ("llama-3.1", "llama-3.3"),
    "mistral": ("mistral-7b-v0.3", "mistral-nemo", "mistral-small-3.1"),
    "mistral_v11": ("mistral-small-3.2", "magistral", "devstral", "ministral-3", "mistral-large-3"),
    "longcat": ("longcat-flash",),
    "minimax_m2": ("minimax-m2.5",),
    "muse": ("muse-glimmer", "muse-spark"),
    "phi4_mini": ("phi-4",),
    "pythonic": ("llama-3.2", "llama-4"),
    "qwen3_coder": ("qwen3.5", "qwen3-next", "nemotron-3", "step-3.5", "step-5", "nanbeige-4"),
    "seed_oss": ("seed", "seed-oss-36b"),
    "xlam": ("xlam-2",),
}
"""Protocol → names of models that write calls so."""


def _plain(name: str) -> str:
    return re.sub(r"[\s._-]+", "", name.lower())


def protocol_called(name: str, known: list[str]) -> str | None:
    """The protocol of this name, or the one that models of this name use; None if there is none."""
    if name in known:
        return name
    means = {_plain(alias): protocol for protocol, aliases in ALIASES.items() for alias in aliases}
    means |= {_plain(one): one for one in known}
    return means.get(_plain(name))


def nearest(name: str, known: list[str]) -> list[str]:
    """At most three names, of protocols or models, that this one may have been meant for."""
    names = {_plain(one): one for one in (*(alias for aliases in ALIASES.values() for alias in aliases), *known)}
    return [names[one] for one in difflib.get_close_matches(_plain(name), names, 3)]
