"""PegasosSVC on a stream: chunks, classes that come later, files, and what a stream does not go on as."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris

import mercer
from mercer import PegasosSVC
from mercer.kernels import Gaussian, Linear
from mercer.solvers.pegasos.iterates import draw_pass
from reference import pegasos as printed
from reference.pegasos import noisy

LAM = 0.03


def chunks(X, y, size=40):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(y), size)]


@pytest.mark.parametrize(
    ("kernel", "project"),
    [("linear", False), ("linear", True), (Linear(), False), (Linear(), True), (Gaussian(gamma=0.2), False)],
    ids=lambda value: str(value),
)
def test_a_stream_makes_the_printed_steps_over_its_chunks(kernel, project):
    """Chunk after chunk is one long list of draws for the algorithm on all rows."""
    X, y = noisy(120)
    model = PegasosSVC(LAM, kernel=kernel, bias=False, average="all", project=project, random_state=5)
    draws, order, at = [], [], 0
    learner = clone(model)
    for number, (A, labels) in enumerate(chunks(X, y)):
        learner.partial_fit(A, labels, [-1.0, 1.0])
        merged = mercer.samples.merging.merge(A, (labels > 0).astype(int), np.ones(len(A)), identical=True, n_threads=1)
        order += list(at + merged.rows[np.argsort(merged.member)])
        draws += list(at + draw_pass(learner._seed_, number, merged.weight))
        at += len(A)
    X, y = X[order], y[order]
    assert sorted(draws) == list(range(120))
    if isinstance(kernel, Gaussian):
        alpha = printed.output(printed.with_kernel(kernel(X), y, LAM, draws), "all")
        expected = kernel(X) @ alpha
    else:
        expected = X @ printed.output(printed.linear(X, y, LAM, draws, project)[0], "all")
    np.testing.assert_allclose(learner.decision_function(X), expected, rtol=1e-8, atol=1e-10)
    assert (learner.t_, learner.n_iter_) == (120, 3)
    whole = clone(model).fit_stream(iter(chunks(*noisy(120))), classes=[-1.0, 1.0])
    np.testing.assert_array_equal(whole.decision_function(X), learner.decision_function(X))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_stream_learns_digits_in_one_pass(kernel):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    model = PegasosSVC(1e-3, kernel=kernel, random_state=0)
    model.fit_stream(chunks(X[:1400], y[:1400]), classes=range(10))
    assert model.score(X[1400:], y[1400:]) > 0.88
    assert model.t_ == 1400
    sparse = clone(model).fit_stream([(sp.csr_array(A), b) for A, b in chunks(X[:1400], y[:1400])], classes=range(10))
    np.testing.assert_allclose(sparse.decision_function(X), model.decision_function(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_chunk_may_miss_classes_and_hold_no_weight(kernel):
    X, y = load_iris(return_X_y=True)
    model = PegasosSVC(1e-3, kernel=kernel, random_state=0)
    for label in (2, 0, 1, 0, 2, 1):  # one class at a time
        model.partial_fit(X[y == label], y[y == label], classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    assert len(model.intercept_) == 3
    before = model.decision_function(X)
    model.partial_fit(X, y, sample_weight=np.zeros(150))
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert (model.t_, model.n_iter_) == (300, 7)


def test_partial_fit_goes_on_where_fit_ended_also_from_a_file(tmp_path):
    X, y = noisy(80)
    for kernel in ("linear", "rbf"):
        model = PegasosSVC(LAM, kernel=kernel, max_iter=3, random_state=2).fit(X, y)
        mercer.save(model, tmp_path / "m.mercer")
        loaded = mercer.load(tmp_path / "m.mercer")
        others = [loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
        np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
        assert loaded.get_params()["alpha"] == LAM
        more, labels = noisy(40, seed=9)
        model.partial_fit(more, labels)
        assert model.t_ == 3 * 80 + 40
        assert not hasattr(model, "objective_")  # it was the objective on other samples
        for other in others:
            other.partial_fit(more, labels)
            np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))


def test_a_stream_that_fails_leaves_the_machine_as_it_was():
    X, y = noisy(80)
    model = PegasosSVC(LAM, max_iter=3, random_state=2).fit(X, y)
    before = model.decision_function(X)

    def broken():
        yield X[:40], y[:40]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        model.fit_stream(broken(), classes=[-1, 1])
    with pytest.raises(ValueError, match="not one of the classes"):
        model.partial_fit(X, y + 5)
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.t_ == 240


CHANGES = {
    "no bias any more": ({}, {"bias": False}, "bias=False was set"),
    "a bias all at once": ({"bias": False}, {"bias": "regularized"}, "bias='regularized' was set"),
    "a kernel": ({}, {"kernel": "rbf"}, "kernel='rbf' was set"),
    "another kernel": ({"kernel": "rbf"}, {"kernel": "laplacian"}, "kernel='laplacian' was set"),
    "w itself": ({"kernel": "rbf"}, {"kernel": "linear"}, "kernel='linear' was set"),
    "another gamma": ({"kernel": "rbf", "gamma": 1.0}, {"gamma": 2.0}, "kernel='rbf' was set"),
    "a kernel without bias": ({"kernel": "rbf"}, {"bias": False}, "bias=False was set"),
    "a kernel with bias": ({"kernel": "rbf", "bias": False}, {"bias": "regularized"}, "bias='regularized' was set"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_stream_does_not_go_on_as_another_machine(change):
    first, then, message = CHANGES[change]
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    machine = PegasosSVC(random_state=0, **first).partial_fit(X, y, classes=[0, 1])
    before = machine.decision_function(X)
    machine.set_params(**then)
    with pytest.raises(ValueError, match=message):
        machine.partial_fit(X, y)
    np.testing.assert_array_equal(machine.decision_function(X), before)
    machine.set_params(**{name: PegasosSVC(**first).get_params()[name] for name in then}).partial_fit(X, y)
    assert machine.t_ == 80
