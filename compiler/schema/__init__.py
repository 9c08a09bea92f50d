"""JSON Schema → Lark text."""

from .writer import LarkWriter, SchemaOptions, schema_to_lark

__all__ = ["LarkWriter", "SchemaOptions", "schema_to_lark"]
