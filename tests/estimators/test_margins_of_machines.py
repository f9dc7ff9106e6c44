"""Which machines tell their margins, and what is printed, refused and kept of them."""

import math

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_iris

import mercer
from mercer import SVC
from mercer.files.libsvm_estimator import estimator_from_libsvm, libsvm_from_estimator
from mercer.problems.margins import Margins
from reference.problems import gram_matrix

TOL = 1e-10
IRIS, SPECIES = load_iris(return_X_y=True)
CANCER, BENIGN = load_breast_cancer(return_X_y=True)
CANCER = ((CANCER - CANCER.mean(axis=0)) / CANCER.std(axis=0))[:200]
BENIGN = BENIGN[:200]


def test_other_samples_have_margins_but_no_standing():
    model = SVC().fit(CANCER, BENIGN)
    margins = model.margins(CANCER[:50], BENIGN[:50])
    assert len(margins.geometric_margins) == 50
    assert "vectors" not in str(margins)
    assert "standing" not in margins.to_frame().columns
    for name in ("free", "bounded", "other"):
        with pytest.raises(ValueError, match="only training samples"):
            getattr(margins, name)
    other = CANCER.copy()
    other[model.support_[0]] += 1.0
    assert model.margins(other, BENIGN).standings is None


def test_labels_and_lengths_are_checked():
    model = SVC().fit(CANCER, BENIGN)
    with pytest.raises(ValueError, match=r"y\[19\]=7 is not one of the classes \[0, 1\]"):
        model.margins(CANCER, np.where(BENIGN == 1, 7, 0))
    with pytest.raises(ValueError, match="inconsistent"):
        model.margins(CANCER, BENIGN[:-1])


def test_a_class_of_weight_zero_has_no_margins():
    """Without its rows the margins are those of a fit without the class."""
    y, weight = np.arange(len(CANCER)) % 3, np.ones(len(CANCER))
    weight[y == 2] = 0.0
    with pytest.warns(UserWarning, match="weight 0"):
        model = SVC(C=0.1).fit(CANCER, y, sample_weight=weight)
    with pytest.raises(ValueError, match=r"y\[2\]=2 is not one of the classes \[0, 1\].*all had weight 0.*drop its"):
        model.margins(CANCER, y)
    with pytest.raises(ValueError, match="all had weight 0"):
        model.calibrate(CANCER, y)
    kept = y < 2
    fewer = SVC(C=0.1).fit(CANCER[kept], y[kept])
    expected = y[kept] * 2 - 1
    found = model.margins(CANCER[kept], y[kept])
    np.testing.assert_allclose(
        found.functional_margins, expected * fewer.decision_function(CANCER[kept]), rtol=1e-9, atol=1e-12
    )


def test_data_frames():
    model = SVC().fit(CANCER, BENIGN)
    margins = model.margins(CANCER, BENIGN)
    frame = margins.to_frame()
    np.testing.assert_array_equal(frame["label"], BENIGN)
    np.testing.assert_array_equal(frame["geometric_margin"], margins.geometric_margins)
    np.testing.assert_array_equal(frame.index[frame["standing"] == "bounded"], margins.bounded)
    several = SVC().fit(IRIS, SPECIES).margins(IRIS, SPECIES)
    np.testing.assert_array_equal(several.to_frame()["geometric_margin"], several.geometric_margins)


def test_what_is_printed():
    margins = SVC().fit(CANCER, BENIGN).margins(CANCER, BENIGN)
    assert isinstance(margins, Margins)
    for word in ("functional margin", "geometric margin", "rho", "Σα − ΣCξ", "slacks", "errors", "free", "b  "):
        assert word in str(margins)
    several = SVC().fit(IRIS, SPECIES).margins(IRIS, SPECIES)
    assert "1 against 2" in str(several)
    assert repr(several).startswith("SeveralMargins(150 samples, 3 planes")


def test_arrays_cannot_be_changed():
    margins = SVC().fit(CANCER, BENIGN).margins(CANCER, BENIGN)
    for array in (margins.decision_values, margins.functional_margins, margins.slacks):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@pytest.mark.parametrize(("X", "y"), [(CANCER, BENIGN), (IRIS, SPECIES)], ids=["two classes", "several"])
def test_a_file_keeps_what_the_machine_tells(tmp_path, X, y):
    model = SVC(warm_start=True).fit(X, y)
    mercer.save(model, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(loaded.rkhs_norm_, model.rkhs_norm_)
    assert str(loaded.margins(X, y)) == str(model.margins(X, y))
    assert str(loaded.nearest_points()) == str(model.nearest_points())


@pytest.mark.parametrize(("X", "y"), [(CANCER, BENIGN), (IRIS, SPECIES)], ids=["two classes", "several"])
def test_machines_without_duals(X, y):
    model = mercer.RLSClassifier(lam=0.1, gamma=0.1).fit(X, y)
    margins = model.margins(X, y)
    expansion = model._expansion_
    K = gram_matrix("rbf", expansion.vectors, gamma=0.1)
    norms = np.sqrt(np.einsum("ik,ij,jk->k", expansion.coefficients, K, expansion.coefficients))
    np.testing.assert_allclose(np.atleast_1d(model.rkhs_norm_), norms)
    f = model._decision(X)
    np.testing.assert_allclose(model.signed_distance(X).reshape(f.shape), f / norms)
    parts = [margins] if len(norms) == 1 else margins
    for k, (part, norm) in enumerate(zip(parts, norms, strict=True)):
        s = np.where(y == (1 if len(norms) == 1 else k), 1, -1)
        np.testing.assert_allclose(part.geometric_margins, s * f[:, k] / norm)
        assert part.alpha_sum is part.standings is part.b_interval is None
        assert list(part.inverse_rho_squared) == ["|w|²"]
        assert part.classes[0] == (0 if len(norms) == 1 else "the rest")
        with pytest.raises(ValueError, match="no α"):
            _ = part.free
        assert "vectors" not in str(part)


def test_a_model_of_another_program_tells_its_margins(tmp_path):
    """Its classes stand in the order of the file, and it has no status of its duals."""
    y = np.where(BENIGN == 1, -1, 1)
    trained = SVC(gamma=0.1).fit(CANCER, y)
    model = estimator_from_libsvm(libsvm_from_estimator(trained, label_order=[-1, 1]))
    assert model.classes_.tolist() == [1, -1]
    mine, theirs = model.margins(CANCER, y), trained.margins(CANCER, y)
    np.testing.assert_allclose(mine.functional_margins, theirs.functional_margins)
    assert mine.rkhs_norm == pytest.approx(theirs.rkhs_norm)
    assert mine.standings is None


def test_hulls_with_2_norm_slack_are_those_of_a_hard_margin_with_a_coordinate_per_sample():
    C = 0.7
    X, y = CANCER[:60], BENIGN[:60]
    own = np.hstack([X, np.eye(len(X)) / math.sqrt(C)])  # ⟨x, z⟩ + δ/C
    hard = SVC(C=np.inf, kernel="linear", tol=1e-9).fit(own, y).nearest_points()
    soft = SVC(C=C, slack="l2", kernel="linear", tol=1e-9).fit(X, y).nearest_points()
    assert soft.distance == pytest.approx(hard.distance, rel=1e-6)
    np.testing.assert_allclose(soft.points, hard.points[:, : X.shape[1]], atol=1e-5)


def test_machines_without_hulls_say_why():
    model = SVC(kernel="linear").fit(CANCER, BENIGN)
    model.dual_coef_ = np.abs(model.dual_coef_)
    with pytest.raises(ValueError, match="needs a machine with bias"):
        model.nearest_points()
    several = SVC(multiclass="crammer_singer").fit(IRIS, SPECIES)
    with pytest.raises(ValueError, match=r"crammer_singer.*jointly"):
        several.nearest_points()


# --- linear machines --------------------------------------------------------------------------------------------------


def test_a_linear_machine_tells_what_its_kernel_twin_does():
    kernel = SVC(C=0.5, kernel="linear", tol=1e-8).fit(CANCER, BENIGN)
    linear = mercer.LinearSVC(C=0.5, loss="hinge", tol=1e-8).fit(CANCER, BENIGN)
    assert linear.rkhs_norm_ == pytest.approx(kernel.rkhs_norm_, rel=1e-6)
    np.testing.assert_allclose(linear.signed_distance(CANCER), kernel.signed_distance(CANCER), atol=1e-5)
    mine, theirs = (model.margins(CANCER, BENIGN) for model in (linear, kernel))
    np.testing.assert_allclose(mine.geometric_margins, theirs.geometric_margins, atol=1e-5)
    assert mine.classes == theirs.classes
    assert mine.rho == pytest.approx(theirs.rho, rel=1e-6)
    assert mine.b == pytest.approx(theirs.b, abs=1e-5)
    assert mine.n_errors == theirs.n_errors
    assert str(mine).startswith("200 samples, 1 (f > 0) against 0")
    assert mine.alpha_sum is None
    with pytest.raises(ValueError, match="has no α"):
        _ = mine.free


def test_planes_of_a_linear_machine_with_several_classes():
    model = mercer.LinearSVC().fit(IRIS, SPECIES)
    margins = model.margins(IRIS, SPECIES)
    assert len(margins) == 3
    np.testing.assert_allclose(model.rkhs_norm_, np.sqrt((model.coef_**2).sum(axis=1)))
    np.testing.assert_allclose(model.signed_distance(IRIS), model.decision_function(IRIS) / model.rkhs_norm_)
    for k, part in enumerate(margins):
        assert part.classes == ("the rest", k)
        np.testing.assert_allclose(part.signed_distances, model.signed_distance(IRIS)[:, k])
    assert margins.n_errors == (model.predict(IRIS) != SPECIES).sum()
    two = mercer.LinearSVC(multiclass="crammer_singer", bias=False).fit(CANCER, BENIGN)
    assert two.margins(CANCER, BENIGN).rho == pytest.approx(1 / two.rkhs_norm_)


# --- every classifier -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [BENIGN, np.arange(len(BENIGN)) % 3], ids=["two", "three"])
@pytest.mark.parametrize("name", [n for n in mercer.estimators.__all__ if is_classifier(getattr(mercer, n)())])
def test_every_classifier_tells_its_margins(name, labels):
    model = getattr(mercer, name)().fit(CANCER, labels)
    f = model.decision_function(CANCER)
    planes = 1 if len(set(labels)) == 2 else 3
    assert np.shape(model.rkhs_norm_) == (() if planes == 1 else (3,))
    margins = model.margins(CANCER, labels)
    if planes == 1:
        np.testing.assert_allclose(model.signed_distance(CANCER), f / model.rkhs_norm_)
        np.testing.assert_allclose(margins.functional_margins, np.where(labels == 1, f, -f))
        assert margins.rho == pytest.approx(1 / model.rkhs_norm_)
    else:
        assert model.signed_distance(CANCER).shape == (len(labels), 3)
        assert len(margins) == 3


def test_margins_are_those_of_the_fit_whatever_is_set_since(tmp_path):
    """Each formula for 1/ρ² differs from |w|² by no more than the gap, by the slack, bias and C that the fit had."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 3))
    y = X[:, 0] + 0.4 * rng.normal(size=50) > 0
    for options, others in (
        ({}, {"slack": "l2"}),
        ({"slack": "l2"}, {"slack": "l1"}),
        ({}, {"bias": False, "C": np.inf}),
    ):
        model = mercer.SVC(tol=1e-9, **options).fit(X, y)
        before = model.margins(X, y).inverse_rho_squared
        mercer.save(model, tmp_path / "m.mercer")
        for one in (model, mercer.load(tmp_path / "m.mercer")):
            after = one.set_params(**others).margins(X, y).inverse_rho_squared
            assert after == before
            assert len(after) == 2
            assert np.ptp(list(after.values())) <= 2 * model.certificate_.gap + 1e-9


PAIRS = ((0, 1), (0, 2), (1, 2))


def rbf(A, B):
    """k(a, b) with γ = ½ for all pairs of rows."""
    return np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(axis=2))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("bias", [True, "regularized"])
@pytest.mark.parametrize("multiclass", ["crammer_singer", "weston_watkins"])
def test_planes_of_a_joint_machine_are_where_two_functions_are_equal(tmp_path, multiclass, bias, compressed):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2, [-0.4, 0.6])]
    model = mercer.SVC(multiclass=multiclass, bias=bias, C=3.0, gamma=0.5).fit(X, y)
    model = mercer.compress(model, 10) if compressed else model
    f = model.decision_function(X)
    g = model.function_
    squares = [[p.coefficients @ rbf(p.vectors, q.vectors) @ q.coefficients for p in g] for q in g]
    norms = [math.sqrt(squares[a][a] + squares[b][b] - 2 * squares[a][b]) for a, b in PAIRS]
    expected = np.column_stack([f[:, a] - f[:, b] for a, b in PAIRS]) / norms
    np.testing.assert_allclose(model.signed_distance(X), expected, rtol=1e-6)
    margins = model.margins(X, y)
    codes = np.searchsorted(model.classes_, y)
    others = np.where(np.arange(3) == codes[:, None], np.inf, f[np.arange(60), codes][:, None] - f)
    np.testing.assert_allclose(margins.functional_margins, others.min(axis=1), atol=1e-12)
    np.testing.assert_allclose(margins.slacks, np.maximum(0, 1 - others.min(axis=1)), atol=1e-12)
    smallest = [min(s * row[k] for k, s in own) for row, own in zip(expected, map(planes_of, codes), strict=True)]
    np.testing.assert_allclose(margins.geometric_margins, smallest, rtol=1e-6)
    np.testing.assert_array_equal(margins.errors, model.predict(X) != y)
    assert margins[1].classes == ("c", "a")
    assert margins[1].b == pytest.approx(model.intercept_[0] - model.intercept_[2])
    with pytest.raises(ValueError, match="no α"):
        _ = margins[0].free
    mercer.save(model, tmp_path / "m.mercer")
    assert str(mercer.load(tmp_path / "m.mercer").margins(X, y)) == str(margins)


def planes_of(code):
    """(plane, sign) of each plane that involves a class."""
    return [(k, 1 if code == a else -1) for k, (a, b) in enumerate(PAIRS) if code in (a, b)]


def test_joint_margins_need_the_vectors():
    K = gram_matrix("rbf", IRIS, gamma=0.5)
    model = mercer.SVC(multiclass="crammer_singer", kernel="precomputed").fit(K, SPECIES)
    with pytest.raises(ValueError, match="not kept for a precomputed kernel"):
        model.margins(K, SPECIES)


@pytest.mark.parametrize("bias", [True, False])
def test_insight_of_a_joint_machine_has_no_bound_that_assumes_two_classes(bias):
    X = np.array([[0.0, 3.0], [0.1, 3.1], [3.0, 0.0], [3.1, 0.1], [-3.0, -3.0], [-3.1, -3.0]])
    y = np.repeat([0, 1, 2], 2)
    model = mercer.SVC(multiclass="crammer_singer", C=1e3, kernel="linear", bias=bias).fit(X, y)
    found = model.insight(X, y)
    assert len(found) == 3
    assert max(part.risks["hinge"] for part in found) < 1e-4
    assert all(set(part.bounds) == {"soft margin", "linear rules"} for part in found)


def test_a_linear_machine_remembers_how_its_classes_were_trained(tmp_path):
    """Parameters are for the next fit: margins are those of the fit there is, also after a file."""
    joint = mercer.LinearSVC(multiclass="crammer_singer", bias="regularized").fit(IRIS, SPECIES)
    apart = mercer.LinearSVC(bias="regularized").fit(IRIS, SPECIES)
    seen = [part.rho for part in apart.margins(IRIS, SPECIES)]
    joint.multiclass, apart.multiclass = "ovr", "crammer_singer"
    mercer.save(joint, tmp_path / "joint.mercer")
    w = np.column_stack([joint.coef_, joint.intercept_])
    for model in (joint, mercer.load(tmp_path / "joint.mercer")):
        f = IRIS @ w[:, :-1].T + w[:, -1]
        for k, (a, b) in enumerate(PAIRS):
            distance = (f[:, a] - f[:, b]) / np.linalg.norm(w[a, :-1] - w[b, :-1])
            np.testing.assert_allclose(model.signed_distance(IRIS)[:, k], distance)
        assert [part.classes for part in model.margins(IRIS, SPECIES)] == [(1, 0), (2, 0), (2, 1)]
    assert [part.rho for part in apart.margins(IRIS, SPECIES)] == seen


@pytest.mark.parametrize("note", [{"multi_class": "other"}, {"multi_class": ["ovr"]}, {}, "ovr"])
def test_a_false_note_of_a_linear_machine_is_not_saved(note, tmp_path):
    model = mercer.LinearSVC().fit(IRIS, SPECIES)
    model._trained_as_ = note
    with pytest.raises((TypeError, ValueError), match="_trained_as_ must be the multiclass of a fit"):
        mercer.save(model, tmp_path / "m.mercer")
