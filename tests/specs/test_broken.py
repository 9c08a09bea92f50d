"""Every broken spec gives one clear error of ours, with its place."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from tests.cases.broken_specs import ROWS, as_bytes
from toolc.compiler import errors
from toolc.compiler.pipeline import grammar_of
from toolc.compiler.specs import read_spec


@pytest.mark.parametrize(
    ("document", "kind", "place", "words"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_refused(document: Any, kind: str, place: str, words: str) -> None:
    with pytest.raises(getattr(errors, kind)) as caught:
        grammar_of(read_spec(as_bytes(document), "spec.json"))  # where tools that an API runs are refused
    error = caught.value
    assert type(error).__name__ == kind
    assert (error.place or "").startswith("spec.json")
    assert (error.place or "").endswith(place), error.place
    assert words in str(error), str(error)
    assert error.__cause__ is None and (error.__suppress_context__ or error.__context__ is None)


def test_ids_are_unique() -> None:
    assert len({row[0] for row in ROWS}) == len(ROWS)


def test_caret_points_at_the_place() -> None:
    with pytest.raises(errors.SpecError) as caught:
        read_spec(b'{\n  "a": [1, 2,],\n  "b": 3\n}', "spec.json")
    lines = str(caught.value).splitlines()
    assert lines[-2].strip() == '"a": [1, 2,],'
    assert lines[-2][lines[-1].index("^")] == ","
    assert lines[-2][lines[-1].index("^") + 1] == "]"


def test_values_that_json_cannot_say() -> None:
    deep: Any = {}
    for _ in range(10_000):
        deep = {"anyOf": [deep]}
    loop: dict[str, Any] = {"type": "object"}
    loop["items"] = loop
    for value, words in [
        (deep, "more than 500 deep"),
        (loop, "more than 500 deep"),
        ({"type": ("object",)}, "found tuple"),
        ({"minimum": float("nan")}, "no such number"),
        ({"properties": {1: {}}}, "a key is not text"),
    ]:
        with pytest.raises(errors.SpecError, match=words):
            read_spec(value)
    gc.collect()


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(errors.SpecError, match="no such file"):
        read_spec(tmp_path / "none.json")
    with pytest.raises(errors.SpecError, match="a folder"):
        read_spec(str(tmp_path))


def test_size_cap_is_an_option(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    path.write_bytes(b'{"description": "' + b"a" * 2000 + b'"}')
    with pytest.raises(errors.SpecError, match="2,019 bytes, expected at most 1,000"):
        read_spec(path, max_bytes=1000)
    assert read_spec(path, max_bytes=None).kind == "schema"
