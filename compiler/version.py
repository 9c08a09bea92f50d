"""The version of the installed distribution, as `toolc.compiler.__version__`."""

from toolc.runtime.version import __version__

__all__ = ["__version__"]
