"""OpenAPI 2.0 (Swagger) documents: every operation under ``paths`` is a tool, its arguments as in openapi.py.

The body parameter is the argument ``body``; parameters of a form go by their own names, beside the others.

Leaves out   what the schemas mean: those of parameters are their own keywords, the others stay as written.
Invariants   as openapi.py. Schemas are JSON Schema draft 4 with ``x-nullable``.
Source       OpenAPI Specification 2.0, sections Operation Object, Parameter Object, Items Object.
"""

from __future__ import annotations

from typing import Any

from ..errors import SpecError
from .model import Refused, Repair, ToolSpec, shown, want
from .openapi import PLACES, Reader, as_draft_4
from .selection import Selection

_KEYWORDS = frozenset(
    "type format items default maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems "
    "minItems uniqueItems enum multipleOf description".split()
)


def read_swagger(
    document: dict[str, Any],
    name: str,
    refused: list[Refused] | None = None,
    select: Selection | None = None,
    repairs: list[Repair] | None = None,
) -> list[ToolSpec]:
    """The tools of a Swagger 2.0 document, in its order; the other arguments as for `read_openapi`."""
    version = document["swagger"]
    if version not in ("2.0", 2.0):
        raise SpecError(
            "this version of Swagger is not read", place=f"{name}#/swagger", found=shown(version), expected='"2.0"'
        )
    document = as_draft_4(document, "x-nullable")
    paths = want(document.get("paths", {}), dict, f"{name}#/paths", "an object of paths")
    return _Reader(document, name, "openapi-3.0", refused, select, repairs).paths(paths)


class _Reader(Reader):
    places = (*PLACES, "body", "formData")

    def operation(
        self, method: str, path: str, operation: dict[str, Any], pointer: str, parameters: dict[Any, Any]
    ) -> ToolSpec:
        bodies = [at for (place, _), (_, at) in parameters.items() if place == "body"]
        if len(bodies) > 1:
            raise SpecError(
                "the operation has two body parameters",
                place=f"{self.name}#{bodies[1]}",
                expected=f"no other than that of {self.name}#{bodies[0]}",
                hint="make one object of them",
            )
        return super().operation(method, path, operation, pointer, parameters)

    def argument_name(self, place: str, name: str) -> str:
        """A document has one body parameter, whatever its name."""
        return "body" if place == "body" else name

    def parameter_schema(self, parameter: dict[str, Any], at: str) -> tuple[Any, str]:
        if parameter["in"] == "body":
            if "schema" not in parameter:
                raise SpecError("the body has no schema", place=f"{self.name}#{at}", expected='"schema": {…}')
            return self.schema(parameter["schema"], f"{at}/schema")
        if "type" not in parameter:
            raise SpecError("the parameter has no type", place=f"{self.name}#{at}", expected='"type": …')
        schema = {key: value for key, value in parameter.items() if key in _KEYWORDS}
        if schema["type"] == "file":
            schema["type"] = "string"
        if parameter.get("x-nullable") is True and isinstance(schema["type"], str):
            schema["type"] = [schema["type"], "null"]
        return schema, at
