"""The claims of machines whose dual point is not public: no point may be better than the certificate allows.

A rival is any other point of the same problem. Its value is computed in a hundred digits, so it does not matter where
it comes from: the optimum lies below it. Hence dual ≤ rival, and value at the solution − rival ≤ gap.
"""

from dataclasses import replace

import numpy as np
from sklearn.base import clone

from claims.dual_claims import LIMITS, binary_parts, full, parts_of
from claims.false_claims import EPS, SMALL, against, fitted, proves_too_much, read, setting
from mercer import (
    SVC,
    KernelMachineClassifier,
    KernelMachineRegressor,
    LinearSVC,
    LinearSVR,
    NystromRLS,
    NystromRLSClassifier,
    PegasosSVC,
    config_context,
)
from mercer.runtime.errors import NotSeparableError
from reference.corner_losses import Bent, Stairs, primal_value
from reference.decimals import INFINITY, ONE, ZERO, all_digits, decimals, exp, solve, zeros
from reference.exact_duals import HALF
from reference.penalties import Fourth


def reached(model, s):
    if model.converged_ and not model.certificate_.violation <= s.problem.tol * (1 + 1e-9):
        return [f"converged with violation {model.certificate_.violation:.3g}, tol {s.problem.tol:g}"]
    return []


def linear_value(s, w, b, losses, bias, scaling):
    """½‖w‖² (+ ½(b/B)²) + Σ losses(f)."""
    w, b = decimals(np.asarray(w)), decimals(float(b))
    f = decimals(s.X) @ w + b
    value = HALF * (w @ w) + losses(f)
    return value + HALF * (b / decimals(scaling)) ** 2 if bias == "regularized" else value


def _powered(excess, prices, squared):
    excess = np.maximum(excess, ZERO)
    return (prices * (excess * excess if squared else excess)).sum()


def _other_ways(kind, options, s, target):
    """Solutions of the same problem found otherwise, by this machine's core."""
    s = setting(replace(s.problem, engine="core"))
    found = []
    for way in ("newton", "dual"):
        with config_context(device="cpu"):
            rival = fitted(kind(**{**options, "solver": way, "tol": 1e-9, "max_time": 1.0}), s, target)
        found += [rival] if rival is not None else []
    return found


def linear_svc(s):
    p = s.problem
    options = {"C": p.C, "tol": p.tol, **p.options, **LIMITS}
    model = fitted(LinearSVC(**options), s, s.labels)
    if model is None:
        return []
    prices, squared = decimals(p.C * s.weight), model.loss == "squared_hinge"
    models = [model, *([] if "multiclass" in p.options else _other_ways(LinearSVC, options, s, s.labels))]
    if "multiclass" in p.options and p.n_classes > 2:
        return _crammer_singer(s, model, prices)
    if "multiclass" in p.options:
        return []
    broken = []
    for k, part in enumerate(parts_of(model.certificate_)):
        signs = decimals(np.where(s.labels == (1 if p.n_classes == 2 else k), 1.0, -1.0))

        def losses(f, signs=signs):
            return _powered(1 - signs * f, prices, squared)

        values = [
            linear_value(s, m.coef_[k], m.intercept_[k], losses, model.bias, model.intercept_scaling)
            for m in models
            if np.all(np.isfinite(m.coef_[k])) and np.isfinite(m.intercept_[k])
        ]
        broken += against(part, values[0], values[1:], f"part {k} " if p.n_classes > 2 else "") if values else ["NaN"]
    return broken + reached(model, s)


def _crammer_singer(s, model, prices):
    W, b = decimals(model.coef_), decimals(model.intercept_)
    f = decimals(s.X) @ W.T + b
    rows = np.arange(len(f))
    e = f + 1
    e[rows, s.labels] = f[rows, s.labels]
    value = HALF * (W * W).sum() + (prices * (e.max(axis=1) - f[rows, s.labels])).sum()
    if model.bias == "regularized":
        value += HALF * ((b / decimals(model.intercept_scaling)) ** 2).sum()
    return against(model.certificate_, value, []) + reached(model, s)


def linear_svr(s):
    p = s.problem
    options = {"C": p.C, "tol": p.tol, "epsilon": 0.1 * p.size, **p.options, **LIMITS}
    model = fitted(LinearSVR(**options), s, s.targets)
    if model is None:
        return []
    prices, squared, t = decimals(p.C * s.weight), model.loss.startswith("squared"), decimals(s.targets)
    epsilon = decimals(model.epsilon)

    def losses(f):
        return _powered(np.abs(t - f) - epsilon, prices, squared)

    values = [
        linear_value(s, m.coef_, m.intercept_[0], losses, model.bias, model.intercept_scaling)
        for m in [model, *_other_ways(LinearSVR, options, s, s.targets)]
        if np.all(np.isfinite(m.coef_)) and np.isfinite(m.intercept_[0])
    ]
    return against(model.certificate_, values[0], values[1:]) + reached(model, s) if values else ["NaN"]


def _logistic(y, f):
    """Value, first and second derivative of log(1 + exp(−yf))."""
    z = y * f
    small = exp(-np.abs(z))
    value = np.array([(1 + e).ln() for e in small], dtype=object) + np.maximum(-z, ZERO)
    share = np.where(z > 0, small, 0 * small + 1) / (1 + small)  # 1/(1 + exp(z))
    return value, -y * share, share * (1 - share)


def _squared_hinge(y, f):
    slack = np.maximum(1 - y * f, ZERO)
    return slack * slack, -2 * y * slack, np.where(slack > 0, 2 * ONE, ZERO)


def _squared(y, f):
    return (y - f) ** 2, 2 * (f - y), 0 * f + 2


def _huber(delta):
    delta = decimals(delta)

    def loss(y, f):
        r = f - y
        inside = np.abs(r) <= delta
        value = np.where(inside, HALF * r * r, delta * (np.abs(r) - HALF * delta))
        return value, np.where(inside, r, np.where(r > 0, delta, -delta)), np.where(inside, ONE, ZERO)

    return loss


CORNERS = ("hinge", "absolute", "epsilon_insensitive", "pinball", Bent(), Stairs())


def _corners(s, model, numbers, rows, points):
    """The claims about a loss with corners, beside solutions for other tolerances and the points between them."""
    lam, y, weight, K = numbers
    name = model.loss if isinstance(model.loss, str) else type(model.loss).__name__.lower()
    for tol in (1e-2, 1e-9):
        with config_context(device="cpu"):
            target = s.labels if isinstance(model, KernelMachineClassifier) else s.targets
            rival = fitted(clone(model).set_params(tol=tol, max_time=1.0), s, target)
        if rival is not None:
            c, b = np.atleast_2d(rival.dual_coef_)[0][rows], float(np.ravel(rival.intercept_)[0])
            points.append((decimals(c), decimals(b)))
    points += [((c + points[0][0]) / 2, (b + points[0][1]) / 2) for c, b in points[1:]]
    parameters = {} if isinstance(model, KernelMachineClassifier) else {"epsilon": model.epsilon, "tau": model.tau}
    values = [
        primal_value(name, model.penalty if isinstance(model.penalty, str) else "fourth", lam, y, weight, K, c, b,
                     **parameters)
        for c, b in points
    ]  # fmt: skip
    certificate = model.certificate_
    broken = against(certificate, values[0], values[1:]) + proves_too_much(certificate, s.formula)
    best = min(values)
    if s.formula.known_psd and decimals(certificate.dual) > best + 8 * EPS * abs(best):
        broken.append(f"dual above a point: claimed {certificate.dual:.12g}, true {float(best):.12g}")
    return broken


def any_loss(kind):
    def check(s):
        p = s.problem
        classifier = kind is KernelMachineClassifier
        lam = 1 / (2 * p.C)
        own = {} if classifier else {"delta": 0.5 * p.size, "epsilon": 0.1 * p.size, "tau": 0.2}
        estimator = kind(lam=lam, tol=p.tol, **own, **p.options, **s.kernel, **LIMITS)
        model = fitted(estimator, s, s.labels if classifier else s.targets)
        if model is None or (classifier and p.n_classes > 2):
            return []
        rows = np.flatnonzero(s.weight > 0)
        y = decimals(np.where(s.labels == 1, 1.0, -1.0) if classifier else s.targets)[rows]
        weight, K, lam = decimals(s.weight[rows]), s.K(rows), decimals(lam)
        c, b = decimals(np.atleast_2d(model.dual_coef_)[0])[rows], decimals(float(np.ravel(model.intercept_)[0]))
        if model.loss in CORNERS:
            return _corners(s, model, (lam, y, weight, K), rows, [(c, b)])
        loss = {"logistic": _logistic, "squared_hinge": _squared_hinge, "squared": _squared}.get(model.loss)
        loss = loss or _huber(model.delta)
        values, steepest = [], []
        for _ in range(4):  # the solution, and three of Newton's steps from there
            u = K @ c
            value, slope, curvature = loss(y, u + b)
            square = c @ u  # below zero, where a matrix that is given is indefinite
            g, D, n = weight * slope, weight * curvature, len(c)
            price = lam
            if model.penalty == "norm":  # the squared norm with the price that has the same slope
                square = max(square, ZERO)
                values.append((weight * value).sum() + lam * square.sqrt())
                if square == 0:
                    G = max(g @ K @ g, ZERO).sqrt()
                    steepest.append(max(G - lam, ZERO))
                    c = -decimals(2.0 ** -float(p.seed % 40)) * g / (G or ONE)
                    continue
                price = lam / (2 * square.sqrt())
            else:
                values.append((weight * value).sum() + lam * square)
            steepest.append(np.abs(g + 2 * price * c).max())
            A, right = zeros(n + 1, n + 1), zeros(n + 1)
            A[:n, :n] = D[:, None] * K
            A[np.arange(n), np.arange(n)] = A[np.arange(n), np.arange(n)] + 2 * price
            right[:n] = D * (u + b) - g
            if model.bias:
                A[:n, n], A[n, :n] = D, ONE
            else:
                A[n, n] = ONE
            found = solve(A, right)
            c, b = found[:n], found[n]
        broken = against(model.certificate_, values[0], values[1:])
        if steepest[0] > decimals(min(model.certificate_.violation, 1e300)) * (1 + SMALL):
            broken.append(f"violation: claimed {model.certificate_.violation:.6g}, true {float(steepest[0]):.6g}")
        return broken + proves_too_much(model.certificate_, s.formula)

    return check


def nystrom(kind):
    def check(s):
        p = s.problem
        lam, classifier = 1 / p.C, kind is NystromRLSClassifier
        made = kind(lam, n_landmarks=max(3, p.n // 3), random_state=0, **p.options, **s.kernel, **LIMITS)
        model = fitted(made, s, s.labels if classifier else s.targets)
        if model is None or (classifier and p.n_classes > 2):
            return []
        Z = read(model.landmarks_)
        t = decimals(np.where(s.labels == 1, 1.0, -1.0) if classifier else s.targets)
        K, N = s.formula.matrix(s.X, Z), s.formula.matrix(Z)
        weight, lam, m = decimals(s.weight), decimals(lam), len(Z)
        N[np.arange(m), np.arange(m)] = N[np.arange(m), np.arange(m)] + decimals(float(model.jitter_))

        def value(c, b):
            r = t - K @ c - b
            return HALF * (weight * r * r).sum() + HALF * lam * (c @ N @ c)

        c, b = decimals(np.asarray(model.dual_coef_).reshape(m)), decimals(float(np.ravel(model.intercept_)[0]))
        wide = np.column_stack([K, 0 * weight + (1 if model.bias else 0)])
        A = wide.T @ (weight[:, None] * wide)
        A[:m, :m] = A[:m, :m] + lam * N
        best = solve(A, wide.T @ (weight * t))
        reached, optimum = value(c, b), value(best[:m], best[m])
        broken = against(model.certificate_, reached, [optimum])
        above = model.certificate_.kkt["primal value above the optimum"]
        if s.formula.known_psd and reached - optimum > decimals(min(above, 1e300)) + EPS * reached:
            broken.append(f"above the optimum by: claimed {above:.6g}, true {float(reached - optimum):.6g}")
        if model.converged_ and above > model.tol * model.certificate_.primal + float(EPS * (weight * t * t).sum()):
            broken.append(f"converged, above the optimum by {above:.6g} of {model.certificate_.primal:.6g}")
        return broken

    return check


def pegasos(s):
    p = s.problem
    W = s.weight.sum()
    alpha = float(1 / (p.C * W))
    model = PegasosSVC(alpha, random_state=0, max_iter=20, n_jobs=1, **p.options, **s.kernel)
    model = fitted(model, s, s.labels)
    if model is None or p.n_classes > 2:
        return []
    regularised = model.bias == "regularized"
    C = decimals(s.weight) / (decimals(alpha) * decimals(W))
    signs = decimals(np.where(s.labels == 1, 1.0, -1.0))

    def value(f, square):
        return HALF * square + (C * np.maximum(1 - signs * f, ZERO)).sum()

    b, terms = decimals(float(model.intercept_[0])) if regularised else ZERO, ZERO
    if hasattr(model, "coef_"):
        w = decimals(model.coef_[0])
        own = value(decimals(s.X) @ w + b, w @ w + b * b)
    else:
        Z = read(model.support_vectors_)
        beta = decimals(np.atleast_2d(model.dual_coef_)[0])
        constant = ONE if regularised else ZERO
        f = (s.formula.matrix(s.X, Z) + constant) @ beta if len(Z) else zeros(p.n)
        own = value(f, beta @ (s.formula.matrix(Z) + constant) @ beta if len(Z) else ZERO)
        if len(Z):
            rows, size = (decimals(s.formula.error_scale(part, Z)) + constant for part in (s.X, Z)), np.abs(beta)
            across, within = (scale @ size for scale in rows)
            terms = C @ (ONE + across) + size @ within
    rivals = []
    exact = SVC(C=1 / (alpha * W), tol=1e-6, bias=model.bias, **s.kernel, **LIMITS)
    exact = fitted(exact, s, s.labels)
    if exact is not None:
        _, _, beta = binary_parts(exact, s)[0]
        f = s.K(constant=ONE if regularised else ZERO) @ full(exact, p.n)[0]
        rivals.append(value(f, beta @ f))
    return against(model.certificate_, own, rivals, terms=terms) + proves_too_much(model.certificate_, s.formula)


def _hard_conditions(c, signs, beta, u, b, bias):
    """The residuals of Σβ = 0, y f(x) ≥ 1, and y f(x) = 1 where there is a coefficient."""
    margins = signs * (u + (b if bias is True else ZERO))
    with all_digits():
        total = abs(beta.sum())
    truth = {
        "dual feasibility: equality": total if bias is True else ZERO,
        "primal feasibility": max(ZERO, *(1 - margins)),
        "complementary slackness": max(ZERO, *(margins[beta != 0] - 1)),
    }
    return [
        f"{name}: claimed {c.kkt[name]:.6g}, true {float(true):.6g}"
        for name, true in truth.items()
        if np.isfinite(c.kkt[name]) and true > decimals(c.kkt[name]) * (1 + SMALL)
    ]


def hard_margin(s):
    """`dual` and `primal` enclose the least ½‖w‖², which any f and any multipliers bound as well."""
    p, column = s.problem, np.asarray(s.X[:, 0], dtype=float)
    labels = np.where(column > np.median(column), 1, 0) if len(set(column)) > 1 else s.labels
    if p.n_classes > 2 or len(set(labels)) == 1:
        return []
    first, second = (
        fitted(SVC(C=np.inf, tol=tol, **p.options, **s.kernel, **LIMITS), s, labels, told=NotSeparableError)
        for tol in (p.tol, 1e-9)
    )
    models = [model for model in (first, second) if isinstance(model, SVC)]
    if not models or first is None:
        return []
    bias, rows = models[0].bias, np.flatnonzero(s.weight > 0)
    if isinstance(first, SVC):
        c = first.certificate_
        primal, dual, gap = c.primal, c.dual, c.gap
        broken = [f"{key} is NaN" for key in ("primal", "dual", "gap") if np.isnan(getattr(c, key))]
        broken += proves_too_much(c, s.formula)
    else:
        low, high = first.margin_bounds
        primal, dual = (0.5 / margin / margin if margin > 0 else np.inf for margin in (low, high))
        gap, broken = np.inf, []
    if primal - dual > gap:
        broken.append("printed: primal - dual above gap")
    if broken or not s.formula.known_psd:
        return broken
    K = s.K(rows, ONE if bias == "regularized" else ZERO)
    signs = decimals(np.where(labels == 1, 1.0, -1.0))[rows]
    for model in models:
        beta = full(model, p.n)[0][rows]
        u = K @ beta
        if model is first:
            broken += _hard_conditions(model.certificate_, signs, beta, u, decimals(float(model.intercept_[0])), bias)
        above, below = min(u[signs > 0]), max(u[signs < 0])
        margin = (above - below) / 2 if bias is True else min(above, -below)
        value = beta @ u / (2 * margin**2) if margin > 0 else INFINITY
        if decimals(dual) > value * (1 + 64 * EPS):
            broken.append(f"dual above a feasible point: claimed {dual:.12g}, true {float(value):.12g}")
        alpha = np.maximum(signs * beta, ZERO)
        if bias is True:  # both classes weigh the same
            alpha = alpha / np.where(signs > 0, alpha[signs > 0].sum(), alpha[signs < 0].sum())
        energy = (signs * alpha) @ K @ (signs * alpha)
        value = alpha.sum() ** 2 / (2 * energy) if energy > 0 else ZERO
        if np.isfinite(primal) and value > decimals(primal) * (1 + 64 * EPS):
            broken.append(f"primal below a dual point: claimed {primal:.12g}, true {float(value):.12g}")
    return broken


BIAS = ({}, {"bias": False}, {"bias": "regularized"})
OTHERS = ("norm", Fourth())  # penalties
CHECKS = {
    "LinearSVC": (
        linear_svc,
        [
            *({"loss": loss, **bias} for loss in ("hinge", "squared_hinge") for bias in BIAS),
            {"multiclass": "crammer_singer", "bias": False},
            {"loss": "hinge", "bias": "regularized", "intercept_scaling": 10.0},
        ],
    ),
    "LinearSVR": (
        linear_svr,
        [{"loss": loss, **bias} for loss in ("epsilon_insensitive", "squared_epsilon_insensitive") for bias in BIAS],
    ),
    "KernelMachineClassifier": (
        any_loss(KernelMachineClassifier),
        [
            *(
                {"loss": loss, "bias": bias}
                for loss in ("logistic", "squared_hinge", "hinge")
                for bias in (True, False)
            ),
            *({"loss": "logistic", "bias": bias, "penalty": "norm"} for bias in (True, False)),
            *({"loss": "hinge", "bias": bias, "penalty": penalty} for bias in (True, False) for penalty in OTHERS),
            *({"loss": Stairs(), "bias": bias, "penalty": "norm"} for bias in (True, False)),
        ],
    ),
    "KernelMachineRegressor": (
        any_loss(KernelMachineRegressor),
        [
            *({"loss": loss, "bias": bias} for loss in ("squared", "huber") for bias in (True, False)),
            *({"loss": loss, "bias": True, "penalty": "norm"} for loss in ("squared", "huber")),
            *(
                {"loss": loss, "bias": bias, "penalty": penalty}
                for loss in ("absolute", "epsilon_insensitive", "pinball", Bent())
                for bias in (True, False)
                for penalty in ("squared_norm", *OTHERS)
            ),
        ],
    ),
    "NystromRLS": (nystrom(NystromRLS), [{}, {"bias": False}]),
    "NystromRLSClassifier": (nystrom(NystromRLSClassifier), [{}, {"bias": False}]),
    "hard SVC": (hard_margin, [{}, {"bias": False}, {"bias": "regularized"}]),
    "PegasosSVC": (pegasos, [{}, {"bias": False}, {"certificate": True}]),
}
