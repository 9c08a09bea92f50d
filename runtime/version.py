"""The version of the installed distribution."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("toolc")
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "unknown"
