"""Where the grammars that a Lark text imports are looked for: folders and loaders that are given, then toolc's own.

Leaves out   what they hold (reader.py), what is refused in them (faults.py).
Invariants   they are looked for in Lark's order; grammars that come with Lark itself are left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ImportPath = str | Path | Callable[..., Any]
"""A folder, or a loader as Lark takes them."""


def places_of(import_paths: Iterable[ImportPath]) -> list[Any]:
    """What Lark takes as places to look in: those that are given, then the grammars shipped with toolc."""
    return [*(str(path) if isinstance(path, Path) else path for path in import_paths), _own_grammars]


def find(places: Iterable[Any], beside: str | None, file: str) -> tuple[str, str] | None:
    """The path and the text of a grammar, as Lark finds it; None where it is not there, or Lark's own.

    Args:
        places: see `places_of`.
        beside: the folder of a grammar that imports another beside it.
    """
    for place in places if beside is None else [*places, beside]:
        try:
            if callable(place):
                found, text = place(beside, file)
                return str(found), text
            path = Path(place) / file
            return str(path), path.read_text(encoding="utf-8")
        except OSError:
            continue
    return None


def imported_texts(text: str, name: str, import_paths: Iterable[ImportPath]) -> list[str]:
    """The texts of all files that a Lark text imports, and of those that they import, but for Lark's own.

    Args:
        name: how errors name the text; with a path, relative imports are looked up beside it.
        import_paths: folders or loaders, before toolc's own.

    Raises:
        GrammarError: Lark would not come to an end with one of them, or one imports itself.
    """
    if "%import" not in text:
        return []
    from .faults import Source  # which loads lark

    places, texts = places_of(import_paths), list[str]()

    def load(beside: str | None, file: str) -> tuple[str, str] | None:
        found = find(places, beside, file)
        if found is not None:
            texts.append(found[1])
        return found

    Source(text, name).check(load)
    return texts


def _own_grammars(base_path: Any, grammar_path: str) -> tuple[str, str]:
    """Lark's loader for the grammars shipped with toolc."""
    path = Path(__file__).parents[2] / "grammars" / grammar_path
    return str(path), path.read_text(encoding="utf-8")
