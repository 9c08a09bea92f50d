"""Compile tool specs, schemas and grammars to bundles: the public face of the compiler.

    from toolc.compiler import compile_tools
    compile_tools("weather.json").write("weather.toolc")

Leaves out   the pipeline itself: see pipeline.py and stages.py. Decoding: see toolc.runtime.
Invariants   importing this loads nothing but the standard library; a name loads what it needs when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolc.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from .budget import Budget
    from .compiled import Compiled
    from .key import source_key
    from .options import Options
    from .pipeline import (
        compile_grammar,
        compile_regex,
        compile_request,
        compile_schema,
        compile_spec,
        compile_tools,
        grammar_of,
    )
    from .specs import Spec, ToolSpec, read_spec
    from .version import __version__

_HOME = {
    "__version__": "version",
    "Budget": "budget",
    "Compiled": "compiled",
    "Options": "options",
    "Spec": "specs",
    "ToolSpec": "specs",
    "compile_grammar": "pipeline",
    "compile_regex": "pipeline",
    "compile_request": "pipeline",
    "compile_schema": "pipeline",
    "compile_spec": "pipeline",
    "compile_tools": "pipeline",
    "grammar_of": "pipeline",
    "read_spec": "specs",
    "source_key": "key",
}

__all__ = [
    "Budget",
    "Compiled",
    "Options",
    "Spec",
    "ToolSpec",
    "__version__",
    "compile_grammar",
    "compile_regex",
    "compile_request",
    "compile_schema",
    "compile_spec",
    "compile_tools",
    "grammar_of",
    "read_spec",
    "source_key",
]


__getattr__ = lazy_names(globals(), _HOME)
