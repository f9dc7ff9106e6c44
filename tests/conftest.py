"""Shared test set-up: imports, threads, processes, and the two named profiles of hypothesis."""

import contextlib
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

# BLAS reads these when it is loaded. On matrices as small as the tests', its threads cost three times the work they
# share; mercer's own threads stay as they are.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(variable, "1")

from hypothesis import HealthCheck, Phase, settings  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_iris  # noqa: E402
from sklearn.preprocessing import scale  # noqa: E402

try:
    import fcntl
except ImportError:  # Windows, where the tests that measure time are skipped
    fcntl = None

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
# The default profile does not shrink: an example that fails by taking too long would be tried for minutes. Forty laws
# draw from the same few families of problems, so that each family is tried some hundreds of times.
settings.register_profile(
    "default", max_examples=50, derandomize=True, phases=[Phase.explicit, Phase.generate], **_SHARED
)
settings.register_profile("thorough", max_examples=1000, **_SHARED)


def _wants_thorough(config: pytest.Config) -> bool:
    return "thorough" in config.option.markexpr.replace("not thorough", "")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Processes for ``-n auto``: one per processor, at most eight; none for files, whose tests begin sooner without."""
    if not any(Path(argument).is_dir() for argument in config.args):
        return 0
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # which leaves it to xdist
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors, 8) if processors > 1 else 0


def pytest_configure(config: pytest.Config) -> None:
    name = "thorough" if _wants_thorough(config) else "default"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", name))
    if not hasattr(config, "workerinput"):
        os.environ["MERCER_TESTS_LOCKS"] = tempfile.mkdtemp(prefix="mercer-tests-")  # the workers inherit it


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop("MERCER_TESTS_LOCKS", ""), ignore_errors=True)  # none after a failed start


@contextlib.contextmanager
def _turn(folder: Path, alone: bool) -> Iterator[None]:
    """While no other process of this run is in a test that is alone; or in any test, if this one is to be alone.

    A test that waits to be alone holds the queue, so that running tests end and no new ones begin.
    """
    with open(folder / "queue", "w") as queue, open(folder / "running", "w") as running:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(queue, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(running, fcntl.LOCK_UN)  # closing would not do: a child of the test may still have it open


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Tests marked ``alone`` measure time: no test of another process runs beside them."""
    if fcntl is None or not hasattr(item.config, "workerinput"):
        return (yield)
    with _turn(Path(os.environ["MERCER_TESTS_LOCKS"]), item.get_closest_marker("alone") is not None):
        return (yield)


def pytest_runtest_teardown() -> None:
    """Matplotlib keeps figures, and warns of too many."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of collected tests live until the end: no collection of garbage need look at them again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under ``-m thorough`` the property tests are run too, with the examples of the thorough profile.

    A test named after an address is refused: each process would collect tests of other names, and none would run.
    """
    if named := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"give the cases names with ids=, not an address: {named[0]}")
    if _wants_thorough(config):
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker(pytest.mark.thorough)
                item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture(scope="module")
def two():
    """Two classes: breast cancer, standardised."""
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def three():
    """Three classes: iris, standardised."""
    X, y = load_iris(return_X_y=True)
    return scale(X), y
