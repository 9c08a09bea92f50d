"""Specs to try and to test with, shipped as data: `importlib.resources.files("toolc.tools_specs")`."""
