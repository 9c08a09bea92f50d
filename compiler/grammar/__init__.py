"""Lark text to rules and terminals."""
