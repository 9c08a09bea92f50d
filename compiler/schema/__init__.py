"""JSON Schema → rules of a grammar."""

from .rules import SchemaOptions
from .writer import LarkWriter, schema_to_lark

__all__ = ["LarkWriter", "SchemaOptions", "schema_to_lark"]
