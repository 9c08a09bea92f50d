"""Tests of compiler/vocab/."""
