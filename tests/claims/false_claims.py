"""One problem, one machine, and every claim of its certificate held against hundred-digit arithmetic."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np

from mercer import config_context, kernels
from mercer.places.host.prepared import PreparedSamples
from places.engines.inline import in_chunks
from places.engines.opaque import Opaque, show
from reference.cancelling_data import given, labels, samples, targets, weights
from reference.decimals import ONE, ZERO, decimals, hundred_digits
from reference.exact_kernels import Formula
from reference.given_matrices import GivenMatrix, given_matrix

EPS = Decimal(2) ** -53
SMALL = Decimal("1e-10")
# Where kernel values are computed: by this machine's core, by the kernel itself in NumPy, or by an engine.
ENGINES = ("core", "blocks", "opaque", "chunks")


@dataclass(frozen=True)
class Problem:
    """Everything that a fit depends on; its repr is the reproduction."""

    machine: str
    options: dict[str, Any] = field(default_factory=dict)
    kernel: str = "gaussian"
    family: str = "clean"
    n: int = 12
    d: int = 2
    exponent: float = 0.0
    seed: int = 0
    C: float = 1.0
    tol: float = 1e-3
    gamma: float = 1.0
    size: float = 1.0  # of the targets
    n_classes: int = 2
    weights: str | None = None
    dtype: str = "f8"  # of the samples, or the kind of a precomputed matrix
    csr: bool = False
    engine: str = "core"


@dataclass(frozen=True)
class Setting:
    """What a problem means: the samples as given and as numbers, targets, weights, and the kernel in both forms."""

    problem: Problem
    given: Any
    X: np.ndarray
    labels: np.ndarray
    targets: np.ndarray
    sample_weight: np.ndarray | None
    weight: np.ndarray
    formula: Formula
    kernel: dict[str, Any]
    cache: dict = field(default_factory=dict)

    @property
    def repeated(self):
        """Whether a row was given several times: then dual_coef_ has rounded shares of what was certified."""
        used = self.X[self.weight > 0]
        return len(np.unique(used, axis=0)) < len(used)

    def K(self, rows=None, constant=ZERO):
        """The exact matrix of some rows, with a constant added to the kernel."""
        if "K" not in self.cache:
            self.cache["K"] = self.formula.matrix(self.X)
        whole = self.cache["K"]
        return (whole if rows is None else whole[np.ix_(rows, rows)]) + constant


def _function(gamma):
    def kernel(A, B):
        A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
        return np.exp(-gamma * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))

    return kernel


def both_kernels(name, gamma, width, d):
    """(the formula, mercer's parameters) of a kernel of about this width."""
    square, plain = float(gamma / width / width), float(gamma / width)
    match name:
        case "linear":
            return Formula("linear"), {"kernel": "linear"}
        case "Linear()":  # never solved as a linear machine
            return Formula("linear", scale=2.0), {"kernel": 2.0 * kernels.Linear()}
        case "gaussian":
            return Formula("gaussian", square), {"kernel": "rbf", "gamma": square}
        case "laplacian":
            return Formula("laplacian", plain), {"kernel": "laplacian", "gamma": plain}
        case "polynomial":
            return (
                Formula("polynomial", square, 3, 1.0),
                {"kernel": "poly", "gamma": square, "degree": 3, "coef0": 1.0},
            )
        case "homogeneous":
            return Formula("polynomial", square, 2, 0.0), {"kernel": "poly", "gamma": square, "degree": 2}
        case "sigmoid":
            return Formula("sigmoid", square, 3, -0.5), {"kernel": "sigmoid", "gamma": square, "coef0": -0.5}
        case "cosine":
            return Formula("cosine"), {"kernel": "cosine"}
        case "mahalanobis":
            M = square * (np.eye(d) + 0.25)
            return Formula("mahalanobis", M=tuple(map(tuple, M.tolist()))), {"kernel": kernels.Gaussian(M=M)}
        case "scaled":
            return Formula("gaussian", square, scale=2.5), {"kernel": 2.5 * kernels.Gaussian(gamma=square)}
        case "shifted":
            return Formula("gaussian", square, constant=0.5), {"kernel": kernels.Gaussian(gamma=square) + 0.5}
        case "matern":
            length = float(width / np.sqrt(gamma))
            return Formula("matern", 1 / length**2), {"kernel": kernels.Matern(nu=1.5, length_scale=length)}
        case "chi2":
            return Formula("chi2", plain), {"kernel": kernels.Chi2(gamma=plain)}
        case "anova":
            return Formula("anova", square), {"kernel": kernels.ANOVA(gamma=square)}
        case "columns":
            some = kernels.Gaussian(gamma=square).on([0]) + square * kernels.Linear().on([d - 1])
            return Formula("columns", square), {"kernel": some}
        case "callable":
            return Formula("callable", square), {"kernel": _function(square)}
        case "sum":
            both = kernels.Gaussian(gamma=square) + square * kernels.Linear()
            return Formula("gaussian + linear", square), {"kernel": both}
    raise ValueError(name)


KERNELS = [
    "gaussian",
    "linear",
    "polynomial",
    "laplacian",
    "cosine",
    "sigmoid",
    "mahalanobis",
    "scaled",
    "shifted",
    "homogeneous",
    "Linear()",
    "matern",
    "chi2",
    "anova",
    "columns",
    "callable",
    "sum",
]


def setting(problem):
    p = problem
    X, width, plain = samples(p.family, p.n, p.d, p.exponent, p.seed)
    if p.kernel == "chi2":
        X = np.abs(X)
    if p.kernel == "precomputed":
        X = plain
        handed, values = given_matrix(p.dtype, plain, p.gamma, p.exponent, p.seed)
        formula, parameters = GivenMatrix(values), {"kernel": "precomputed"}
    else:
        handed, X = given(X, p.dtype, p.csr)
        formula, parameters = both_kernels(p.kernel, p.gamma, width, p.d)
    sample_weight = weights(p.weights, p.n, p.seed)
    return Setting(
        problem=p,
        given=on_the_engine(handed) if p.engine == "opaque" else handed,
        X=X,
        labels=labels(plain, p.n_classes, p.seed),
        targets=targets(plain, p.size, p.seed),
        sample_weight=sample_weight,
        weight=np.ones(p.n) if sample_weight is None else sample_weight,
        formula=formula,
        kernel=parameters,
    )


def answered(answer):
    """Numbers that a machine answered, wherever they live."""
    return show(answer) if isinstance(answer, Opaque) else answer


def on_the_engine(X):
    """X as the engine's own array, of float32 or float64 as it asks for."""
    return Opaque(X if X.dtype in (np.float32, np.float64) else X.astype(np.float64))


def computed_by(engine) -> AbstractContextManager[Any]:
    """While kernel values are computed there, or on a device; X of the right type chooses the opaque engine."""
    if engine == "chunks":
        return in_chunks(sizes=(7, 0, 11), outer_rows=12)
    if engine not in ENGINES:
        return config_context(device=engine)
    return patch.object(PreparedSamples, "of", lambda *_: None) if engine == "blocks" else nullcontext()


def read(vectors):
    """A machine's vectors as numbers, wherever they live."""
    vectors = vectors.host() if hasattr(vectors, "host") else vectors
    return np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors, dtype=np.float64)


# The problems that were refused, of which there must be few.
REFUSED = []


def fitted(estimator, s, target=None, told=()):
    """The fitted machine, or None where it refuses the problem in words of its own; errors `told` are handed back."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            if target is None:
                return estimator.fit(s.given, sample_weight=s.sample_weight)
            return estimator.fit(s.given, target, sample_weight=s.sample_weight)
        except np.linalg.LinAlgError:
            raise
        except told as error:
            return error
        except (ValueError, FloatingPointError):
            REFUSED.append(s.problem)
            return None


@dataclass(frozen=True)
class Claim:
    """A part of a certificate beside the truth about it."""

    certificate: Any
    truth: Any
    derived: bool = False  # its numbers are rounded sums of those of its parts
    what: str = ""


def compare(claim):
    """Every claim of one part that is not true, in words."""
    c, t, name = claim.certificate, claim.truth, claim.what
    numbers = {"primal": c.primal, "dual": c.dual, "gap": c.gap, "violation": c.violation, **c.kkt}
    broken = [f"{name}{key} is NaN" for key, value in numbers.items() if np.isnan(value)]
    if broken:
        return broken
    if not all(np.isfinite([c.primal, c.dual])) or not np.isfinite(c.gap):
        return [] if np.isinf(c.gap) else [f"{name}primal {c.primal}, dual {c.dual}, gap {c.gap}"]
    primal, dual, gap, violation = map(decimals, (c.primal, c.dual, c.gap, c.violation))
    size = abs(t.primal) + abs(t.dual)
    rounding = 4 * EPS * (t.magnitude if claim.derived else ZERO)
    of_values = 8 * EPS * size + (rounding * t.mass if claim.derived else ZERO)

    def at_most(what, true, claimed, slack=ZERO):
        if true > claimed * (ONE + Decimal("1e-9")) + slack:
            broken.append(f"{name}{what}: claimed {float(claimed):.6g}, true {float(true):.6g}")

    at_most("violation", t.violation, violation, rounding + 4 * EPS * t.curved)
    at_most("gap", t.primal - t.dual, gap, of_values)
    if c.primal - c.dual > c.gap:
        broken.append(f"{name}printed: primal - dual {float(primal - dual):.6g}, gap {c.gap:.6g}")
    if gap < 0:
        broken.append(f"{name}gap {c.gap:.6g} is negative")
    at_most("box", t.box, decimals(c.kkt.get("dual feasibility: box", 0.0)), 4 * EPS * t.mass)
    at_most("equality", t.equality, decimals(c.kkt.get("dual feasibility: equality", 0.0)), 8 * EPS * t.totals)
    of_gradients = rounding + 4 * EPS * t.curved
    at_most("primal feasibility", t.outward, decimals(c.kkt.get("primal feasibility", 0.0)), of_gradients)
    at_most("complementary slackness", t.inward, decimals(c.kkt.get("complementary slackness", 0.0)), of_gradients)
    # `primal` is an upper and `dual` a lower bound, whatever the certificate was computed in.
    at_most("primal value above `primal`", t.primal - primal, ZERO, of_values)
    at_most("`dual` above the dual value", dual - t.dual, ZERO, of_values)
    at_most("primal's error", abs(t.primal - primal), gap, Decimal("1e-10") * size + of_values)
    # A β that misses its sum has a value that may be above the primal one: `dual` is a bound, below both.
    at_most("dual's error", abs(t.dual - dual), gap + max(ZERO, t.dual - t.primal), Decimal("1e-10") * size + of_values)
    return broken


def against(certificate, value, rivals, what="", terms=ZERO):
    """What is wrong with a certificate of a solution of this value, given the values of other points.

    No dual value of a convex problem is above the optimum, so that `gap` includes what rounding adds to `primal`. With
    an indefinite kernel it may be, and `primal` is a bound that the sizes of its terms, added up, limit.
    """
    c = certificate
    numbers = {"primal": c.primal, "dual": c.dual, "gap": c.gap, "violation": c.violation, **c.kkt}
    broken = [f"{what}{key} is NaN" for key, number in numbers.items() if np.isnan(number)]
    if broken or np.isinf(c.gap):
        return broken
    primal, dual, gap = map(decimals, (c.primal, c.dual, c.gap))
    if c.primal - c.dual > c.gap:
        broken.append(f"{what}printed: primal - dual {float(primal - dual):.6g}, gap {c.gap:.6g}")
    excess = terms if c.gap_measures == "stationarity" else abs(value)
    if abs(value - primal) > gap + SMALL * max(excess, abs(value)):
        broken.append(f"{what}primal: claimed {c.primal:.10g}, true {float(value):.10g}")
    if value > primal + 8 * EPS * abs(value):
        broken.append(f"{what}primal as an upper bound: claimed {c.primal:.17g}, true {float(value):.17g}")
    best = (
        min([value, *rivals]) if c.gap_measures == "optimality" else value
    )  # without a convex problem there is no bound
    if c.gap_measures == "stationarity":  # of an indefinite kernel the dual value bounds nothing
        best = max(best, primal)
    slack = 8 * EPS * (abs(best) + abs(value))
    if dual > best + slack:
        broken.append(f"{what}dual above a point by: claimed 0, true {float(dual - best):.3g}, of {float(best):.6g}")
    if value - best > gap * (1 + Decimal("1e-9")) + slack:
        broken.append(f"{what}gap: claimed {c.gap:.6g}, true {float(value - best):.6g}")
    return broken


def whole(certificate, claims):
    """What a certificate says of all its parts together."""
    if len(claims) < 2:
        return []
    total = replace(claims[0].truth, **{k: sum(getattr(c.truth, k) for c in claims) for k in ("primal", "dual")})
    worst = {k: max(getattr(c.truth, k) for c in claims) for k in ("violation", "box", "equality", "outward", "inward")}
    sums = {k: sum(getattr(c.truth, k) for c in claims) for k in ("magnitude", "mass", "curved", "totals")}
    return compare(Claim(certificate, replace(total, **worst, **sums), derived=True, what="total "))


def proves_too_much(certificate, formula):
    """Whether the words claim more than is known of the kernel."""
    if not formula.known_psd and "optimality" in (certificate.proves, certificate.gap_measures):
        return [f"proves optimality with the kernel {formula.name}"]
    return []


def outputs(what, got, u, b, s, coefficients):
    """Whether f as predicted equals Σβk + b up to what float64 loses of these terms."""
    scale = s.formula.error_scale(s.X).astype(object)
    lost = np.array([[Decimal(float(min(v, 1e300))) for v in row] for row in scale], dtype=object)
    allowed = 64 * EPS * (lost @ np.abs(coefficients) + abs(b))
    if s.formula.of_distances:  # norms take the place of differences where an exponent is off by no more than 1e-11
        allowed = allowed + Decimal("1e-11") * (lost @ np.abs(coefficients))
    if s.problem.dtype == "f4":  # predicted in float32 where that moves f by no more than about this
        allowed = allowed + Decimal("1.5e-4") + 2**30 * EPS * (np.abs(u) + abs(b))
    excess = np.abs(decimals(np.where(np.isfinite(got), got, 1e300)) - u - b) - allowed
    worst = int(np.argmax(excess))
    if excess[worst] > 0:
        wrong = abs(float(decimals(float(got[worst])) - u[worst] - b)) if np.isfinite(got[worst]) else np.inf
        told = f"f of row {worst} is {got[worst]:.6g}, should be {float(u[worst] + b):.6g}"
        return [f"{what}: error claimed {float(allowed[worst]):.3g}, true {wrong:.3g}; {told}"]
    return []


def in_hundred_digits(function):
    def run(*args):
        with hundred_digits():
            return function(*args)

    return run
