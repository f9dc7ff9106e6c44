"""Shared test set-up: the tests directory is importable, and hypothesis has two named profiles."""

import os
import sys
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, os.path.dirname(__file__))

# A deadline is itself an invariant: no input may keep a fit running (test_properties, number 17).
_SHARED = {
    "deadline": timedelta(seconds=5),
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "print_blob": True,
}
settings.register_profile("default", max_examples=25, derandomize=True, **_SHARED)
settings.register_profile("thorough", max_examples=500, **_SHARED)


def _wants_thorough(config: pytest.Config) -> bool:
    return "thorough" in config.option.markexpr.replace("not thorough", "")


def pytest_configure(config: pytest.Config) -> None:
    name = "thorough" if _wants_thorough(config) else "default"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", name))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under ``-m thorough`` the property tests are run too, with the examples of the thorough profile."""
    if _wants_thorough(config):
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker(pytest.mark.thorough)
