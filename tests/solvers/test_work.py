"""Work of a fit, counted instead of timed: kernel values, passes over rows, certificates.

A budget is the count at the time of writing and a tenth more: instruction sets round sums differently, which may move a
working set. One that shrinks for good should be lowered; one that is exceeded is a loss of speed on every machine.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits

from mercer import SVC
from mercer.places.host.kernel_matrix import KernelMatrix
from mercer.places.host.tiled_field import TiledField
from mercer.solvers.dual import certified, pairs


@dataclass
class Work:
    values: int = 0  # kernel values computed
    passes: int = 0  # changes of β that were summed over all active rows
    certificates: int = 0


@pytest.fixture
def work(monkeypatch):
    """Return the counts over all Gram matrices."""
    spent = Work()

    def count(self, new):
        spent.values += new - vars(self).get("evaluations", 0)
        vars(self)["evaluations"] = new

    def counted(function, name):
        def call(*given, **named):
            setattr(spent, name, getattr(spent, name) + 1)
            return function(*given, **named)

        return call

    monkeypatch.setattr(
        KernelMatrix, "evaluations", property(lambda self: vars(self)["evaluations"], count), raising=False
    )
    monkeypatch.setattr(TiledField, "move", counted(TiledField.move, "passes"))
    monkeypatch.setattr(certified, "certify_dual", counted(certified.certify_dual, "certificates"))
    monkeypatch.setattr(pairs, "pair_certificates", counted(pairs.pair_certificates, "certificates"))
    return spent


def clouds(n, d=12):
    """Two classes of four clouds each, with 5 % of the labels wrong."""
    rng = np.random.default_rng(0)
    centres, cloud = 1.2 * rng.normal(size=(8, d)), rng.integers(8, size=n)
    X = centres[cloud] + rng.normal(size=(n, d))
    return X, np.where((cloud % 2 == 0) ^ (rng.random(n) < 0.05), 1, -1)


def uneven(n):
    """Standardised columns of which some are nearly always the same: a few rows are far from all others."""
    X, y = clouds(n)
    rng = np.random.default_rng(1)
    rare = (rng.random((n, 20)) < 0.003) * rng.uniform(1.0, 5.0, size=(n, 20))
    X = np.hstack([X, rare])
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def texts(n, words=3000, classes=2):
    """Rows of about thirty words, weighted and of length 1; each class prefers different words."""
    rng = np.random.default_rng(2)
    y = rng.integers(classes, size=n)
    common = 1.0 / np.arange(1, words + 1)
    chances = [common * np.exp(rng.normal(size=words)) for _ in range(classes)]
    rows = [rng.choice(words, 30, replace=False, p=chances[k] / chances[k].sum()) for k in y]
    X = sp.csr_array(
        (rng.uniform(0.5, 1.5, size=30 * n), (np.repeat(np.arange(n), 30), np.concatenate(rows))), (n, words)
    )
    return sp.csr_array(X / np.sqrt(X.multiply(X).sum(axis=1))[:, None]), y


def single(problem):
    X, y = problem
    return X.astype(np.float32), y


def standardised(X, y):
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9), y


def cancer():
    return standardised(*load_breast_cancer(return_X_y=True))


def digits():
    return standardised(*load_digits(return_X_y=True))


PROBLEMS = {
    "dense float64": (lambda: clouds(4000), {"C": 1.0}, Work(16_010_000, 7, 1)),
    "dense float32": (lambda: single(clouds(4000)), {"C": 1.0}, Work(15_990_000, 7, 1)),
    "standardised, with rows far out": (lambda: uneven(4000), {"C": 10.0}, Work(21_140_000, 8, 1)),
    "standardised, small": (
        lambda: standardised(*load_breast_cancer(return_X_y=True)),
        {"C": 10.0},
        Work(414_000, 0, 1),
    ),
    "sparse": (lambda: texts(3500), {"C": 10.0, "gamma": 0.5}, Work(9_360_000, 5, 1)),
    "several classes": (digits, {"C": 10.0}, Work(2_290_000, 0, 1)),
    "several classes, sparse": (lambda: texts(1500, classes=5), {"C": 1.0, "gamma": 0.5}, Work(1_485_000, 0, 1)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_fit_stays_within_its_budget(name, work):
    make, parameters, budget = PROBLEMS[name]
    model = SVC(**parameters, n_jobs=2).fit(*make())
    assert model.converged_
    # Far less than the budget is either worth a lower one, or work that is no longer counted.
    assert 0.5 * budget.values < work.values <= budget.values
    assert work.passes <= budget.passes
    assert work.certificates <= budget.certificates


def test_more_work_is_counted(work):
    SVC(C=1.0).fit(*clouds(3000))
    once = Work(**vars(work))
    SVC(C=1.0, tol=1e-9).fit(*clouds(3000))
    assert work.values > 2 * once.values
    assert work.passes > 2 * once.passes
    assert work.certificates > once.certificates >= 1
