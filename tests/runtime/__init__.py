"""Tests of toolc.runtime."""
