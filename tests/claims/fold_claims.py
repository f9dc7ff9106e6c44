"""Fits of folds as `tune` and `calibrate` make them, and every claim about them held against hundred-digit arithmetic.

Each draw is a small data set with a list of machines. The fits are recorded inside the public calls. Their problems are
written out from the samples, and the optimum is bounded by weak duality at a solution of our own: no dual value may be
above it, no gap below the distance to it, no coefficient outside of its box, no sum off, and no decision value of a
sample that was left out further from that of the optimum than the gap allows.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any
from unittest.mock import patch

import numpy as np

import mercer
from mercer.kernels import Precomputed
from mercer.model_selection import shared_search
from mercer.model_selection.held_out import from_solution
from mercer.model_selection.held_out.machines import out_of_fold
from mercer.places import gram_for
from mercer.problems.dual_problem import DualProblem
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.solution import Stop
from reference import exact_machines as exact
from reference.decimals import ONE, ZERO, decimals
from reference.exact_duals import findings
from reference.exact_kernels import Formula

SEARCHED = ("SVC", "SVC of three classes", "SVC against the rest", "SVR", "OneClassSVM", "NuSVC")
CALIBRATED = ("SVC", "SVC of three classes", "SVC against the rest")
# What float64 may lose of a decision value, as a share of the terms that it is a sum of.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Draw:
    """Samples, folds, and a machine; its repr is the reproduction."""

    kind: str
    seed: int
    X: Any = field(repr=False)
    y: Any = field(repr=False)
    weight: Any = field(repr=False)
    machine: Any = None
    grid: dict[str, list[Any]] = field(default_factory=dict)
    formula: Any = None
    splits: list[Any] = field(default_factory=list, repr=False)

    @property
    def weights(self) -> Any:
        return np.ones(len(self.X)) if self.weight is None else self.weight


def draw(kind: str, seed: int, *, grid: bool = True) -> Draw:
    """A data set of 1 to 3 features and a machine with C from 1 to 10⁶; all weights and bounds are exact in float64."""
    rng = np.random.default_rng([seed, 7919 * SEARCHED.index(kind)])
    n, d = int(rng.integers(26, 60)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.4:  # copies, in other folds too
        X[-n // 4 :] = X[: len(X[-n // 4 :])]
    noise = float(rng.choice([0.3, 0.7, 1.5]))
    f = X[:, 0] + (0.5 * X[:, -1] ** 2 if d > 1 else 0.0) + noise * rng.normal(size=n) + rng.choice([0.0, 0.7])
    three = kind in ("SVC of three classes", "SVC against the rest")
    y = np.digitize(f, np.quantile(f, [1 / 3, 2 / 3]) if three else [np.median(f)])
    y = np.round(f, 3) if kind == "SVR" else y
    weight = None if rng.random() < 0.6 else rng.choice([0.25, 1.0, 2.0], size=n)
    name = str(rng.choice(["gaussian", "gaussian", "gaussian", "laplacian", "polynomial"]))
    gamma = float(rng.choice([0.125, 0.25, 0.5, 1.0, 4.0]))
    kernel = {
        "gaussian": {"kernel": "rbf", "gamma": gamma},
        "laplacian": {"kernel": "laplacian", "gamma": gamma},
        "polynomial": {"kernel": "poly", "gamma": gamma, "degree": 2, "coef0": 1.0},
    }[name]
    formula = Formula(name, gamma, 2, 1.0)
    options: dict[str, Any] = {"tol": float(rng.choice([1e-3, 1e-3, 1e-3, 0.1, 1e-6])), **kernel}
    if rng.random() < 0.15:  # cut short
        options |= {"max_iter": int(rng.choice([5, 40, 300]))}
    if kind.startswith("SV"):
        options |= {"bias": [True, True, True, True, False, "regularized"][int(rng.integers(6))]}
    exponents = np.sort(rng.choice(np.arange(7), size=3, replace=False))
    many = {"C": [10.0 ** int(k) for k in (exponents if rng.random() < 0.8 else exponents[::-1])]}
    if kind == "OneClassSVM":
        machine, many = mercer.OneClassSVM(**options), {"nu": [0.125, 0.25, 0.5]}
        y = np.where(rng.random(n) < 0.8, 1, -1)
    elif kind == "NuSVC":
        machine, many = mercer.NuSVC(**options), {"nu": [0.25, 0.5]}
    elif kind == "SVR":
        machine = mercer.SVR(epsilon=0.125, **options)
    else:
        slack = "l2" if grid and rng.random() < 0.15 else "l1"
        own = {0: 1.0, 1: 2.0, 2: 0.5} if rng.random() < 0.2 else None
        own = None if own is None else {k: own[k] for k in range(3 if three else 2)}
        way = "ovr" if kind == "SVC against the rest" else "ovo"
        machine = mercer.SVC(slack=slack, class_weight=own, multiclass=way, **options)
    fold = rng.permutation(n) % int(rng.integers(3, 6))
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(fold.max() + 1)]
    if not grid:
        machine.set_params(C=many["C"][int(rng.integers(3))])
    return Draw(kind, seed, X, y, weight, machine, many, formula, splits)


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients of some samples, b, and what was said of them; f are the decision values of the samples `test`."""

    what: str
    problem: Any  # in hundred digits
    samples: Any  # the row of X of each row of the problem
    beta: Any  # of the variables
    certificate: Any
    test: Any
    f: Any
    b: Any  # of f; None where f has none
    error: Any = None  # what is said of |f − the true value of these coefficients|
    ended: str = "converged"


class Counts(Counter):  # type: ignore[type-arg]
    """What was tried, and lines about claims that are false."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: list[str] = []


def check(drawn: Draw, fits: Iterator[Fit], counts: Counts) -> None:
    """Hold all claims of these fits against the truth; inside of `hundred_digits`."""
    K = drawn.formula.matrix(drawn.X)
    plain = K.astype(float)
    for fit in fits:
        counts["fits"] += 1
        counts[fit.ended] += 1
        added = ONE if drawn.machine.get_params().get("bias") == "regularized" else ZERO
        own = K[np.ix_(fit.samples, fit.samples)] + added
        true = findings(fit.problem, own, decimals(fit.beta), decimals(np.array(fit.certificate.b)))
        best, w = _optimum(fit.problem, plain[np.ix_(fit.samples, fit.samples)] + float(added), own)
        lines = list(_false(fit, true, best))
        between = K[np.ix_(fit.test, fit.samples)] + added
        coefficients = _of_rows(fit.problem, decimals(fit.beta), len(fit.samples))
        u = between @ coefficients
        size = float((abs(between) @ abs(coefficients)).max(initial=ONE))
        near = np.sqrt(max(0.0, fit.certificate.gap)) + np.sqrt(max(0.0, float(best.gap)))
        lengths = np.sqrt([float(K[i, i] + added) for i in fit.test])
        apart = np.abs((u - between @ w).astype(float))
        if not (apart <= near * lengths * (1 + 1e-9) + _ROUNDING * size).all():
            lines.append(f"f − b is {(apart / lengths).max():.3g} from the optimum's, the gap allows {near:.3g}")
        off = np.abs((decimals(fit.f) - u - decimals(0.0 if fit.b is None else fit.b)).astype(float))
        allowed = _ROUNDING * (size + abs(fit.b or 0.0)) + (0.0 if fit.error is None else fit.error)
        if not (off <= allowed + (1e-5 * size if fit.error is None else 0.0)).all():
            lines.append(f"a value is {off.max():.3g} from that of its coefficients")
        if float(best.gap) <= 0.1 * fit.certificate.gap:
            counts["sharp"] += 1  # where a gap that is a tenth too small would be noticed
        counts.broken += [f"{drawn} {fit.what}: {line}" for line in lines]


def _of_rows(problem: Any, beta: Any, n: int) -> Any:
    out = np.full(n, ZERO, dtype=object)
    np.add.at(out, problem.row, beta)
    return out


def _optimum(problem: Any, K: Any, exactly: Any) -> tuple[Any, Any]:
    """The truth about a solution of our own, whose primal value bounds all dual values, and its coefficients."""
    numbers = [getattr(problem, name).astype(float) for name in ("p", "lower", "upper", "d")]
    mine = DualProblem(
        *numbers, problem.row.astype(np.int64), problem.group.astype(np.int32), problem.totals.astype(float)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution, proof = solve_certified(mine, gram_for(Precomputed(), K), Stop(tol=1e-9, max_iter=10**6))
    beta = decimals(solution.beta)
    return findings(problem, exactly, beta, decimals(np.array(proof.b))), _of_rows(problem, beta, len(K))


def _false(fit: Fit, true: Any, best: Any) -> Iterator[str]:
    """Each claim of a certificate that is not true."""
    told, size = fit.certificate, float(max(np.abs(fit.beta).max(initial=0.0), 1.0))
    optimum, primal = float(best.primal), float(true.primal)
    little = 1e-15 * abs(optimum)  # of the conversion to float64
    if told.dual > optimum + little:
        yield f"dual {told.dual:.9g} above the optimum {optimum:.9g}"
    if told.gap < primal - optimum - 1e-15 * abs(primal) - little:
        yield f"gap {told.gap:.6g}, but the primal value is {primal - optimum:.6g} above the optimum"
    if told.primal < primal - 1e-15 * abs(primal):
        yield f"primal {told.primal:.9g}, but it is {primal:.9g}"
    if told.violation < float(true.violation) * (1 - 1e-9) - 1e-12:
        yield f"violation {told.violation:.6g}, but it is {float(true.violation):.6g}"
    if float(true.equality) > 1e-9 * size:
        yield f"a sum is off by {float(true.equality):.3g}"
    if float(true.box) > 1e-12 * size:
        yield f"a coefficient is {float(true.box):.3g} outside of its box"


# --- fits of tune ----------------------------------------------------------------------------------------------------


def fits_of_search(drawn: Draw, **options: Any) -> Iterator[Fit]:
    """All fits of folds that a search makes, in one list; `options` go to `tune`."""
    found: list[Fit] = []
    with _recorded_folds(drawn, found), _recorded_fits(drawn, found), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_jobs": 1, "skip": False, "refit": False, **options}
        mercer.tune(
            drawn.machine, drawn.X, drawn.y, grid=drawn.grid, cv=drawn.splits, sample_weight=drawn.weight, **options
        )
    return iter(found)


@contextmanager
def _recorded_folds(drawn: Draw, found: list[Fit]) -> Iterator[None]:
    """Keep every fit of a fold on stored kernel values."""
    original = shared_search.fit_folds

    def recording(shared: Any, batches: Any, listener: Any, n_threads: int, budget: int) -> None:
        machines = {name: machine for batch in batches for name, machine in batch}
        finished = listener.finished

        def keep_fit(name: int, fold: int, fit: Any) -> None:
            found.extend(_of_tasks(drawn, shared, machines[name], shared.folds[fold], fit))
            finished(name, fold, fit)

        with patch.object(listener, "finished", keep_fit):
            original(shared, batches, listener, n_threads, budget)

    with patch.object(shared_search, "fit_folds", recording):
        yield


def _of_tasks(drawn: Draw, shared: Any, machine: Any, fold: Any, fit: Any) -> Iterator[Fit]:
    """Each problem of a machine's fit to a fold."""
    first = np.full(shared.rows.max() + 1, -1)
    first[shared.rows[::-1]] = np.arange(len(shared.rows))[::-1]
    mass = np.zeros(len(first))
    np.add.at(mass, shared.rows[fold.train], drawn.weights[fold.train])
    what = f"{machine} fold {fold.number}"
    q = 1 if fit.classes is None else len(fit.classes)
    for k, task in enumerate(fit.tasks):
        samples = first[task.rows]
        problem = problem_of(drawn, machine, samples, mass[task.rows], k, q)
        beta = exact.twins(task.coefficients) if len(problem.p) > len(samples) else task.coefficients
        f, b = (fit.values[:, k], task.b) if task.values is None else (task.values, task.offset)
        b = 0.0 if drawn.machine.get_params().get("bias") == "regularized" else b  # it is part of the kernel here
        yield Fit(what, problem, samples, beta, task.certificate, fold.test, f, b, task.errors, task.stop_reason)


def problem_of(drawn: Draw, machine: Any, samples: Any, weight: Any, k: int, q: int) -> Any:
    """The k-th problem of a machine of q classes on these rows of X."""
    y = drawn.y[samples]
    if drawn.kind == "OneClassSVM":
        return exact.one_class(weight, machine.nu)
    C = machine.C * weight
    if drawn.kind == "SVR":
        return exact.tube(y, C, machine.epsilon, bias=machine.bias)
    if machine.class_weight is not None:
        C = C * np.array([machine.class_weight[label] for label in y])
    return exact.soft_margin(_signs(machine, y, k, q), C, squared=machine.slack == "l2", bias=machine.bias)


def _signs(machine: Any, y: Any, k: int, q: int) -> Any:
    """±1 of the samples of plane k; class labels are 0, 1, 2."""
    if q == 2:
        positive = 1
    elif getattr(machine, "multiclass", "ovo") == "ovr":
        positive = k
    else:
        positive = list(combinations(range(q), 2))[k][0]
    return np.where(y == positive, 1.0, -1.0)


@contextmanager
def _recorded_fits(drawn: Draw, found: list[Fit]) -> Iterator[None]:
    """Keep what is fitted fold by fold: a ν-machine of two classes, in the scale of f."""
    if drawn.kind != "NuSVC":
        yield
        return
    original, numbers = mercer.NuSVC.fit, {tuple(x): i for i, x in enumerate(drawn.X.tolist())}

    def recording(self: Any, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        original(self, X, y, sample_weight, **options)
        rows = np.array([numbers[tuple(x)] for x in np.asarray(X).tolist()])
        C = float(np.ravel(self.equivalent_C_)[0])
        if np.isfinite(C) and C > 0:
            weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight)
            beta = np.zeros(len(rows))
            beta[self.support_] = self.dual_coef_[0]
            signs = np.where(np.asarray(y) == 1, 1.0, -1.0)
            problem = exact.nu_margin(signs, weight * C, float(np.ravel(self.nu_)[0]))
            f, b = self.decision_function(drawn.X), float(self.intercept_[0])
            everywhere = np.arange(len(drawn.X))
            found.append(
                Fit(str(self), problem, rows, beta, self.certificate_, everywhere, f, b, ended=self.stop_reason_)
            )
        return self

    with patch.object(mercer.NuSVC, "fit", recording):
        yield


# --- folds of calibrate ----------------------------------------------------------------------------------------------


def fits_of_calibration(drawn: Draw, counts: Counts) -> Iterator[Fit]:
    """All solutions of folds that give the values of samples left out; refits count as such."""
    machine, weight = drawn.machine, drawn.weight
    steps: list[tuple[Any, Any, Any]] = []
    wholes: list[Any] = []
    pairs: list[Any] = []

    def certified(problems: Any, gram: Any, betas: Any, *rest: Any) -> Any:
        proofs = originals["certify_several"](problems, gram, betas, *rest)
        steps.extend((problem, beta, proof) for problem, beta, (proof, _) in zip(problems, betas, proofs, strict=True))
        return proofs

    def solved(problem: Any, gram: Any, stop: Any, start: Any, **known: Any) -> Any:
        solution, certificate = originals["solve_certified"](problem, gram, stop, start, **known)
        step = problem, solution.beta, certificate
        places = [at for at, (earlier, *_) in enumerate(steps) if earlier is problem]
        if places:  # the start was certified, and that certificate was not good enough
            steps[places[0]] = step
        else:
            steps.append(step)
        return solution, certificate

    def together(problem: Any, bounds: Any, layout: Any, *rest: Any) -> Any:
        results = originals["solve_pair_folds"](problem, bounds, layout, *rest)
        pairs.append((layout, results))
        return results

    class Read(from_solution.Fit):  # type: ignore[misc]
        @classmethod
        def of(cls, *given: Any) -> Any:
            wholes.append(originals["Fit"].of(*given))
            return wholes[-1]

    changed = {"certify_several": certified, "solve_certified": solved, "solve_pair_folds": together, "Fit": Read}
    originals = {name: getattr(from_solution, name) for name in changed}
    with warnings.catch_warnings(), patch.multiple(from_solution, **changed):
        warnings.simplefilter("ignore")
        machine.fit(drawn.X, drawn.y, weight)
        steps.clear()
        values = out_of_fold(machine, drawn.X, drawn.y, weight, drawn.splits)
    counts["folds"] += len(drawn.splits)
    if pairs and pairs[-1][1] is not None:
        yield from _of_pairs(drawn, wholes[-1], *pairs[-1], values)
    elif len(steps) == len(drawn.splits) * values.shape[1]:
        y = wholes[-1].merged.y
        for at, (problem, beta, certificate) in enumerate(steps):
            k, f = divmod(at, len(drawn.splits))
            rows = np.arange(len(y))
            if len(beta) < len(y):  # a pair of classes, one after the other
                rows = np.concatenate([np.flatnonzero(y == c) for c in list(combinations(range(3), 2))[k]])
                assert (np.diff(np.sign(problem.p)) <= 0).all()
            yield _of_plane(drawn, wholes[-1], k, f, beta, rows, certificate, values)
    else:
        counts["folds of refits"] += len(drawn.splits)


def _of_plane(drawn: Draw, whole: Any, k: int, f: int, beta: Any, rows: Any, certificate: Any, values: Any) -> Fit:
    train, test = drawn.splits[f]
    merged = whole.merged
    row = np.full(len(drawn.X), -1)
    row[merged.rows] = merged.member
    first = np.full(len(merged.y), -1)
    first[row[merged.rows][::-1]] = merged.rows[::-1]
    mass = np.zeros(len(merged.y))
    np.add.at(mass, row[train], drawn.weights[train])
    q = len(np.unique(drawn.y))
    kept = mass[rows] > 0
    samples = first[rows][kept]
    problem = problem_of(drawn, drawn.machine, samples, mass[rows][kept], k, q)
    assert not np.any(beta[~kept])
    test = test[np.isfinite(values[test, k])]
    b = certificate.b[0] if certificate.b else 0.0
    what = f"{drawn.machine} plane {k} fold {f}"
    return Fit(what, problem, samples, beta[kept], certificate, test, values[test, k], b)


def _of_pairs(drawn: Draw, whole: Any, layout: Any, results: Any, values: Any) -> Iterator[Fit]:
    for f, result in enumerate(results):
        for k, (start, end) in enumerate(pairwise(layout.offsets.tolist())):
            rows = layout.rows[start:end]
            yield _of_plane(drawn, whole, k, f, result.beta[start:end], rows, result.certificates[k], values)
