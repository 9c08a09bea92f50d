"""The grammar as data."""
