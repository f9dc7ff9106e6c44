"""The joint multi-class machines as plain quadratic programs, written out variable by variable and solved by clarabel.

Two ways that share nothing: the dual for any kernel matrix, one variable per sample and wrong class, and the primal for
the linear kernel, with the weights, the biases and every slack as variables.
"""

import clarabel
import numpy as np
from scipy import sparse

MACHINES = {"crammer-singer": True, "weston-watkins": False}


def dual_by_qp(K, y, C, n_classes, *, machine, bias):
    """The pair (dual value, β as samples × classes)."""
    K = np.asarray(K, dtype=np.float64) + (1.0 if bias == "regularized" else 0.0)
    n = len(y)
    variables = [(i, k) for i in range(n) for k in range(n_classes) if k != y[i]]
    m = len(variables)
    directions = np.zeros((m, n_classes))
    for v, (i, k) in enumerate(variables):
        directions[v, y[i]] += 1.0
        directions[v, k] -= 1.0
    sample = np.array([i for i, _ in variables])
    P = K[np.ix_(sample, sample)] * (directions @ directions.T)
    owner = np.zeros((n, m))
    owner[sample, np.arange(m)] = 1.0
    equal = directions.T[:-1] if bias is True else np.zeros((0, m))  # the last class follows from the others
    above, bounds = (owner, C) if MACHINES[machine] else (np.eye(m), C[sample])
    alpha = _solve(P, -np.ones(m), equal, np.zeros(len(equal)), np.r_[above, -np.eye(m)], np.r_[bounds, np.zeros(m)])
    beta = np.zeros((n, n_classes))
    np.add.at(beta, sample, alpha[:, None] * directions)
    return float(alpha.sum() - alpha @ P @ alpha / 2), beta


def primal_by_qp(X, y, C, n_classes, *, machine, bias):
    """The primal value for the linear kernel: ½Σ‖w_k‖² (+ ½Σb_k² where regularised) + Σ C_i ξ."""
    n, d = X.shape
    width = d + (bias is not False)  # w and perhaps b of each class, then the slacks
    slacks = (
        [(i, None) for i in range(n)] if MACHINES[machine] else [(i, k) for i in range(n) for k in range(n_classes)]
    )
    m = n_classes * width + len(slacks)
    P, q, rows, limits = np.zeros((m, m)), np.zeros(m), [], []
    for k in range(n_classes):
        for j in range(width):
            P[k * width + j, k * width + j] = 0.0 if bias is True and j == d else 1.0
    place = {slack: n_classes * width + s for s, slack in enumerate(slacks)}
    for (i, _), where in place.items():
        q[where] = C[i]
    for i in range(n):
        x = np.r_[X[i], 1.0] if width > d else X[i]
        for k in range(n_classes):
            if k == y[i]:
                if not MACHINES[machine]:
                    q[place[i, k]] = 0.0  # a slack that no constraint needs
                continue
            row = np.zeros(m)  # f_k − f_y − ξ ≤ −1
            row[k * width : (k + 1) * width] += x
            row[y[i] * width : (y[i] + 1) * width] -= x
            row[place[(i, None) if MACHINES[machine] else (i, k)]] = -1.0
            rows.append(row)
            limits.append(-1.0)
    for where in place.values():
        row = np.zeros(m)
        row[where] = -1.0
        rows.append(row)
        limits.append(0.0)
    x = _solve(P, q, np.zeros((0, m)), np.zeros(0), np.array(rows), np.array(limits))
    return float(q @ x + x @ P @ x / 2)


def _solve(P, q, equal, totals, above, bounds):
    """The minimiser of ½x'Px + q'x subject to equal·x = totals and above·x ≤ bounds."""
    cones = [clarabel.ZeroConeT(len(totals))] if len(totals) else []
    cones.append(clarabel.NonnegativeConeT(len(bounds)))
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.max_threads = 1
    options.max_iter = 500
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    A = sparse.csc_matrix(np.r_[equal, above])
    found = clarabel.DefaultSolver(sparse.triu(P, format="csc"), q, A, np.r_[totals, bounds], cones, options).solve()
    assert found.status in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved), found.status
    return np.array(found.x)


BIASES = [False, "regularized", True]
NUMBERS = {
    "linear": {},
    "rbf": {"gamma": 0.4},
    "laplacian": {"gamma": 0.3},
    "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0},
}


def clouds(seed, n=45, n_classes=4, n_features=3):
    """Overlapping clouds with some labels wrong, every class present, half of the entries zero."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)]
    centres = rng.normal(scale=1.5, size=(n_classes, n_features))
    X = (centres[y] + rng.normal(size=(n, n_features))) * (rng.random((n, n_features)) < 0.8)
    y[n_classes:] = np.where(
        rng.random(n - n_classes) < 0.1, rng.integers(n_classes, size=n - n_classes), y[n_classes:]
    )
    return X, y
