"""Kernel learning as a cone program for clarabel, and its gap in exact numbers, both without mercer.

    maximise  p'β − ½β'diag(d)β − ½t   subject to  lower ≤ β ≤ upper, Σβ = 0,  ‖(β'K_mβ/v_m)_m‖_q ≤ t

for one problem, or several that share the norm. Of ‖s‖_q ≤ t there are Σ_m r_m ≤ t and s_m ≤ r_m^(1/q) t^(1 − 1/q).
"""

import math

import clarabel
import mpmath
import numpy as np
from scipy import sparse

from reference.machines import root


def largest_dual(tasks, matrices, norm, scales):
    """`tasks`: (p, lower, upper, d, rows) with a variable for each entry of rows; the optimal value."""
    sizes = [len(task[0]) for task in tasks]
    n, m = sum(sizes), len(matrices)
    # Variables: β of all tasks, energies e_tm, r_m, t.
    energies = n + m * np.arange(len(tasks))[:, None] + np.arange(m)
    places = n + m * len(tasks) + np.arange(m)
    total = places[-1] + 1
    width = total + 1
    P, q = np.zeros((width, width)), np.zeros(width)
    q[total] = 0.5
    rows, right, cones = [], [], []

    def add(A, b, cone):
        rows.append(np.atleast_2d(A))
        right.append(np.atleast_1d(b))
        cones.append(cone)

    def unit(*pairs):
        line = np.zeros(width)
        for place, value in pairs:
            line[place] += value
        return line

    start = 0
    for t, (p, lower, upper, d, own) in enumerate(tasks):
        at = start + np.arange(len(p))
        start += len(p)
        q[at] = -p
        P[at, at] = d
        add(unit(*((i, 1.0) for i in at)), 0.0, clarabel.ZeroConeT(1))
        for sign, bound in ((1.0, upper), (-1.0, -lower)):
            some = np.isfinite(bound)
            lines = np.zeros((some.sum(), width))
            lines[np.arange(some.sum()), at[some]] = sign
            add(lines, bound[some], clarabel.NonnegativeConeT(int(some.sum())))
        for k, K in enumerate(matrices):  # ‖Φ'β‖² ≤ e: (e + 1)/2 ≥ ‖((e − 1)/2, Φ'β)‖
            Phi = root(K)[own]
            lines = np.zeros((2 + Phi.shape[1], width))
            lines[0, energies[t, k]] = lines[1, energies[t, k]] = -0.5
            lines[2:, at] = -Phi.T
            add(lines, np.r_[0.5, -0.5, np.zeros(Phi.shape[1])], clarabel.SecondOrderConeT(len(lines)))
    for k in range(m):
        s = [(e, 1.0 / scales[k]) for e in energies[:, k]]
        if norm == 1:
            add(unit(*s, (total, -1.0)), 0.0, clarabel.NonnegativeConeT(1))
        elif norm == math.inf:
            add(unit(*s, (places[k], -1.0)), 0.0, clarabel.NonnegativeConeT(1))
        else:
            lines = np.stack([unit((places[k], -1.0)), unit((total, -1.0)), unit(*((e, -c) for e, c in s))])
            add(lines, np.zeros(3), clarabel.PowerConeT((norm - 1) / norm))
    if norm != 1:
        add(unit(*((r, 1.0) for r in places), (total, -1.0)), 0.0, clarabel.NonnegativeConeT(1))
    else:
        add(unit(*((r, 1.0) for r in places)), 0.0, clarabel.NonnegativeConeT(1))
        add(np.stack([unit((r, -1.0)) for r in places]), np.zeros(m), clarabel.NonnegativeConeT(m))
    options = clarabel.DefaultSettings()
    options.verbose, options.max_threads, options.max_iter = False, 1, 500
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    A, b = sparse.csc_matrix(np.vstack(rows)), np.concatenate(right)
    found = clarabel.DefaultSolver(sparse.triu(sparse.csc_matrix(P), format="csc"), q, A, b, cones, options).solve()
    assert found.status in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved), found.status
    return -found.obj_val


def values(tasks, matrices, norm, scales, betas, biases, weights):
    """The primal and the dual value of kernel learning at these coefficients, biases and weights, in a hundred digits.

    Coefficients are those of rows; `tasks` as above, but with one variable for each row and `loss(f)` of all rows in
    the second place.
    """
    with mpmath.workdps(100):
        exact = [mpmath.matrix(K.tolist()) for K in matrices]
        theta = [mpmath.mpf(float(w)) for w in weights]
        v = [mpmath.mpf(float(one)) for one in scales]
        s, losses, gains = [mpmath.mpf(0)] * len(exact), mpmath.mpf(0), mpmath.mpf(0)
        for (gain, loss, own), beta, b in zip(tasks, betas, biases, strict=True):
            c = [mpmath.mpf(float(one)) for one in beta]
            f = [mpmath.mpf(float(b))] * len(c)
            for k, K in enumerate(exact):
                u = [mpmath.fsum(K[i, j] * c[a] for a, j in enumerate(own) if c[a]) for i in own]
                s[k] += mpmath.fsum(x * y for x, y in zip(c, u, strict=True))
                f = [x + theta[k] * y for x, y in zip(f, u, strict=True)]
            losses += loss(f)
            gains += gain(c)
        energy = mpmath.fsum(x * y for x, y in zip(theta, s, strict=True))
        size = _norm([x * y for x, y in zip(theta, v, strict=True)], norm)
        dual_norm = math.inf if norm == 1 else 1 if norm == math.inf else mpmath.mpf(norm) / (mpmath.mpf(norm) - 1)
        best = _norm([max(x, mpmath.mpf(0)) / y for x, y in zip(s, v, strict=True)], dual_norm)
        return max(size, mpmath.mpf(1)) * energy / 2 + losses, gains - best / 2


def _norm(values, p):
    if p == math.inf:
        return max(values)
    return mpmath.fsum(value ** mpmath.mpf(p) for value in values) ** (1 / mpmath.mpf(p))
