"""Write the golden files of the tests anew: ``python -m tests.golden``, or ``make golden``."""

from __future__ import annotations

from importlib import import_module

MODULES = (
    "tests.schema.test_docs",
    "tests.runtime.test_format_page",
    "tests.schema.test_suite",
    "tests.cli.test_warmup",
    "tests.docs.test_pages",
    "tests.docs.test_errors",
    "tests.docs.test_migration",
)


def main() -> None:
    """Rebuild what every module stores, and say where."""
    for name in MODULES:
        print(f"wrote {import_module(name).rebuild()}")


if __name__ == "__main__":
    main()
