"""Spec documents: what a caller hands in, read into tools with an arguments schema each.

Leaves out   what the schemas mean (../schema) and how a call is spelled (../grammar/protocol.py).
"""

from .model import Spec, ToolSpec
from .read import read_spec

__all__ = ["Spec", "ToolSpec", "read_spec"]
