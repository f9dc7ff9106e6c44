"""Machines of many classes, whose pairs use the vectors near their own classes: whole in every use, and proven."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer.files.export.c.export import export_c
from mercer.inspection.compression import class_groups
from mercer.places.expansion import Expansion
from reference import exact_expansions as exact

K = 14
RNG = np.random.default_rng(0)
CENTRES = 4.0 * RNG.normal(size=(K, 3))
y = np.repeat(np.arange(K), 15)
X = CENTRES[y] + 1.2 * RNG.normal(size=(len(y), 3))


@pytest.fixture(scope="module")
def model():
    return mercer.SVC(C=5.0, gamma=0.1).fit(X, y)


@pytest.fixture(scope="module")
def small(model):
    return mercer.compress(model, 60, X=X)


def test_every_pair_uses_the_vectors_of_two_groups(model, small):
    table = small._expansion_.coefficients
    assert sp.issparse(table)
    assert table.shape == (60, K * (K - 1) // 2)
    served = np.diff(table.indptr)
    assert served.max() <= class_groups._PAIRS_PER_VECTOR
    assert np.count_nonzero(np.diff(np.sort(served))) <= 2  # groups of equal size, and one that is left
    assert np.mean(small.predict(X) == model.predict(X)) > 0.97
    assert len(small._expansion_._evaluation(None)._segments) == 2


@pytest.mark.thorough
def test_few_vectors_or_no_samples_leave_every_pair_all_of_them(model):
    assert not sp.issparse(mercer.compress(model, 12, X=X)._expansion_.coefficients)
    assert not sp.issparse(mercer.compress(model, 60)._expansion_.coefficients)
    assert mercer.compress(mercer.compress(model, 60, X=X), 40, X=X).compression_.n_vectors == 40


def test_the_proof_is_about_every_pair(model, small):
    report = small.compression_
    for pair in (0, 50):
        true = exact.distance(*(_alone(m._expansion_, pair) for m in (model, small)))
        assert true <= report.error[pair] <= true * (1 + 1e-8)
    rows = np.vstack([X + 0.3 * RNG.normal(size=X.shape), 100 * RNG.normal(size=(50, 3))])
    f, g = (m._expansion_(rows) for m in (model, small))
    assert (np.abs(f - g) <= report.bound(rows)).all()
    kept = report.keeps_label(rows)
    assert (model.predict(rows) == small.predict(rows))[kept].all()


def test_it_saves_exports_and_is_compressed_again(small, tmp_path):
    mercer.save(small, tmp_path / "small.mercer")
    for again in (mercer.load(tmp_path / "small.mercer"), pickle.loads(pickle.dumps(small))):
        np.testing.assert_array_equal(again.decision_function(X), small.decision_function(X))
        np.testing.assert_array_equal(again.compression_.error, small.compression_.error)
    assert "small_predict" in export_c(small, name="small")
    np.testing.assert_allclose(small.explain(X[:2], X[:3]).values.shape[:2], (2, 3))


def _alone(expansion, pair):
    table = exact.dense(expansion.coefficients)[:, [pair]]
    used = np.flatnonzero(table[:, 0])
    return Expansion(expansion.kernel, expansion.vectors[used], table[used], expansion.b[[pair]])
