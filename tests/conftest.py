"""What every test file shares: hypothesis profiles and the folder of large inputs that stay outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SLOW_OK = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile("default", max_examples=25, deadline=None, suppress_health_check=_SLOW_OK)
settings.register_profile("ci", max_examples=50, deadline=None, derandomize=True, suppress_health_check=_SLOW_OK)
settings.register_profile("fuzz", max_examples=2000, deadline=None, suppress_health_check=_SLOW_OK)
settings.load_profile(os.environ.get("TOOLC_HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the source tree."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared(repository: Path) -> Path:
    """The folder with real tokenizers and measurement data beside the checkout; skips where it is absent."""
    folder = repository.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no ../shared folder beside this checkout (real tokenizers and measurement data)")
    return folder
