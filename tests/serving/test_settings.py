"""What operators say in the environment."""

from __future__ import annotations

import pytest

from toolc.runtime.errors import ServingError
from toolc.runtime.serving.settings import settings


def test_usual() -> None:
    usual = settings({"TOOLC_REQUESTS": "", "TOOLC_COMPILE_QUEUE": ""})
    assert (usual.requests, usual.falls_back, usual.protocol) == ("all", True, None) and usual.store


def test_said() -> None:
    said = settings(
        {
            "TOOLC_REQUESTS": "named",
            "TOOLC_ON_REFUSAL": "400",
            "TOOLC_STORE": "s3://bundles/here",
            "TOOLC_PROTOCOL": "hermes",
            "TOOLC_COMPILE_SECONDS": "5",
        }
    )
    assert (said.requests, said.falls_back, said.store, said.protocol, said.seconds) == (
        *("named", False, "s3://bundles/here", "hermes", 5.0),
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("TOOLC_REQUESTS", "some", "all, named, off"),
        ("TOOLC_ON_REFUSAL", "500", "fallback, 400"),
        ("TOOLC_COMPILE_SECONDS", "0", "1 or more"),
        ("TOOLC_COMPILE_QUEUE", "-3", "1 or more"),
        ("TOOLC_COMPILE_JOBS", "two", "1 or more"),
        ("TOOLC_STORE_BYTES", "²", "1 or more"),
        ("TOOLC_STORE_BYTES", "9" * 5000, "1 or more"),
    ],
)
def test_refused(name: str, value: str, expected: str) -> None:
    with pytest.raises(ServingError) as caught:
        settings({name: value})
    assert caught.value.place == f"${name}" and expected in str(caught.value)
