"""A fit that fails leaves the estimator as it was, and copies made during a fit are whole: for everything with a fit.

The classes are found by inspection, so that a new one is tried too. A fit is stopped at chosen calls of Python
functions by a profile function that raises KeyboardInterrupt there, as Ctrl-C does.
"""

from __future__ import annotations

import inspect
import pickle
import sys
import threading
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import mercer
import mercer.calibration
import mercer.estimators.gaussian_process
import mercer.estimators.unsupervised
import mercer.inspection.features

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
PUBLIC = (mercer, mercer.features, mercer.calibration, mercer.estimators.gaussian_process, mercer.unsupervised)
CLASSES = sorted(
    {
        found
        for package in PUBLIC
        for name in package.__all__
        if inspect.isclass(found := getattr(package, name)) and hasattr(found, "fit")
    },
    key=lambda cls: cls.__name__,
)
GIVEN = {
    "Tabular": {"estimator": mercer.SVC()},
    "TunedSVC": {"grid": {"C": [1.0, 10.0]}, "cv": 2},
    "TunedSVR": {"grid": {"C": [1.0, 10.0]}, "cv": 2},
    "TunedOneClassSVM": {"grid": {"nu": [0.2, 0.5]}, "cv": 2},
    "CalibratedClassifier": {"cv": 2},
    "CalibratedRegressor": {"cv": 2},
    "GaussianSeries": {"n_terms": 3},
    "NystromRLS": {"n_landmarks": 10, "random_state": 0},
    "NystromRLSClassifier": {"n_landmarks": 10, "random_state": 0},
    "PegasosSVC": {"random_state": 0},
}


def made(cls: type) -> object:
    return cls(**GIVEN.get(cls.__name__, {}))


def targets(model, sign: float):
    """Targets that `fit` takes, other ones for the other sign."""
    if isinstance(model, mercer.KernelCCA):
        return np.column_stack([X[:, 0] + sign, X[:, 1] ** 2])
    if is_classifier(model):
        return (sign * X[:, 0] > 0.2).astype(int)
    return sign * X[:, 0] + X[:, 1] ** 2


def calls_of_fit(model, X, y, stop_at: int | None = None) -> tuple[list[tuple[str, object]], bool]:
    """Fit, with an interrupt at call number `stop_at`; the calls of Python functions, and whether that ended it."""
    seen: list[tuple[str, object]] = []
    stopped = False

    def watch(frame, event, argument) -> None:
        if event != "call":
            return
        name = frame.f_code.co_name
        seen.append((name, frame.f_locals.get("model") if name == "adopt_fit" else None))
        if len(seen) - 1 == stop_at:
            raise KeyboardInterrupt

    before = sys.getprofile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.setprofile(watch)
        try:  # not `suppress`, whose end is a call too
            model.fit(X, y)
        except KeyboardInterrupt:
            stopped = True
        finally:
            sys.setprofile(before)
    return seen, stopped


def test_all_estimators_are_found() -> None:
    names = {cls.__name__ for cls in CLASSES}
    assert names >= {*mercer.estimators.__all__, "Tabular", "TunedSVC", "CalibratedRegressor", "Nystrom", "KernelPCA"}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the end of a generator is a call too
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_fit_that_is_stopped_leaves_the_estimator_as_it_was(cls: type) -> None:
    model = made(cls)
    calls_of_fit(model, X, targets(model, 1.0))
    other, _ = calls_of_fit(clone(model), 2 * X[::-1], targets(model, -1.0))
    adopted = [k for k, (name, _) in enumerate(other) if name == "adopt_fit"]
    assert adopted, "it does not fit a copy"
    last = adopted[-1]
    before = dict(vars(model))
    # Late calls most of all: the last one adopts what was learnt.
    for stop_at in {*np.linspace(0, last, 6, dtype=int).tolist(), *range(max(0, last - 3), last), *adopted[-3:]}:
        calls, stopped = calls_of_fit(model, 2 * X[::-1], targets(model, -1.0), int(stop_at))
        # There may be fewer calls this time, and Python ignores what the end of a generator raises.
        if not stopped or any(who is model for _, who in calls[:-1]):
            model.__dict__ = dict(before)
            continue
        assert vars(model).keys() == before.keys()
        changed = [name for name, value in vars(model).items() if value is not before[name]]
        assert not changed, f"stopped at call {stop_at} of {last}"
    whole, _ = calls_of_fit(model, 2 * X[::-1], targets(model, -1.0))
    assert [who for name, who in whole if name == "adopt_fit"][-1] is model, "the last step is to adopt the copy"


def answers(model) -> np.ndarray:
    if hasattr(model, "transform"):
        return model.transform(X)
    if hasattr(model, "predict_proba"):
        return np.column_stack([model.predict_proba(X), model.p_values(X)])
    return np.column_stack(model.predict_interval(X, 0.3))


@pytest.mark.parametrize(
    "model",
    [
        mercer.CalibratedRegressor(mercer.SVR(C=5.0), cv=3),
        mercer.CalibratedClassifier(mercer.SVC(C=5.0), cv=3),
        mercer.features.Nystrom(n_components=20),
        mercer.tabular(mercer.KernelPCA(2)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_copies_made_during_fits_are_of_one_fit(model) -> None:
    tables = [(X, targets(model, 1.0)), (10 * X[::-1], targets(model, -1.0))]
    wanted = [answers(clone(model).fit(*table)) for table in tables]
    model.fit(*tables[0])
    pickled, ended = [], threading.Event()

    def look() -> None:
        while not ended.is_set():
            pickled.append(pickle.dumps(model))

    looker = threading.Thread(target=look)
    looker.start()
    try:
        for k in range(12):
            model.fit(*tables[(k + 1) % 2])
    finally:
        ended.set()
        looker.join()
    for one in pickled[:: max(1, len(pickled) // 200)]:
        found = answers(pickle.loads(one))
        assert any(np.array_equal(found, want) for want in wanted)
