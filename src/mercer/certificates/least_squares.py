"""Certificates of least squares: per output the dual problem's, and what takes its place where there is none."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Floats, sums_by
from mercer.certificates.certificate import Certificate
from mercer.certificates.dual import PROOF, certificate_of
from mercer.gram.gram import Products
from mercer.gram.linear_gram import LinearGram
from mercer.gram.sums import Sums
from mercer.problems.least_squares import LeastSquares


def certify_outputs(problem: LeastSquares, gram: Products, beta: Floats, U: Floats) -> Certificate:
    """One part per output; U = K times β summed over the rows of each distinct sample, computed afresh."""
    proves = PROOF[gram.positive_definite]
    return Certificate.total(
        [
            certificate_of(problem.dual(k), np.ascontiguousarray(beta[:, k]), U[:, k], proves, "float64")
            for k in range(problem.n_outputs)
        ]
    )


def certify_weights(
    problem: LeastSquares, linear: LinearGram, W: Floats, b: Floats
) -> tuple[Floats | None, Certificate]:
    """The β of the rows that weights of the features give, and whether W and b are what that β gives; no β at λ = 0."""
    F = linear.times(W) + b
    if problem.lam == 0:
        return None, certify_limit(problem, linear, np.zeros_like(F), F - b, b)
    beta = problem.duals(F)
    if problem.bias:  # what rounding left of the sum, spread by weight
        beta -= (problem.weight / problem.mass)[:, None] * beta.sum(axis=0)
    joint = np.column_stack([sums_by(problem.member, column, problem.n) for column in beta.T])
    return beta, certify_outputs(problem, linear, beta, linear.products(joint))


def certify_limit(problem: LeastSquares, gram: Products, C: Floats, U: Floats, b: Floats) -> Certificate:
    """λ = 0, where the objective ½Σw(y − f)² has no dual: the normal equations KW(y − f) = 0, Σw(y − f) = 0.

    `gap` is what the best rescaling of f would gain, to first order.
    """
    G = gram.products(problem.total[:, None] * (problem.mean - U - b))
    R = problem.Y - U[problem.member] - b
    parts = []
    for k in range(problem.n_outputs):
        risk = 0.5 * float(problem.weight @ R[:, k] ** 2)
        gain = abs(float(C[:, k] @ G[:, k]))
        kkt = {
            "normal equations": float(np.abs(G[:, k]).max(initial=0.0)),
            "residuals sum to 0": abs(float(problem.weight @ R[:, k])) if problem.bias else 0.0,
        }
        parts.append(
            Certificate(
                primal=risk,
                dual=risk - gain,
                gap=gain,
                violation=max(kkt.values()),
                kkt=kkt,
                proves="stationarity",
                b=(float(b[k]),) if problem.bias else (),
            )
        )
    return Certificate.total(parts)


def certify_sums(sums: Sums, W: Floats, lam: float) -> Certificate:
    """The same problem where only sums over the samples are left.

    With β = w(y − f)/λ and v = X̃'β = (X̃'Wỹ − X̃'WX̃w)/λ the duality gap is ½‖w − v‖²; at λ = 0 the gradient remains.
    """
    gradient = sums.xy - sums.xx @ W - lam * W  # λ(v − w)
    risk = sums.yy - 2 * np.einsum("dq,dq->q", W, sums.xy) + np.einsum("dq,dq->q", W, sums.xx @ W)
    b = sums.y - sums.x @ W
    parts = []
    for k in range(W.shape[1]):
        w, g = W[:, k], gradient[:, k]
        if lam > 0:
            primal = 0.5 * float(w @ w) + 0.5 * max(0.0, float(risk[k])) / lam
            gap = 0.5 * float(g @ g) / lam**2
        else:
            primal, gap = 0.5 * max(0.0, float(risk[k])), abs(float(w @ g))
        worst = float(np.abs(g).max(initial=0.0))
        parts.append(
            Certificate(
                primal=primal,
                dual=primal - gap,
                gap=gap,
                violation=worst,
                kkt={"normal equations": worst},
                proves="optimality" if lam > 0 else "stationarity",
                precision="float64, from sums over the samples",
                worst=int(np.argmax(np.abs(g))),
                b=(float(b[k]),) if sums.bias else (),
            )
        )
    return Certificate.total(parts)
