"""Ordinary requests of serving engines, without an engine."""
