"""The claims of every machine whose β is public: SVC in all its forms, the ν-machines, regression, novelty, ridges."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from claims.false_claims import EPS, Claim, against, answered, compare, fitted, outputs, proves_too_much, whole
from mercer import (
    SVC,
    SVDD,
    SVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
    RLSClassifier,
    RLSClassifierCV,
    RLSRegressor,
    RLSRegressorCV,
)
from reference import exact_machines as exact
from reference.decimals import ONE, ZERO, decimals, solve, zeros
from reference.exact_duals import findings, joint_findings

LIMITS = {"max_time": 5.0, "n_jobs": 1}
# Copies of a ν-tube that overlap by less, as a share of their sum, are next to zero, not at a bound.
_LITTLE = decimals(1e-9)


def full(model, n):
    """dual_coef_ over all rows."""
    out = zeros(np.atleast_2d(model.dual_coef_).shape[0], n)
    out[:, model.support_] = decimals(np.atleast_2d(model.dual_coef_))
    return out


def parts_of(certificate):
    return certificate.parts or (certificate,)


def checked(claims, model, s):
    broken = [line for claim in claims for line in compare(claim)]
    return broken + whole(model.certificate_, claims) + proves_too_much(model.certificate_, s.formula)


def unit_of_tol(model, s, unit=1.0):
    """`tol` is in the scale of f; for regression in the standard deviation of the targets, where that is below 1."""
    if model.converged_ and not model.certificate_.violation <= s.problem.tol * unit * (1 + 1e-9):
        return [f"converged with violation {model.certificate_.violation:.3g}, tol {s.problem.tol:g} x {unit:.3g}"]
    return []


def svc(s):
    p = s.problem
    options = dict(p.options)
    class_weight = {k: 2.0**k for k in range(p.n_classes)} if options.pop("classes", False) else None
    model = SVC(C=p.C, tol=p.tol, class_weight=class_weight, **options, **s.kernel, **LIMITS)
    if model.multiclass == "ovo":
        model.set_params(decision_function_shape="ovo")
    model = fitted(model, s, s.labels)
    if model is None:
        return []
    C = p.C * s.weight * (1.0 if class_weight is None else 2.0**s.labels)
    if model.multiclass not in ("ovo", "ovr"):
        return joint(model, s, C) if p.n_classes > 2 else []
    constant = ONE if model.bias == "regularized" else ZERO
    claims, broken = [], []
    f = None
    if np.all(np.isfinite(model.dual_coef_)):
        f = answered(model.decision_function(s.given)).reshape(p.n, -1)
    for k, (rows, signs, beta) in enumerate(binary_parts(model, s)):
        part = parts_of(model.certificate_)[k]
        b = decimals(np.array(part.b))
        problem = exact.soft_margin(signs, C[rows], squared=model.slack == "l2", bias=model.bias)
        truth = findings(problem, s.K(rows, constant), beta[rows], b)
        what = f"part {k} " if len(model.certificate_.parts) else ""
        claims.append(Claim(part, truth, what=what))
        if f is not None:
            u = s.K() @ beta
            broken += outputs(f"decision {k}", f[:, k], u, decimals(model.intercept_[k]), s, beta)
    return checked(claims, model, s) + broken + unit_of_tol(model, s)


def binary_parts(model, s):
    """(rows of positive weight, ±1, β over all rows) of each two-class problem."""
    n, q = s.problem.n, s.problem.n_classes
    beta, alive, y = full(model, n), s.weight > 0, s.labels
    if q == 2:
        rows = np.flatnonzero(alive)
        return [(rows, np.where(y[rows] == 1, 1.0, -1.0), beta[0])]
    if getattr(model, "multiclass", "ovo") == "ovr":
        rows = np.flatnonzero(alive)
        return [(rows, np.where(y[rows] == k, 1.0, -1.0), beta[k]) for k in range(q)]
    out = []
    for i, j in combinations(range(q), 2):  # LIBSVM's layout: class i against j in row j − 1, class j in row i
        rows = np.flatnonzero(alive & ((y == i) | (y == j)))
        mine = zeros(n)
        mine[y == i], mine[y == j] = beta[j - 1, y == i], beta[i, y == j]
        out.append((rows, np.where(y[rows] == i, 1.0, -1.0), mine))
    return out


def joint(model, s, C):
    rows = np.flatnonzero(s.weight > 0)
    constant = ONE if model.bias == "regularized" else ZERO
    beta = full(model, s.problem.n).T
    c = model.certificate_
    b = decimals(np.array(c.b)) if model.bias is True else zeros(s.problem.n_classes)
    truth = joint_findings(
        s.K(rows, constant),
        s.labels[rows],
        decimals(C[rows]),
        beta[rows],
        b,
        shared="crammer" in model.multiclass,
        balanced=model.bias is True,
    )
    claims = [Claim(c, truth)]
    f, u = answered(model.decision_function(s.given)), s.K() @ beta
    broken = []
    for k in range(s.problem.n_classes):
        broken += outputs(f"decision {k}", f[:, k], u[:, k], decimals(model.intercept_[k]), s, beta[:, k])
    if model.converged_ and max(truth.box, truth.equality) > decimals(1e-9) * max(decimals(C[rows])):
        broken.append(
            f"converged, dual infeasible by {float(max(truth.box, truth.equality)):.3g}, C {C[rows].max():.3g}"
        )
    return checked(claims, model, s) + broken + unit_of_tol(model, s)


def nu_svc(s):
    p = s.problem
    options = dict(p.options)
    if "nu" in options:  # a share that no weights of the classes forbid
        counts = [s.weight[s.labels == k].sum() for k in range(p.n_classes)]
        options["nu"] = min(options["nu"], *(1.8 * min(pair) / sum(pair) for pair in combinations(counts, 2)))
    model = fitted(NuSVC(tol=p.tol, decision_function_shape="ovo", **options, **s.kernel, **LIMITS), s, s.labels)
    if model is None:
        return []
    claims = []
    for k, (rows, signs, beta) in enumerate(binary_parts(model, s)):
        part = parts_of(model.certificate_)[k]
        # All is told in the scale of f, after the division by ρ = 1/C.
        C = s.weight[rows] * float(np.atleast_1d(model.equivalent_C_)[k])
        if not np.isfinite(C).all() or not C.any():  # where no ν keeps the hulls apart, f is constant
            continue
        problem = exact.nu_margin(signs, C, float(np.atleast_1d(model.nu_)[k]))
        truth = findings(problem, s.K(rows), beta[rows], decimals(np.array(part.b)))
        claims.append(Claim(part, truth, what=f"part {k} " if len(model.certificate_.parts) else ""))
    return checked(claims, model, s) + unit_of_tol(model, s)


def regression(make):
    """The claims of a regressor whose duals `make` writes out, from its model, targets and C."""

    def check(s, model, target, C):
        rows = np.flatnonzero(s.weight > 0)
        constant = ONE if getattr(model, "bias", True) == "regularized" else ZERO
        claims, broken = [], []
        betas = full(model, s.problem.n)
        for k, beta in enumerate(betas):
            part = parts_of(model.certificate_)[k]
            problem = make(model, target[rows], C[rows], k)
            mine = exact.twins(beta[rows]) if len(problem.p) > len(rows) else beta[rows]
            shared = exact.overlapping(problem, mine) if len(problem.totals) == 2 else mine
            truth = findings(problem, s.K(rows, constant), shared, decimals(np.array(part.b)))
            if shared is not mine:  # which copies overlap is not public, and the violation depends on it
                apart = findings(problem, s.K(rows, constant), mine, decimals(np.array(part.b)))
                little = apart.equality <= _LITTLE * abs(problem.totals[0])
                truth = replace(truth, violation=apart.violation if little else ZERO, outward=ZERO, inward=ZERO)
            claims.append(Claim(part, truth, what=f"part {k} " if len(betas) > 1 else ""))
            if len(betas) == 1:
                f, u = np.atleast_1d(answered(model.predict(s.given))), s.K() @ beta
                broken += outputs("prediction", f, u, decimals(model.intercept_[0]), s, beta)
        share = s.weight / s.weight.sum()
        spread = float(np.sqrt(share @ (target - share @ target) ** 2))
        return checked(claims, model, s) + broken + unit_of_tol(model, s, min(1.0, spread))

    return check


def _svr_dual(model, t, C, k):
    match model.loss:
        case "epsilon_insensitive":
            return exact.tube(t, C, model.epsilon, bias=model.bias)
        case "squared_epsilon_insensitive":
            return exact.squared_tube(t, C, model.epsilon, bias=model.bias)
        case "huber":
            return exact.huber(t, C, model.delta, bias=model.bias)
        case "expectile":
            return exact.expectile(t, C, model.tau, bias=model.bias)
    raise ValueError(model.loss)


def svr(s):
    p = s.problem
    scaled = {k: v * p.size for k, v in (("epsilon", 0.1), ("delta", 0.5))}
    model = fitted(SVR(C=p.C, tol=p.tol, **scaled, **p.options, **s.kernel, **LIMITS), s, s.targets)
    if model is None:
        return []
    return regression(_svr_dual)(s, model, s.targets, p.C * s.weight)


def quantile_svr(s):
    p = s.problem
    model = fitted(QuantileSVR(C=p.C, tol=p.tol, **p.options, **s.kernel, **LIMITS), s, s.targets)
    if model is None:
        return []
    taus = np.atleast_1d(model.quantiles)
    make = regression(lambda m, t, C, k: exact.quantile(t, C, float(taus[k]), bias=m.bias))
    return make(s, model, s.targets, p.C * s.weight)


def nu_svr(s):
    p = s.problem
    model = fitted(NuSVR(C=p.C, tol=p.tol, **p.options, **s.kernel, **LIMITS), s, s.targets)
    if model is None:
        return []
    return regression(lambda m, t, C, k: exact.nu_tube(t, C, m.nu))(s, model, s.targets, p.C * s.weight)


def one_class(s):
    p = s.problem
    model = fitted(OneClassSVM(tol=p.tol, **p.options, **s.kernel, **LIMITS), s)
    if model is None:
        return []
    rows = np.flatnonzero(s.weight > 0)
    beta = full(model, p.n)[0]
    problem = exact.one_class(s.weight[rows], model.nu)
    truth = findings(problem, s.K(rows), beta[rows], decimals(np.array(model.certificate_.b)))
    f = answered(model.decision_function(s.given))
    broken = outputs("decision", f, s.K() @ beta, decimals(model.intercept_[0]), s, beta)
    return checked([Claim(model.certificate_, truth)], model, s) + broken + unit_of_tol(model, s)


def svdd(s):
    p = s.problem
    model = fitted(SVDD(tol=p.tol, **p.options, **s.kernel, **LIMITS), s)
    if model is None:
        return []
    rows = np.flatnonzero(s.weight > 0)
    K, beta = s.K(rows), full(model, p.n)[0][rows]
    beta = beta / sum(beta) if abs(sum(beta) - 1) > decimals(1e-3) else beta
    problem = exact.ball(np.diag(K), s.weight[rows], model.nu)
    truth = findings(problem, K, beta, decimals(np.array(model.certificate_.b)))
    return checked([Claim(model.certificate_, truth)], model, s) + unit_of_tol(model, s)


def ridges(kind):
    def check(s):
        p = s.problem
        classifier = kind in (RLSClassifier, RLSClassifierCV)
        chosen = {"lams": [0.1 / p.C, 1 / p.C]} if kind in (RLSRegressorCV, RLSClassifierCV) else {"lam": 1 / p.C}
        model = fitted(kind(**chosen, **p.options, **s.kernel, n_jobs=1), s, s.labels if classifier else s.targets)
        if model is None:
            return []
        lam = float(getattr(model, "lam_", 1 / p.C))
        rows = np.flatnonzero(s.weight > 0)
        betas = decimals(np.asarray(model.dual_coef_).reshape(p.n, -1))
        claims, broken = [], []
        for k in range(betas.shape[1]):
            t = s.targets
            if classifier:
                t = np.where(s.labels == (1 if betas.shape[1] == 1 else k), 1.0, -1.0)
            part = parts_of(model.certificate_)[k]
            if s.formula.name == "linear":  # the proof is about the weights, of which β is a shadow
                broken += linear_ridge(s, model, part, t, lam, k)
                continue
            problem = exact.ridge(t[rows], s.weight[rows], lam, bias=model.bias)
            truth = findings(problem, s.K(rows), betas[rows, k], decimals(np.array(part.b)))
            claims.append(Claim(part, truth, what=f"part {k} " if betas.shape[1] > 1 else ""))
            broken += above_the_optimum(s, model, part, problem, truth)
            if betas.shape[1] == 1:
                f = answered(model.decision_function(s.given)) if classifier else answered(model.predict(s.given))
                u, sizes = s.K() @ betas[:, 0], np.abs(betas[:, 0])
                if s.repeated:  # copies have w(t − f)/λ each, which is as far off as t and f are
                    sizes = sizes + decimals(s.weight * np.abs(t)) / decimals(lam)
                broken += outputs("prediction", f, u, decimals(model.intercept_[0]), s, sizes)
        return (checked(claims, model, s) if claims else []) + broken

    return check


def above_the_optimum(s, model, part, problem, truth):
    """How far the primal value of `dual_coef_` is above the least one, which a linear system has."""
    claimed = part.kkt["primal value above the optimum"]
    if not s.formula.known_psd or not np.isfinite(claimed):
        return []
    rows = np.flatnonzero(s.weight > 0)
    K, n = s.K(rows), len(rows)
    A, right = zeros(n + 1, n + 1), zeros(n + 1)
    A[:n, :n], right[:n] = K, problem.p
    A[np.arange(n), np.arange(n)] = A[np.arange(n), np.arange(n)] + problem.d
    if model.bias:
        A[:n, n] = A[n, :n] = ONE
    else:
        A[n, n] = ONE
    best = solve(A, right)
    least = findings(problem, K, best[:n], best[n:] if model.bias else best[:0]).primal
    if truth.primal - least > decimals(claimed) * (1 + _LITTLE) + 8 * EPS * abs(least):
        return [f"above the optimum by: claimed {claimed:.6g}, true {float(truth.primal - least):.6g}"]
    return []


def linear_ridge(s, model, part, t, lam, k):
    """½‖f‖² + Σ w/(2λ)·(t − f)² at coef_ and intercept_, against its minimum."""
    scale, weight, t, lam = decimals(s.formula.scale), decimals(s.weight), decimals(t), decimals(lam)
    X = np.column_stack([decimals(s.X), decimals(np.full(len(t), 1.0 if model.bias else 0.0))])

    def value(v):
        r = t - X @ v
        return (v[:-1] @ v[:-1]) / (2 * scale) + (weight * r * r).sum() / (2 * lam)

    A = X.T @ (weight[:, None] * X) / lam
    inside = np.arange(len(A) - 1)
    A[inside, inside] = A[inside, inside] + 1 / scale
    own = np.append(np.atleast_2d(model.coef_)[k], np.ravel(model.intercept_)[k] if model.bias else 0.0)
    return against(part, value(decimals(own)), [value(solve(A, X.T @ (weight * t) / lam))], f"part {k} ")


BIAS = ({}, {"bias": False}, {"bias": "regularized"})
CHECKS = {
    "SVC": (
        svc,
        [
            {**slack, **bias, **way, **cw}
            for slack in ({}, {"slack": "l2"})
            for bias in BIAS
            for way in ({}, {"multiclass": "ovr"})
            for cw in ({}, {"classes": True})
        ],
    ),
    "joint SVC": (svc, [{"multiclass": way, **bias} for way in ("crammer-singer", "weston-watkins") for bias in BIAS]),
    "NuSVC": (nu_svc, [{}, {"nu": 0.2}, {"nu": 0.6}]),
    "SVR": (
        svr,
        [
            {"loss": loss, **bias}
            for loss in ("epsilon_insensitive", "squared_epsilon_insensitive", "huber", "expectile")
            for bias in BIAS
        ],
    ),
    "NuSVR": (nu_svr, [{"nu": 0.3}, {"nu": 0.7}]),
    "QuantileSVR": (
        quantile_svr,
        [
            {"quantiles": 0.3},
            {"quantiles": (0.1, 0.5)},
            {"quantiles": 0.5, "bias": False},
            {"quantiles": 0.3, "bias": "regularized"},
        ],
    ),
    "OneClassSVM": (one_class, [{"nu": 0.1}, {"nu": 0.5}, {"nu": 1e-6}]),
    "SVDD": (svdd, [{"nu": 0.1}, {"nu": 0.5}, {"nu": 1e-6}]),
    "RLSRegressor": (ridges(RLSRegressor), [{}, {"bias": False}, {"solver": "cg"}, {"solver": "eigen"}]),
    "RLSClassifier": (ridges(RLSClassifier), [{}, {"bias": False}]),
    "RLSRegressorCV": (ridges(RLSRegressorCV), [{}, {"bias": False}]),
    "RLSClassifierCV": (ridges(RLSClassifierCV), [{}, {"bias": False}]),
}
