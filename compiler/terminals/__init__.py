"""Terminals: regular expressions as minimal deterministic automata over bytes."""
