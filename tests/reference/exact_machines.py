"""Each machine's dual problem in the letters of `exact_duals`, written from the literature and docs/, not from mercer.

C is one number per sample. Samples of weight 0 must be left out before.
"""

from decimal import Decimal

import numpy as np

from reference.decimals import all_digits
from reference.exact_duals import dual


def soft_margin(s, C, *, squared=False, bias=True):
    """½‖w‖² + ΣC_iξ_i, or ½‖w‖² + ½ΣC_iξ_i²; s is ±1."""
    bound = np.full(len(s), np.inf) if squared else C
    return dual(
        s,
        np.where(s > 0, 0.0, -bound),
        np.where(s > 0, bound, 0.0),
        d=1 / C if squared else None,
        totals=(0.0,) if bias is True else (),
    )


def nu_margin(s, weight, nu):
    """½‖w‖² − νWρ + Σw_i max(0, ρ − s_if_i): two groups, the classes."""
    half = nu * weight.sum() / 2
    return dual(
        np.zeros(len(s)),
        np.where(s > 0, 0.0, -weight),
        np.where(s > 0, weight, 0.0),
        group=np.where(s > 0, 0, 1),
        totals=(half, -half),
    )


def twins(beta):
    """One β per sample as two variables, what is above f and what is below."""
    return np.concatenate([np.where(beta > 0, beta, 0 * beta), np.where(beta < 0, beta, 0 * beta)])


def overlapping(problem, beta):
    """Twins of the ν-tube whose sums reach ±total: where ε = 0 both copies of a sample may count, and dual_coef_ has
    only their difference. What is missing is spread by the room that is left; it changes neither f nor the value.

    Both sums lack what overlaps, so what they lack differently is all that is known to be wrong with them.
    """
    n = len(beta) // 2
    above, below = beta[:n], beta[n:]
    missing = (problem.totals[0] - above.sum() + below.sum() - problem.totals[1]) / 2
    room = np.minimum(problem.upper[:n] - above, below - problem.lower[n:])
    if missing <= 0 or room.sum() <= 0:
        return beta
    more = room * min(missing / room.sum(), Decimal(1))
    with all_digits():  # a difference of 1e-160 must survive beside copies of 1e7
        return np.concatenate([above + more, below - more])


def tube(t, C, epsilon, *, bias=True):
    n, zero = len(t), np.zeros(len(t))
    return dual(
        np.r_[t - epsilon, t + epsilon],
        np.r_[zero, -C],
        np.r_[C, zero],
        row=np.r_[np.arange(n), np.arange(n)],
        totals=(0.0,) if bias is True else (),
    )


def squared_tube(t, C, epsilon, *, bias=True):
    n, zero, far = len(t), np.zeros(len(t)), np.full(len(t), np.inf)
    return dual(
        np.r_[t - epsilon, t + epsilon],
        np.r_[zero, -far],
        np.r_[far, zero],
        d=np.r_[1 / C, 1 / C],
        row=np.r_[np.arange(n), np.arange(n)],
        totals=(0.0,) if bias is True else (),
    )


def expectile(t, C, tau, *, bias=True):
    n, zero, far = len(t), np.zeros(len(t)), np.full(len(t), np.inf)
    return dual(
        np.r_[t, t],
        np.r_[zero, -far],
        np.r_[far, zero],
        d=np.r_[1 / (C * tau), 1 / (C * (1 - tau))],
        row=np.r_[np.arange(n), np.arange(n)],
        totals=(0.0,) if bias is True else (),
    )


def huber(t, C, delta, *, bias=True):
    return dual(t, -C * delta, C * delta, d=1 / C, totals=(0.0,) if bias is True else ())


def quantile(t, C, tau, *, bias=True):
    return dual(t, C * (tau - 1), C * tau, totals=(0.0,) if bias is True else ())


def nu_tube(t, C, nu):
    """½‖w‖² + ΣC_i(νε + max(0, |t_i − f_i| − ε)): two groups, above and below."""
    n, zero = len(t), np.zeros(len(t))
    half = nu * C.sum() / 2
    return dual(
        np.r_[t, t],
        np.r_[zero, -C],
        np.r_[C, zero],
        row=np.r_[np.arange(n), np.arange(n)],
        group=np.r_[np.zeros(n, int), np.ones(n, int)],
        totals=(half, -half),
    )


def one_class(weight, nu):
    return dual(np.zeros(len(weight)), 0.0, weight, totals=(nu * weight.sum(),))


def ball(diagonal, weight, nu):
    """`diagonal` holds k(x_i, x_i) as Decimals."""
    bound = weight / (nu * weight.sum())
    made = dual(np.zeros(len(weight)), 0.0, bound, totals=(1.0,))
    made.p[:] = diagonal / 2
    return made


def ridge(t, weight, lam, *, bias=True):
    return dual(t, -np.inf, np.inf, d=lam / weight, totals=(0.0,) if bias else ())
