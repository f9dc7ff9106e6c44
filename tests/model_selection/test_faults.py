"""What goes wrong in one cell stays there: kernels that raise, folds with one class, Ctrl-C, time limits."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import SVC, TunedSVC
from mercer.kernels import Gaussian
from mercer.model_selection.held_out import fold_fits
from mercer.model_selection.result import SearchInterrupted


def data(n: int = 60):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


class Broken(Gaussian):
    """Fails for one gamma."""

    def _values(self, X, Z):  # type: ignore[no-untyped-def]
        if self.gamma == 2.0:
            raise RuntimeError("this kernel is broken")
        return super()._values(X, Z)

    def _diag(self, X):  # type: ignore[no-untyped-def]
        if self.gamma == 2.0:
            raise RuntimeError("this kernel is broken")
        return np.ones(len(X))


@pytest.mark.parametrize("cache_size", [1000, 0.001])
def test_a_kernel_that_raises_ends_its_own_cells(cache_size: float) -> None:
    X, y = data()
    machine = SVC(kernel=Broken(), cache_size=cache_size)
    found = mercer.tune(machine, X, y, grid={"C": [1.0, 10.0], "gamma": [1.0, 2.0, 3.0]}, skip=False, refit=False)
    for params, mean, why in zip(
        found.cv_results_["params"], found.cv_results_["mean_test_score"], found.cv_results_["why"], strict=True
    ):
        broken = params["kernel__gamma"] == 2.0
        assert np.isnan(mean) == broken
        assert ("RuntimeError: this kernel is broken" in why) == broken
    assert found.best_params_["kernel__gamma"] != 2.0
    assert found.complete_


def test_a_fold_with_one_class_is_told_and_the_rest_returned() -> None:
    X, y = data()
    order = np.argsort(y, kind="stable")
    half = len(y) // 2
    splits = [(order[: (y == 0).sum()], order[half:]), (order[::2], order[1::2])]
    with pytest.warns(UserWarning, match=r"no cell of the grid could be fitted in every fold: .*1 class"):
        found = mercer.tune(SVC(), X, y, grid={"C": [1.0, 10.0]}, cv=splits, refit=False)
    assert found.best_index_ is None
    assert all("fold 0: ValueError" in why and "1 class" in why for why in found.cv_results_["why"])
    assert np.isfinite(found.cv_results_["split1_test_score"]).all()


def test_no_cell_at_all_is_an_error() -> None:
    X, y = data()
    order = np.argsort(y, kind="stable")
    splits = [(order[: (y == 0).sum()], order[-5:])]
    with pytest.raises(ValueError, match=r"no cell of the grid could be fitted.*1 class"):
        mercer.tune(SVC(), X, y, grid={"C": [1.0, 10.0]}, cv=splits)


def test_a_score_that_raises_is_told() -> None:
    X, y = data()

    def score(model, X, y) -> float:  # type: ignore[no-untyped-def]
        raise ArithmeticError("no score")

    with pytest.warns(UserWarning, match="ArithmeticError: no score"):
        found = mercer.tune(SVC(), X, y, grid={"C": [1.0]}, scoring=score, refit=False)
    assert "ArithmeticError: no score" in found.cv_results_["why"][0]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("classes", [2, 3], ids=["folds", "pairs"])
def test_a_worker_that_dies_takes_its_own_fit_with_it(
    classes: int, n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data()
    y = np.where(X[:, 1] > 0.8, 2, y) if classes == 3 else y
    real = fold_fits.solve_stored

    def solve(problem, field, stop, finish):  # type: ignore[no-untyped-def]
        if problem.upper.max() == 10.0 and 0 not in field.rows:
            raise MemoryError("no memory is left for this worker")
        return real(problem, field, stop, finish)

    grid = {"C": [1.0, 10.0, 100.0]}
    whole = mercer.tune(SVC(gamma=1.0), X, y, grid=grid, skip=False, refit=False)
    monkeypatch.setattr(fold_fits, "solve_stored", solve)
    found = mercer.tune(SVC(gamma=1.0), X, y, grid=grid, skip=False, refit=False, n_jobs=n_jobs)
    assert found.complete_
    assert found.best_params_["C"] != 10.0
    scores, expected = (np.array([one.cv_results_[f"split{k}_test_score"] for k in range(5)]) for one in (found, whole))
    dead = np.isnan(scores)
    assert dead[:, 1].any()
    assert not dead[:, [0, 2]].any()
    assert not dead.all(axis=0)[1] or classes == 3
    np.testing.assert_array_equal(scores[~dead], expected[~dead])
    assert "MemoryError: no memory is left" in found.cv_results_["why"][1]


@pytest.mark.parametrize("machine", [SVC(), SVC(kernel="linear")], ids=["shared", "fold by fold"])
def test_a_signal_ends_a_search_soon(machine: SVC) -> None:
    X, y = data()
    seen = []

    def told(fit) -> None:  # type: ignore[no-untyped-def]
        seen.append(fit)
        if len(seen) == 4:
            signal.raise_signal(signal.SIGINT)

    begun = time.monotonic()
    grid = {"C": np.geomspace(0.01, 1000, 400)}
    found = mercer.tune(machine, X, y, grid=grid, skip=False, n_jobs=2, callback=told)
    assert found.interrupted_
    assert len(seen) < 1000
    assert time.monotonic() < begun + 5


class Interrupts:
    """A callback that presses Ctrl-C after a few fits."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, told) -> None:  # type: ignore[no-untyped-def]
        assert set(told) == {"params", "fold", "score", "gap", "done", "of"}
        self.left -= 1
        if self.left <= 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("machine", [SVC(), SVC(kernel="linear")], ids=["shared", "fold by fold"])
def test_ctrl_c_returns_what_is_there(machine: SVC, n_jobs: int) -> None:
    X, y = data()
    found = mercer.tune(machine, X, y, grid={"C": [0.1, 1.0, 10.0]}, n_jobs=n_jobs, skip=False, callback=Interrupts(7))
    assert found.interrupted_
    assert not found.complete_
    assert found.best_estimator_ is None
    scores = np.array([found.cv_results_[f"split{k}_test_score"] for k in range(5)])
    assert 6 <= np.isfinite(scores).sum() < 15
    assert "not reached" in found.cv_results_["why"]


def test_an_estimator_that_is_interrupted_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data()
    model = TunedSVC({"C": [0.1, 1.0]}, n_jobs=1).fit(X, y)
    before = dict(vars(model))
    from mercer.model_selection import tuned

    real = tuned.tune
    monkeypatch.setattr(tuned, "tune", lambda *args, **given: real(*args, **given, callback=Interrupts(4)))
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(X[:40], y[:40])
    assert isinstance(caught.value, SearchInterrupted)
    assert caught.value.result.cv_results_["params"] == before["cv_results_"]["params"]
    assert vars(model) == before


def test_a_time_limit_takes_the_best_so_far() -> None:
    X, y = data()
    seen = []

    def slow(told) -> None:  # type: ignore[no-untyped-def]
        seen.append(told)
        if len(seen) > 10:
            time.sleep(0.25)

    with pytest.warns(ConvergenceWarning, match="the search ended after"):
        found = mercer.tune(
            SVC(gamma=1.0),
            X,
            y,
            grid=[{"C": [1.0, 2.0]}, {"C": [1.0, 2.0, 3.0, 4.0], "gamma": [0.1]}],
            max_time=0.5,
            skip=False,
            n_jobs=1,
            callback=slow,
        )
    assert not found.complete_
    assert found.best_estimator_ is not None


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"grid": {}}, "grid"),
        ({"grid": {"C": 1.0}}, "list of at least one value"),
        ({"grid": {"C": []}}, "list of at least one value"),
        ({"grid": {"typo": [1.0]}}, "typo"),
        ({"grid": 3}, "dictionary"),
        ({"grid": {"C": [1.0]}, "skip": "maybe"}, "skip"),
        ({"grid": {"C": [1.0]}, "cv": 1000}, "splits"),
        ({"grid": {"C": [-1.0]}}, "C=-1.0"),
    ],
)
def test_bad_arguments_are_named(given, word: str) -> None:  # type: ignore[no-untyped-def]
    X, y = data()
    with pytest.raises((TypeError, ValueError), match=word):
        mercer.tune(clone(SVC()), X, y, **given)


def test_y_is_needed() -> None:
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        mercer.tune(SVC(), data()[0])


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_label_is_named(missing: object) -> None:
    X, y = data()
    labels = np.where(y == 1, "yes", "no").astype(object)
    labels[4] = missing
    for fit in (lambda: mercer.tune(SVC(), X, labels, grid={"C": [1.0, 2.0]}), lambda: TunedSVC().fit(X, labels)):
        with pytest.raises(ValueError, match=r"y contains NaN or None: y\[4\]="):
            fit()


def test_progress_tells_the_time_left(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.arange(0.0, 1e6, 0.4))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    X, y = data()
    mercer.tune(SVC(), X, y, grid={"C": [0.1, 1.0, 10.0]}, verbose=True, skip=False, refit=False, n_jobs=1)
    told = capsys.readouterr().out
    assert "of 15 fits" in told
    assert "left" in told
