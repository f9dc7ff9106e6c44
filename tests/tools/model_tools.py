"""Tools that judge or remake a trained machine, against refits of each fold and row, and against the definitions."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone

import mercer
from tools.answers import ROWS, NoSuchTool, asked, explained, values
from tools.rows import FOLDS, NAMES, NEW, POINTS, N, fitted, machine_in


def splits():
    return list(FOLDS.split(np.zeros(N)))


# --- compress ---------------------------------------------------------------------------------------------------------


def compress(row):
    model = fitted(row)
    small = mercer.compress(model, 6)
    report = machine_in(small).compression_
    assert report.n_vectors <= 6
    points = np.concatenate([ROWS, 3 * ROWS])
    given = mercer.unwrap(model).rows(row.given(points))
    off = np.abs(values(model, row, points) - values(small, row, points)) / mercer.unwrap(model).unit[1]
    bound = np.reshape(report.bound(given), off.shape)
    assert (off <= bound * (1 + 1e-9) + 1e-12).all(), (off.max(), bound.max())
    if row.classifies or row.target == "none":
        keeps = report.keeps_label(given)
        np.testing.assert_array_equal(small.predict(row.given(points))[keeps], model.predict(row.given(points))[keeps])


# --- calibrate --------------------------------------------------------------------------------------------------------


def refits(row):
    """(machine, train, test) of each fold; all that comes from y is learnt again, a search's choice too."""
    for train, test in splits():
        yield row.fit(row.make(), train), train, test


def platt(f, positive):
    """(a, b) of P = 1/(1 + exp(−(af + b))) for Platt's softened targets."""
    high, low = positive.sum(), (~positive).sum()
    target = np.where(positive, (high + 1) / (high + 2), 1 / (low + 2))

    def loss(ab):
        t = ab[0] * f + ab[1]
        return (np.logaddexp(0, t) - target * t).sum()

    def slope(ab):
        off = expit(ab[0] * f + ab[1]) - target
        return np.array([(off * f).sum(), off.sum()])

    return minimize(loss, [1.0, 0.0], jac=slope, method="BFGS", options={"gtol": 1e-9}).x


def calibrate(row):
    given = row.training()
    found = asked(row).calibrate(given, cv=FOLDS) if row.y is None else asked(row).calibrate(given, row.y, cv=FOLDS)
    if row.target == "none":
        calibrate_novelty(row, found)
    elif row.classifies:
        calibrate_classes(row, found)
    else:
        calibrate_numbers(row, found)


def held_out_values(row):
    f = None
    for model, train, test in refits(row):
        part = values(model, row, POINTS[test], train)
        f = np.zeros((N, part.shape[1])) if f is None else f
        f[test] = part
    return f


def calibrate_classes(row, found):
    """Platt's sigmoids of the values of refits; two classes have their probability from one of them."""
    f, labels = held_out_values(row), machine_in(fitted(row)).classes_
    pairs = [(None, k) for k in range(len(labels))]
    if len(labels) == 2:
        pairs = [(0, 1)]
    elif row.has("pairs"):
        pairs = [(j, i) for i in range(len(labels)) for j in range(i + 1, len(labels))]
    codes = np.searchsorted(labels, row.y)
    for p, (negative, positive) in enumerate(pairs):
        among = np.ones(N, dtype=bool) if negative is None else np.isin(codes, (negative, positive))
        a, b = platt(f[among, p], codes[among] == positive)
        if a < 0:
            assert found.curves_.slope[p] == 0
            continue
        np.testing.assert_allclose([found.curves_.slope[p], found.curves_.offset[p]], [a, b], atol=2e-4, rtol=2e-4)
    if len(labels) == 2:
        p = found.predict_proba(row.given(NEW))
        truth = expit(found.curves_.slope[0] * values(fitted(row), row, NEW)[:, 0] + found.curves_.offset[0])
        np.testing.assert_allclose(p, np.column_stack([1 - truth, truth]), atol=1e-9)


def calibrate_numbers(row, found, alpha=0.2):
    """CV+ as Barber and others (2021) write it."""
    below, above = [], []
    for model, train, test in refits(row):
        off = np.abs(row.y[test] - values(model, row, POINTS[test], train)[:, 0])
        at = values(model, row, NEW, train)[:, :1]
        below.append(at - off)
        above.append(at + off)
    low, high = found.predict_interval(row.given(NEW), alpha=alpha)
    below, above = (np.sort(np.hstack(ends), axis=1) for ends in (below, above))
    np.testing.assert_allclose(low, below[:, int(np.floor(alpha * (N + 1))) - 1], atol=1e-5)
    np.testing.assert_allclose(high, above[:, int(np.ceil((1 - alpha) * (N + 1))) - 1], atol=1e-5)


def calibrate_novelty(row, found):
    """A larger value of refits is never less normal, and no more than a tenth is between two marks."""
    p = found.predict_proba(row.given(np.concatenate([POINTS, NEW])))
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    f = values(fitted(row), row, np.concatenate([POINTS, NEW]))[:, 0]
    assert (np.diff(p[np.argsort(f), 1]) >= -1e-12).all()


def calibrate_weights(row):
    """With weights, as with rows that are there so many times; a row of weight 0 is not there."""
    counts = 1 + np.arange(N) % 3
    counts[4] = 0
    many = np.repeat(np.arange(N), counts)
    owner, target = asked(row), () if row.y is None else (row.y,)
    one = owner.calibrate(row.training(), *target, cv="held-out", sample_weight=counts)
    repeated = () if row.y is None else (row.y[many],)
    given = row.given(POINTS[many]) if row.form != "matrix" else row.given(POINTS[many], np.arange(N))
    two = owner.calibrate(given, *repeated, cv="held-out")
    for name in ("predict_proba", "p_values"):
        if hasattr(two, name):
            np.testing.assert_allclose(
                getattr(one, name)(row.given(NEW)), getattr(two, name)(row.given(NEW)), atol=1e-9
            )
    if not row.classifies and row.target != "none":
        for alpha in (0.1, 0.3):
            ends = [np.array(model.predict_interval(row.given(NEW), alpha=alpha)) for model in (one, two)]
            np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)


# --- leave_one_out, tune, paths, certify ------------------------------------------------------------------------------


def leave_one_out(row, every=7):
    found = mercer.leave_one_out(fitted(row), row.training(), row.y)
    model = row.make()
    if row.has("balanced"):  # weights of classes are chosen once, from all samples
        machine = fitted(row)
        model.set_params(class_weight=dict(zip(machine.classes_, machine.class_weight_, strict=True)))
    for i in range(0, N, every):
        rest = np.delete(np.arange(N), i)
        other = row.fit(clone(model), rest)
        np.testing.assert_allclose(
            np.atleast_1d(found.values[i]), values(other, row, POINTS[[i]], rest)[0], atol=2e-5, err_msg=str(i)
        )
        predicted = other.predict(row.given(POINTS[[i]], rest))[0]
        if row.classifies:
            assert found.predictions[i] == predicted
        else:
            np.testing.assert_allclose(found.predictions[i], predicted, atol=2e-5)


def grid_of(row):
    """Two values of some parameter of the machine inside, by the name that `set_params` knows it by."""
    model = row.make()
    prefix = f"{model.steps[-1][0]}__" if row.has("pipeline") else "estimator__" if hasattr(model, "estimator") else ""
    known = model.get_params()
    for name, pair in (("C", [0.5, 4.0]), ("nu", [0.2, 0.35]), ("lam", [0.1, 2.0]), ("alpha", [0.05, 0.5])):
        if known.get(prefix + name, np.inf) != np.inf:
            return prefix + name, pair
    for name, pair in (
        ("n_components", [1, 2]),
        ("n_clusters", [2, 3]),
        ("gamma", [0.2, 0.8]),
        ("ordered", [False, True]),
    ):
        if name in known:
            return name, pair
    return "kernel", [mercer.kernels.Gaussian(gamma=0.3), mercer.kernels.Gaussian(gamma=0.6)]


def tune(row):
    """Mean scores are those of refits, fold by fold."""
    name, tried = grid_of(row)
    folds = splits()
    found = mercer.tune(row.make(), row.training(), row.y, grid={name: tried}, cv=folds, skip=False, refit=False)
    for k, value in enumerate(tried):
        scores = []
        for train, test in folds:
            model = row.fit(row.make().set_params(**{name: value}), train)
            given = row.given(POINTS[test], train)
            if row.target == "none" and hasattr(model, "decision_function"):  # how near the share outside is to ν
                scores.append(-abs(np.mean(model.predict(given) < 0) - value))
            else:
                scores.append(model.score(given, row.labels(test)))
        np.testing.assert_allclose(found.cv_results_["mean_test_score"][k], np.mean(scores), atol=1e-6)


def path(row):
    """Every C, or every λ, at once; f at some of them is that of a fit."""
    if row.estimator in ("RLSRegressorCV", "RLSClassifierCV"):
        return ridge_path(row)
    if row.estimator == "LinearSVC":
        return linear_path(row)
    if row.estimator != "SVC":
        raise NoSuchTool(f"{row.estimator} has no path")
    options = {name: value for name, value in row.make().get_params(deep=False).items() if name != "C"}
    found = mercer.svm_path(row.training(), row.y, C_max=8.0, **options)
    for C in (0.3, 5.0):
        other = row.fit(row.make().set_params(C=C))
        f = values(other, row, NEW)
        np.testing.assert_allclose(found.at(C).decision_function(row.given(NEW)), f[:, 0], atol=1e-6)
        np.testing.assert_allclose(np.ravel(found.decision_function(row.given(NEW), [C])), f[:, 0], atol=1e-6)
    return None


def linear_path(row):
    options = {name: value for name, value in row.make().get_params(deep=False).items() if name != "C"}
    found = mercer.linear_path(row.training(), row.y, Cs=[0.3, 5.0], **options)
    for C, w, b in zip(found.C, found.coef, found.intercept, strict=True):
        other = row.fit(row.make().set_params(C=C))
        np.testing.assert_allclose(NEW @ w + b, values(other, row, NEW)[:, 0], atol=1e-6)


def ridge_path(row):
    """The machine at any λ is that of a fit, and the leave-one-out errors are those of refits."""
    found = fitted(row).path_
    plain = getattr(mercer, row.estimator.removesuffix("CV"))
    lam = float(found.lams[len(found.lams) // 2])
    other = row.fit(plain(lam=lam, gamma=0.4))
    np.testing.assert_allclose(
        values(found.at(lam, row.training(), row.y), row, NEW), values(other, row, NEW), atol=1e-8
    )
    k = int(np.flatnonzero(found.lams == lam)[0])
    residuals = []
    for i in range(N):
        rest = np.delete(np.arange(N), i)
        f = values(row.fit(plain(lam=lam, gamma=0.4), rest), row, POINTS[[i]])[0]
        target = row.y[i] if not row.classifies else np.where(row.y[i] == np.unique(row.y), 1.0, -1.0)[-len(f) :]
        residuals.append(target - f)
    np.testing.assert_allclose(found.loo_errors[k], np.square(residuals).mean(axis=0).ravel(), rtol=1e-6)


def certify(row):
    """The certificate of the machine's own α is that of the machine."""
    model = fitted(row)
    machine = machine_in(model)
    alpha = fitted_alpha(row, machine) if hasattr(machine, "support_") else np.ones(N)
    found = mercer.certify(model, row.training(), row.y, alpha)
    own = machine.certificate_
    size = 1e-6 * max(1.0, abs(own.dual))
    assert abs(found.dual - own.dual) <= size, (found.dual, own.dual)
    assert abs(found.primal - own.primal) <= size, (found.primal, own.primal)
    assert found.gap <= size
    if model is machine:  # and the machine alone says the same
        again = mercer.certify(model, row.training(), row.y)
        assert abs(again.primal - found.primal) + abs(again.dual - found.dual) <= size


def fitted_alpha(row, machine):
    """α as `certify` takes it: unsigned of classes, a column for each problem."""
    table = np.zeros((N, np.shape(machine.dual_coef_)[0]))
    table[machine.support_] = np.asarray(machine.dual_coef_).T
    if not row.classifies or row.classes == 2:
        return np.abs(table[:, 0]) if row.classifies else table if table.shape[1] > 1 else table[:, 0]
    k, codes = row.classes, np.searchsorted(machine.classes_, row.y)
    if not row.has("pairs"):
        return np.abs(table)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    alpha = np.zeros((N, len(pairs)))
    for p, (i, j) in enumerate(pairs):  # LIBSVM's layout: a sample of class i has α against j in column j − (j > i)
        for mine, other in ((i, j), (j, i)):
            at = codes == mine
            alpha[at, p] = np.abs(table[at, other - (other > mine)])
    return alpha


# --- margins, insight -------------------------------------------------------------------------------------------------


def margins(row):
    """Of each plane s·f of its samples, with the public f."""
    found = asked(row).margins(row.training(), row.y)
    f, labels = plane_values(row), machine_in(fitted(row)).classes_
    parts = list(found) if hasattr(found, "parts") else [found]
    assert len(parts) == f.shape[1]
    for p, part in enumerate(parts):
        signs = np.where(row.y[part.rows] == part.classes[1], 1.0, -1.0)
        if row.classes > 2 and (row.has("pairs") or row.has("joint")):  # positive for the first of the pair
            assert sorted(set(row.y[part.rows])) == sorted(part.classes)
        own = f[part.rows, p]
        np.testing.assert_allclose(part.functional_margins, signs * own, atol=1e-8)
    if row.classes == 2:
        slack = np.maximum(0, 1 - np.where(row.y == labels[1], 1, -1) * f[:, 0])
        np.testing.assert_allclose(found.slacks, slack, atol=1e-8)


def plane_values(row):
    """The public f of each plane: for classes trained jointly, the difference of two functions for each pair."""
    f = explained(fitted(row), row, POINTS)
    if not (row.classes > 2 and row.has("joint")):
        return f
    return np.column_stack([f[:, i] - f[:, j] for i in range(row.classes) for j in range(i + 1, row.classes)])


def insight(row):
    """The empirical risks are those of the public f; columns in another order are refused, or found by name."""
    owner = asked(row)
    found = owner.insight(row.training()) if row.y is None else owner.insight(row.training(), row.y)
    parts = found if isinstance(found, list) else [found]
    f = plane_values(row)
    assert len(parts) == f.shape[1]
    for p, part in enumerate(parts):
        if row.classifies:
            rows, signs = part.margins.rows, part.margins.signs
            own = f[rows, p]
            np.testing.assert_allclose(part.risks["zero_one"], np.mean((own >= 0) != (signs > 0)), atol=1e-12)
            np.testing.assert_allclose(part.risks["hinge"], np.maximum(0, 1 - signs * own).mean(), atol=1e-8)
        elif "squared" in part.risks:
            target = row.y if row.y.ndim == 1 else row.y[:, p]
            unit = mercer.unwrap(fitted(row)).unit[1]
            np.testing.assert_allclose(part.risks["squared"], np.mean(((f[:, p] - target) / unit) ** 2), rtol=1e-6)
        else:
            assert part.n == N
    if row.form in ("rows", "frame"):
        insight_by_name(row, parts)


def insight_by_name(row, parts):
    """A frame whose columns stand in another order is refused by name, or gives the same risks."""
    frame = pd.DataFrame(POINTS, columns=NAMES)
    model = row.make().fit(frame, row.y)
    owner = mercer.unwrap(model) if row.has("pipeline") or row.has("foreign search") else model
    try:
        found = owner.insight(frame[["b", "a", "c"]], *(() if row.y is None else (row.y,)))
    except ValueError as error:
        if "feature names" not in str(error):
            raise
        return
    for one, other in zip(parts, found if isinstance(found, list) else [found], strict=True):
        assert one.risks == pytest.approx(other.risks)
        assert one.origin_radius == pytest.approx(other.origin_radius)
        assert one.norm == pytest.approx(other.norm)
