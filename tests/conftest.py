"""Shared test set-up: the tests directory is importable, and hypothesis has two named profiles."""

import os
import signal
import sys
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings

sys.path.insert(0, os.path.dirname(__file__))

# A job that a shell runs in the background ignores Ctrl-C: tests of interruption would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# An example makes up to five fits, each of which must end within two seconds (test_properties, number 17).
_SHARED = {
    "deadline": timedelta(seconds=10),
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "print_blob": True,
}
# The default profile does not shrink: an example that fails by taking too long would be tried for minutes.
settings.register_profile(
    "default", max_examples=150, derandomize=True, phases=[Phase.explicit, Phase.generate], **_SHARED
)
settings.register_profile("thorough", max_examples=1000, **_SHARED)


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
                item.add_marker(pytest.mark.timeout(1800))
