"""A pytest plugin: ``pytest --toolc tools.json`` runs `toolc test` as one test for each tool of a spec.

    pytest --toolc tools.json --toolc-validator app.models:validate

Leaves out   decoding and validating: see random_tests.py. Without ``--toolc`` this imports nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from toolc.runtime.format.bundle import Bundle

    from .random_tests import Target


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of this plugin."""
    group = parser.getgroup("toolc", "decode at random under tool specs")
    group.addoption("--toolc", action="append", default=[], metavar="SPEC", help="Test this spec; may be repeated.")
    group.addoption("--toolc-validator", metavar="M:F", help="A function of a call, or a class of its arguments.")
    group.addoption("--toolc-examples", type=int, default=100, metavar="N", help="Examples for each tool.  [100]")
    group.addoption("--toolc-protocol", metavar="P", help="How calls are written.")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for each tool of the specs that are named."""
    specs = config.getoption("--toolc")
    if not specs:
        return
    from .options import BUILTIN, Options
    from .random_tests import compiled_targets
    from .specs import read_spec

    for path in specs:
        options = Options(protocol=config.getoption("--toolc-protocol"))
        bundle, targets = compiled_targets(read_spec(path), BUILTIN, options)
        for target in targets:
            name = f"toolc {path}::{target.name or 'schema'}"
            items.append(ToolcItem.from_parent(session, name=name, bundle=bundle, target=target))


class NotValid(Exception):
    """A decode that is not valid."""


class ToolcItem(pytest.Item):
    """Random decodes of one tool."""

    def __init__(self, *, bundle: Bundle, target: Target, **more: Any) -> None:
        super().__init__(**more)
        self.bundle, self.target = bundle, target

    def runtest(self) -> None:
        """Decode and validate."""
        from .random_tests import check_target, load_validator

        named = self.config.getoption("--toolc-validator")
        validator = None if named is None else load_validator(named)
        failure = check_target(self.bundle, self.target, validator, self.config.getoption("--toolc-examples"))
        if failure is not None:
            raise NotValid(str(failure))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The smallest example alone, without this plugin's frames."""
        if isinstance(excinfo.value, NotValid):
            return f"not valid: {excinfo.value}"
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Where the test is said to be."""
        return self.path, None, self.name
