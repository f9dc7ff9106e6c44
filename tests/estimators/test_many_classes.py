"""Hundreds of classes one against one: tens of thousands of pairs are arrays, not objects."""

import pickle

import numpy as np
import pytest
from sklearn.svm import SVC as Peer

import mercer
from mercer import SVC
from mercer.certificates.certificate import Certificate
from mercer.estimators.fitting.families import pairwise
from mercer.solvers.dual import pairs
from reference.child import run_python


def groups(k, rows, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(k), rows)
    return rng.normal(size=(k, 4))[y] + 0.3 * rng.normal(size=(k * rows, 4)), y


@pytest.fixture(scope="module")
def fitted():
    X, y = groups(40, 4)
    return SVC(C=2.0, gamma=0.5, tol=1e-6).fit(X, y), X, y


def test_the_machine_is_the_one_of_libsvm(fitted):
    model, X, y = fitted
    peer = Peer(C=2.0, gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(model.support_, peer.support_)
    np.testing.assert_allclose(model.dual_coef_, peer.dual_coef_, atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-4)


def test_the_certificate_is_the_total_of_its_parts(fitted):
    model, _, _ = fitted
    found, parts = model.certificate_, list(model.certificate_.parts)
    assert len(parts) == 780
    assert all(type(part) is Certificate for part in parts)
    total = Certificate.total(parts)
    assert (total.violation, total.kkt, total.b, total.worst) == (found.violation, found.kkt, found.b, found.worst)
    assert (total.gap_measures, total.precision) == (found.gap_measures, found.precision)
    np.testing.assert_allclose([total.primal, total.dual], [found.primal, found.dual], rtol=1e-13)
    assert abs(total.gap - found.gap) < 1e-12 * found.primal  # the difference of the sums, where that is larger
    assert found.parts[-1] == parts[-1]
    assert found.parts[2:4] == tuple(parts[2:4])


@pytest.mark.parametrize("how", ["file", "pickle"])
def test_it_is_the_same_after_a_journey(fitted, how, tmp_path):
    model, X, _ = fitted
    if how == "file":
        mercer.save(model, tmp_path / "many.mercer")
        loaded = mercer.load(tmp_path / "many.mercer")
    else:
        loaded = pickle.loads(pickle.dumps(model))
    assert loaded.certificate_ == model.certificate_
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_pairs_that_go_elsewhere_are_told_with_the_others(tmp_path, monkeypatch):
    X, y = groups(6, 10)
    X, y = np.concatenate([X, X + 0.1]), np.concatenate([y, np.minimum(y, 2)])  # classes of 20, 20, 50, 10, 10, 10
    at_once = SVC(tol=1e-6).fit(X, y)
    monkeypatch.setattr(pairs, "_MOST_VARIABLES", 60)
    mixed = SVC(tol=1e-6, max_iter=10**6).fit(X, y)
    assert len(mixed.certificate_.parts.others) == 2  # of 70 variables each
    np.testing.assert_allclose(mixed.dual_coef_, at_once.dual_coef_, atol=1e-4)
    mercer.save(mixed, tmp_path / "mixed.mercer")
    assert mercer.load(tmp_path / "mixed.mercer").certificate_ == mixed.certificate_


def test_values_of_pairs_are_not_kept_for_all_samples(fitted, monkeypatch):
    model, X, _ = fitted
    whole, scores = model.predict(X), model.decision_function(X)
    monkeypatch.setattr(pairwise, "row_blocks", lambda n, _: (slice(i, min(n, i + 7)) for i in range(0, n, 7)))
    np.testing.assert_array_equal(model.predict(X), whole)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-12)


def test_pairs_beyond_the_budget_are_refused_with_the_remedy():
    X, y = groups(300, 2)
    with pytest.raises(MemoryError, match=r"300 classes make 44850 pairs.*cache_size=10 .*multiclass='ovr'"):
        SVC(cache_size=10).fit(X, y)
    assert SVC(cache_size=10, multiclass="ovr").fit(X[:50], y[:50]).converged_


def test_three_hundred_classes_of_one_row_fit_the_budget():
    code = """
        import resource, numpy as np, mercer
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 4))
        mercer.SVC().fit(X[:30], np.arange(30) % 3)
        before = peak()
        model = mercer.SVC(cache_size=50).fit(X, np.arange(300))
        assert (model.predict(X) == np.arange(300)).all()
        print(peak() - before)
    """
    assert float(run_python(code)) < 50 + 20
