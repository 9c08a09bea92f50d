"""Tests of toolc.runtime.speculate."""
