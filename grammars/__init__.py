"""Lark files shipped as data: JSON and tool-call protocols."""
