"""The half of the backend that would compile."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from triton.backends.compiler import BaseBackend, GPUTarget


class NoCompiler(BaseBackend):
    """Supports the target "cpu" in name only."""

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "cpu")

    def hash(self) -> str:
        return "interpreted"

    def parse_options(self, options: dict) -> object:
        raise NotImplementedError("nothing is compiled: set TRITON_INTERPRET=1")

    def add_stages(self, stages: dict, options: object, language: Any) -> None:
        raise NotImplementedError("nothing is compiled: set TRITON_INTERPRET=1")

    def load_dialects(self, context: Any) -> None:
        raise NotImplementedError("nothing is compiled: set TRITON_INTERPRET=1")

    def get_module_map(self) -> dict[str, ModuleType]:
        return {}
