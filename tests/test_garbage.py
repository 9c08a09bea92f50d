"""A compile leaves nothing that only the collector would find, but for the nodes of schemas that recur: it is paused
meanwhile, and has all the more to do after."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from toolc.compiler import compile_tools
from toolc.compiler.link import cache
from toolc.compiler.schema import cached_rules as pieces


@pytest.mark.parametrize("spec", ["weather.json", "shop_openapi.json", "tree_schema.json"])
def test_no_cycles(repository: Path, spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path))  # no parts
    pieces.forget()
    cache.forget()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        compile_tools(repository / "tools_specs" / spec)
        gc.collect()
        left = {type(one).__qualname__ for one in gc.garbage if type(one).__module__.startswith("toolc")}
        made = [one for one in gc.garbage if callable(one) and not isinstance(one, type)]
        left |= {one.__qualname__ for one in made if str(one.__module__).startswith("toolc")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left <= {"Node"}
