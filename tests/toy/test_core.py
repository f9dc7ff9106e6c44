"""The core in the browser against the library: the same α, b, certificates, paths, steps and verdicts, to 1e-9.

Node loads the very file that the page carries. A difference would be a picture that lies.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import mercer
from mercer import SVC, SVR, OneClassSVM, kernels, toy
from mercer.errors import NotSeparableError
from mercer.teaching import trace as run_trace

HERE = Path(__file__).parent
NODE = shutil.which("node")
PROBLEMS = 200  # of each machine
AGREE = 1e-9

pytestmark = [pytest.mark.page, pytest.mark.skipif(NODE is None, reason="node is not installed")]


def solved(problems: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the page's core finds; infinities and NaN come as words."""
    lines = "".join(json.dumps(problem) + "\n" for problem in problems)
    assert NODE is not None
    run = subprocess.run(
        [NODE, str(HERE / "solve.mjs"), str(toy.WEB)], input=lines, capture_output=True, text=True, timeout=250
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def a_kernel(rng: np.random.Generator, *, single: bool = False) -> tuple[list[dict[str, Any]], Any]:
    """A random kernel as the page has it, and as the library has it."""
    terms, made = [], None
    for _ in range(1 if single else rng.choice([1, 1, 1, 2])):
        kind = str(rng.choice(["linear", "poly", "rbf", "laplacian"]))
        gamma, degree, coef0 = float(10 ** rng.uniform(-0.3, 0.7)), int(rng.integers(1, 5)), float(rng.uniform(0, 1.5))
        scale = 1.0 if single else float(rng.uniform(0.5, 2.0))
        term = {"kind": kind, "scale": scale, "gamma": gamma, "degree": degree, "coef0": coef0}
        own = {
            "linear": lambda: kernels.Linear(),
            "poly": lambda gamma=gamma, degree=degree, coef0=coef0: kernels.Polynomial(
                degree=degree, gamma=gamma, coef0=coef0
            ),
            "rbf": lambda gamma=gamma: kernels.Gaussian(gamma=gamma),
            "laplacian": lambda gamma=gamma: kernels.Laplacian(gamma=gamma),
        }[kind]()
        own = own if scale == 1 else scale * own
        terms.append(term)
        made = own if made is None else made + own
    return terms, made


def points(rng: np.random.Generator) -> np.ndarray:
    n = int(rng.integers(8, 45))
    return np.round(rng.uniform(-1.5, 1.5, size=(n, 2)), 6)


def two_classes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points with the label 1 about on one side of a line, at least two of each."""
    X = points(rng)
    y = np.where(X @ rng.normal(size=2) + rng.normal(scale=rng.choice([0.05, 0.5, 2.0]), size=len(X)) > 0, 1, 0)
    y[:2], y[2:4] = 0, 1
    return X, y


def fitted(machine: Any, X: np.ndarray, *y: Any) -> Any:
    """The machine as exact as it gets: on its way to tol=1e-12 it may meet the rounding of float64.

    Sums of kernels are given as matrices: for values that NumPy computes the library's certificates allow much more
    rounding than the page's core makes.
    """
    if isinstance(machine.kernel, kernels.Sum):
        X, machine = machine.kernel(X), machine.set_params(kernel="precomputed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return machine.set_params(tol=1e-12).fit(X, *y)


def values(kernel: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(kernel(X))


def coefficients(model: Any, n: int) -> np.ndarray:
    out = np.zeros(n)
    out[model.support_] = model.dual_coef_[0]
    return out


STRICTLY_CONVEX = ("rbf", "laplacian")


def assert_same(
    ours: dict[str, Any], model: Any, beta: np.ndarray, scale: float, K: np.ndarray, terms: list[dict[str, Any]]
) -> None:
    """The same solution: always, where it is unique; else another one with the same w and objective.

    Both certificates bracket the optimum, and each bracket counts its own roundings, which are more for values that
    NumPy computed: so ours has to agree with theirs up to the width of theirs.
    """
    proof, b = model.certificate_, float(model.intercept_[0])
    size = max(1.0, abs(proof.dual))
    width = proof.primal - proof.dual
    assert 0 <= width <= 1e-6 * size
    assert ours["primal"] == pytest.approx(proof.primal, abs=AGREE * size + width)
    assert ours["dual"] == pytest.approx(proof.dual, abs=AGREE * size + width)
    assert 0 <= ours["gap"] <= AGREE * size
    for name in ("box", "equality", "feasibility", "slackness", "violation"):
        assert 0 <= ours[name] <= AGREE * max(1.0, scale) + 2 * proof.violation  # kernel values of 1e5 round more
    difference = np.array(ours["beta"]) - beta
    alike = bool(np.abs(difference).max() <= AGREE * scale)
    if not alike:  # features of low degree: points may exchange α without changing w
        assert not any(term["kind"] in STRICTLY_CONVEX for term in terms)
        assert abs(difference @ K @ difference) <= AGREE * scale
    if alike and ours["nFree"] > 0:
        assert ours["b"] == pytest.approx(b, rel=AGREE, abs=AGREE * max(1.0, scale))


@cache
def svc_problems() -> tuple[list[dict[str, Any]], list[Any]]:
    rng = np.random.default_rng(1)
    given, wanted = [], []
    for _ in range(PROBLEMS):
        X, y = two_classes(rng)
        terms, kernel = a_kernel(rng)
        C = float(10 ** rng.uniform(-2, 1.5))
        model = fitted(SVC(kernel=kernel, C=C), X, y)
        # The page's first class is the positive one.
        given.append(
            {"rows": X.tolist(), "targets": (1 - y).tolist(), "kernel": terms, "machine": {"name": "svc", "C": C}}
        )
        wanted.append((model, len(X), C, values(kernel, X)))
    return given, wanted


def test_svc() -> None:
    given, wanted = svc_problems()
    for problem, found, (model, n, C, K) in zip(given, solved(given), wanted, strict=True):
        [ours] = found["parts"]
        assert_same(ours, model, coefficients(model, n), max(1.0, C), K, problem["kernel"])


def test_svc_of_several_classes_is_one_machine_for_each_pair() -> None:
    rng = np.random.default_rng(2)
    given, wanted = [], []
    for _ in range(PROBLEMS // 4):
        X = points(rng)
        y = rng.integers(0, 4, len(X))
        y[:8] = [0, 0, 1, 1, 2, 2, 3, 3]
        terms, kernel = a_kernel(rng)
        C = float(10 ** rng.uniform(-2, 1))
        given.append({"rows": X.tolist(), "targets": y.tolist(), "kernel": terms, "machine": {"name": "svc", "C": C}})
        whole = fitted(SVC(kernel=kernel, C=C), X, y)
        pairs = []
        for a in range(4):
            for b in range(a + 1, 4):
                both = np.flatnonzero((y == a) | (y == b))
                model = fitted(SVC(kernel=kernel, C=C), X[both], (y[both] == a).astype(int))
                beta = np.zeros(len(X))
                beta[both] = coefficients(model, len(both))
                pairs.append((model, beta))
        wanted.append((whole, pairs, C, values(kernel, X), terms))
    for found, (whole, pairs, C, K, terms) in zip(solved(given), wanted, strict=True):
        assert len(found["parts"]) == 6
        for ours, (model, beta) in zip(found["parts"], pairs, strict=True):
            assert_same(ours, model, beta, max(1.0, C), K, terms)
        total = sum(part["primal"] for part in found["parts"])
        assert total == pytest.approx(whole.certificate_.primal, rel=1e-8)


def test_svr() -> None:
    rng = np.random.default_rng(3)
    given, wanted = [], []
    for _ in range(PROBLEMS):
        n = int(rng.integers(8, 40))
        X = np.round(rng.uniform(-1.5, 1.5, size=(n, 1)), 6)
        y = np.round(np.sin(3 * X[:, 0]) + rng.normal(scale=0.3, size=n), 6)
        terms, kernel = a_kernel(rng)
        C, epsilon = float(10 ** rng.uniform(-2, 1)), float(rng.uniform(0.01, 0.4))
        model = fitted(SVR(kernel=kernel, C=C, epsilon=epsilon), X, y)
        machine = {"name": "svr", "C": C, "epsilon": epsilon}
        given.append({"rows": X.tolist(), "targets": y.tolist(), "kernel": terms, "machine": machine})
        wanted.append((model, n, C, values(kernel, X), terms))
    for found, (model, n, C, K, terms) in zip(solved(given), wanted, strict=True):
        [ours] = found["parts"]
        assert_same(ours, model, coefficients(model, n), max(1.0, C), K, terms)


def test_one_class() -> None:
    rng = np.random.default_rng(4)
    given, wanted = [], []
    for _ in range(PROBLEMS):
        X = points(rng)
        terms, kernel = a_kernel(rng)
        nu = float(rng.uniform(0.05, 0.9))
        model = fitted(OneClassSVM(kernel=kernel, nu=nu), X)
        given.append(
            {"rows": X.tolist(), "targets": [0] * len(X), "kernel": terms, "machine": {"name": "oneclass", "nu": nu}}
        )
        wanted.append((model, terms, len(X), values(kernel, X)))
    for found, (model, terms, n, K) in zip(solved(given), wanted, strict=True):
        [ours] = found["parts"]
        assert_same(ours, model, coefficients(model, n), 1.0, K, terms)


def is_separable(X: np.ndarray, y: np.ndarray, degree: int) -> bool:
    """Whether a polynomial of this degree separates the points, by a linear program."""
    x, z = X.T
    features = np.column_stack([x**i * z**j for i in range(degree + 1) for j in range(degree + 1 - i)])
    sign = np.where(y > 0, 1.0, -1.0)
    m = features.shape[1]
    return linprog(np.zeros(m), -sign[:, None] * features, -np.ones(len(y)), bounds=[(None, None)] * m).status == 0


def test_hard_margin() -> None:
    """Verdicts, and the margin where there is one."""
    rng = np.random.default_rng(5)
    given, wanted = [], []
    for _ in range(PROBLEMS):
        X, y = two_classes(rng)
        terms, kernel = a_kernel(rng, single=True)
        if terms[0]["kind"] == "poly":
            terms[0]["degree"] = min(terms[0]["degree"], 2)
            kernel = kernels.Polynomial(**{name: terms[0][name] for name in ("degree", "gamma", "coef0")})
        try:
            model, verdict = fitted(SVC(kernel=kernel, C=np.inf), X, y), 1
        except NotSeparableError as error:
            model, verdict = None, 0
            if terms[0]["kind"] in STRICTLY_CONVEX:
                verdict = -1
            elif error.verdict != "not separable":  # the library leaves it open, because it allows for more rounding
                assert not is_separable(X, y, terms[0]["degree"] if terms[0]["kind"] == "poly" else 1)
        given.append({"rows": X.tolist(), "targets": (1 - y).tolist(), "kernel": terms, "machine": {"name": "hard"}})
        wanted.append((model, verdict, values(kernel, X), terms))
    verdicts = [verdict for _, verdict, _, _ in wanted]
    assert min(verdicts.count(0), verdicts.count(1)) > 0.2 * PROBLEMS
    resolved = 0
    for found, (model, verdict, K, terms), problem in zip(solved(given), wanted, given, strict=True):
        [ours] = found["parts"]
        assert ours["verdict"] == verdict, problem
        if model is None:
            assert ours["primal"] == "Infinity"
            continue
        beta, proof = coefficients(model, len(K)), model.certificate_
        if proof.dual > 100:  # ‖w‖² of hulls that nearly touch has lost digits, about as many as 1/‖w‖² has
            assert ours["dual"] == pytest.approx(proof.dual, rel=1e-2)
            continue
        resolved += 1
        assert_same(ours, model, beta, max(1.0, float(np.abs(beta).max())), K, terms)
        hull = np.array(found["hull"][0])
        assert hull[hull > 0].sum() == pytest.approx(1.0)
        assert hull[hull < 0].sum() == pytest.approx(-1.0)
    assert resolved > 0.6 * verdicts.count(1)


def test_a_gaussian_kernel_is_refuted_only_by_a_point_with_both_labels() -> None:
    """It separates distinct points, however small the margin: that is left open, as the library leaves it."""
    narrow = [{"kind": "rbf", "scale": 1.0, "gamma": 1e-8, "degree": 1, "coef0": 0.0}]
    X = [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [0.2, 0.2], [0.7, 0.7], [0.9, 0.1]]
    y = [0, 1, 0, 1, 1, 0]
    both = {"rows": [*X, X[0]], "targets": [*y, 1], "kernel": narrow, "machine": {"name": "hard"}}
    distinct = {"rows": X, "targets": y, "kernel": narrow, "machine": {"name": "hard"}}
    with pytest.raises(NotSeparableError) as raised:
        SVC(kernel=kernels.Gaussian(gamma=1e-8), C=np.inf).fit(X, y)
    assert raised.value.verdict == "undecided"
    assert [found["parts"][0]["verdict"] for found in solved([distinct, both])] == [-1, 0]


def test_path_in_C() -> None:
    rng = np.random.default_rng(6)
    given, wanted = [], []
    for _ in range(PROBLEMS):
        X, y = two_classes(rng)
        terms, kernel = a_kernel(rng)
        low, high = 0.01, 30.0
        Cs = np.exp(rng.uniform(math.log(low), math.log(high), 4)).tolist()
        if isinstance(kernel, kernels.Sum):  # as in `fitted`
            path = mercer.svm_path(kernel(X), y, kernel="precomputed", C_min=low, C_max=high)
        else:
            path = mercer.svm_path(X, y, kernel=kernel, C_min=low, C_max=high)
        given.append(
            {
                "rows": X.tolist(), "targets": (1 - y).tolist(), "kernel": terms, "machine": {"name": "svc", "C": 1.0},
                "path": [low, high], "along": Cs,
            }
        )  # fmt: skip
        wanted.append((path, Cs))
    for found, (path, Cs) in zip(solved(given), wanted, strict=True):
        assert found["path"]["end"] == "converged"
        segments = found["path"]["segments"]
        assert segments[0]["from"] == 0.01
        assert segments[-1]["to"] == 30.0
        breakpoints = np.array([segment["to"] for segment in segments[:-1]])
        # Where all α are bounded, rounding of their sum can make the library call one of them free, and see it leave.
        if len(breakpoints) == 0:
            assert (path.n_free_ <= 1).all()
            continue
        place = np.abs(path.C_[:, None] / breakpoints - 1).argmin(axis=1)
        real = np.abs(path.C_ / breakpoints[place] - 1) <= AGREE
        assert (path.n_free_[~real] == 1).all()
        np.testing.assert_allclose(breakpoints, path.C_[real], rtol=AGREE)
        free = np.array([segment["nFree"] for segment in segments[:-1]])
        assert ((free == path.n_free_[real]) | ((free == 0) & (path.n_free_[real] == 1))).all()
        # The library counts what is not zero at the breakpoint, where one or two free α may have become so.
        bounded = np.array([segment["nBounded"] for segment in segments[:-1]])
        assert np.isin((bounded + free - path.n_support_[real]), [0, 1, 2]).all()
        same = free == path.n_free_[real]
        biases = np.array([s["bTo"] for s in segments[:-1]])
        np.testing.assert_allclose(biases[same], path.intercept_[real][same], rtol=AGREE, atol=AGREE)
        for C, along in zip(Cs, found["along"], strict=True):
            np.testing.assert_allclose(np.abs(along["beta"]), path.alpha(C), rtol=0, atol=AGREE * max(1.0, C))
            assert along["violation"] <= AGREE * max(1.0, C)


def test_path_goes_past_points_that_coincide() -> None:
    """A grid of points has copies, collinear points and ties: every C is still proven optimal."""
    rng = np.random.default_rng(7)
    given = []
    for _ in range(20):
        X = rng.integers(-2, 3, size=(30, 2)).astype(float)
        y = (X[:, 0] + X[:, 1] + rng.normal(size=30) > 0).astype(int)
        terms = [{"kind": str(rng.choice(["linear", "rbf"])), "scale": 1.0, "gamma": 0.5, "degree": 1, "coef0": 0.0}]
        given.append(
            {
                "rows": X.tolist(), "targets": (1 - y).tolist(), "kernel": terms, "machine": {"name": "svc", "C": 1.0},
                "path": [0.01, 10.0], "along": np.geomspace(0.011, 9.9, 25).tolist(),
            }
        )  # fmt: skip
    for found in solved(given):
        assert found["path"]["end"] == "converged"
        assert max(along["violation"] for along in found["along"]) < 1e-8


@pytest.mark.parametrize("rule", ["most violating", "maximum gain", "second order"])
def test_steps_of_the_algorithm(rule: str) -> None:
    rng = np.random.default_rng(8)
    given, wanted = [], []
    for _ in range(PROBLEMS // 5):
        X, y = two_classes(rng)
        terms, kernel = a_kernel(rng, single=True)
        C = float(10 ** rng.uniform(-1, 1))
        wanted.append(run_trace(X, 2 * y - 1, kernel=kernel, C=C, rule=rule, tol=1e-2, max_steps=200))
        given.append(
            {
                "rows": X.tolist(), "targets": (1 - y).tolist(), "kernel": terms, "machine": {"name": "svc", "C": C},
                "trace": {"rule": rule, "tol": 1e-2, "most": 200},
            }
        )  # fmt: skip
    ties = 0
    for found, theirs in zip(solved(given), wanted, strict=True):
        ours = found["trace"]
        alpha = np.zeros(theirs.problem.n)
        for step, other in zip(ours["steps"], theirs.steps, strict=False):
            if (step["i"], step["j"]) != other.chosen:
                assert_equally_good(theirs.problem, alpha, rule, (step["i"], step["j"]), other.chosen)
                ties += 1
                break
            alpha = other.alpha
            assert step["size"] == pytest.approx(other.size, rel=1e-7, abs=AGREE)
            assert step["dual"] == pytest.approx(other.dual, rel=AGREE, abs=AGREE)
            assert step["violation"] == pytest.approx(other.violation, abs=1e-7)
            np.testing.assert_allclose(step["alpha"], other.alpha, rtol=0, atol=1e-8)
        else:
            assert len(ours["steps"]) == len(theirs.steps)
            assert ours["converged"] == theirs.converged
    assert ties < 0.8 * len(given)


def assert_equally_good(problem: Any, alpha: np.ndarray, rule: str, one: Any, other: Any) -> None:
    """After a step both its gradients are equal but for rounding, so that the next pair may be either of two."""
    h = problem.y * problem.gradient(alpha)
    K = problem.K

    def worth(pair: Any) -> tuple[float, float]:
        i, j = map(int, pair)
        ahead = h[i] - h[j]
        return h[i], ahead if rule == "most violating" else ahead**2 / (K[i, i] + K[j, j] - 2 * K[i, j])

    (first, gain), (first_too, gain_too) = worth(one), worth(other)
    if rule != "maximum gain":
        assert first == pytest.approx(first_too, rel=1e-7, abs=1e-9)
        if one[0] != other[0] and rule == "second order":
            return
    assert gain == pytest.approx(gain_too, rel=1e-7, abs=1e-9)


def test_grid_is_the_decision_function() -> None:
    rng = np.random.default_rng(9)
    given, wanted = [], []
    for _ in range(40):
        X, y = two_classes(rng)
        terms, kernel = a_kernel(rng)
        columns, rows = int(rng.integers(2, 9)), int(rng.integers(2, 9))
        left, top, width, height = -1.0, 1.5, 2.5, -3.0
        model = fitted(SVC(kernel=kernel, C=2.0), X, y)
        across, down = np.linspace(left, left + width, columns), np.linspace(top, top + height, rows)
        places = np.array([[a, b] for b in down for a in across])
        given.append(
            {
                "rows": X.tolist(), "targets": (1 - y).tolist(), "kernel": terms, "machine": {"name": "svc", "C": 2.0},
                "grid": [left, top, width, height, columns, rows],
            }
        )  # fmt: skip
        wanted.append(model.decision_function(kernel(places, X) if isinstance(kernel, kernels.Sum) else places))
    for found, values in zip(solved(given), wanted, strict=True):
        np.testing.assert_allclose(found["grid"], values, rtol=1e-8, atol=1e-8 * np.abs(values).max())


def test_copies_share_their_coefficient() -> None:
    X = [[0.0, 0.0], [0.0, 0.0], [1.0, 0.2], [1.0, 0.2], [0.4, 0.9], [0.5, -0.5]]
    y = [0, 0, 1, 1, 0, 1]
    terms = [{"kind": "rbf", "scale": 1.0, "gamma": 1.0, "degree": 1, "coef0": 0.0}]
    model = SVC(gamma=1.0, C=5.0, tol=1e-12).fit(X, y)
    [found] = solved(
        [{"rows": X, "targets": [1 - label for label in y], "kernel": terms, "machine": {"name": "svc", "C": 5.0}}]
    )
    np.testing.assert_allclose(found["parts"][0]["beta"], coefficients(model, 6), atol=AGREE)


def test_kernel_values_that_overflow_are_told() -> None:
    terms = [{"kind": "poly", "scale": 1.0, "gamma": 1e200, "degree": 9, "coef0": 0.0}]
    [found] = solved(
        [{"rows": [[1.0, 2.0], [3.0, 1.0]], "targets": [0, 1], "kernel": terms, "machine": {"name": "svc", "C": 1.0}}]
    )
    assert found == {"finite": False}
