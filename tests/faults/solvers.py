"""Slips that would make a solver end too early, at another point, or outside of its bounds."""

from faults.mutant import m

SOLVERS = [
    m(
        "a return to the solver asks for ten times the tolerance",
        "mercer/solvers/refine.py",
        "if self._stop.met(certificate):",
        "if self._stop.met(certificate) or certificate.violation <= 10 * tol:",
        "tests/solvers/test_refine.py",
    ),
    m(
        "a chunk forgets what the others add to u",
        "mercer/solvers/dual/chunking.py",
        "u[rows] = fixed + solution.u",
        "u[rows] = solution.u",
        "tests/solvers/dual/test_chunking.py",
    ),
    m(
        "a Newton step ignores the box",
        "mercer/solvers/dual/newton.py",
        "length = min(limit, slope / curvature if curvature > 0 else np.inf)",
        "length = slope / curvature if curvature > 0 else np.inf",
        "tests/solvers/dual/test_newton.py",
    ),
    m(
        "hulls are apart by the wrong bound",
        "mercer/solvers/dual/hulls.py",
        "return self.below > _ROUNDING_SHARE * self.unit",
        "return self.above > _ROUNDING_SHARE * self.unit",
        "tests/estimators/test_hard_margin.py::test_overlap_is_proven",
    ),
    m(
        "an interior point is not put onto its bounds",
        "mercer/solvers/qp.py",
        "np.where(found.at_upper, problem.upper, np.where(found.at_lower, problem.lower, unit * found.x))",
        "unit * found.x",
        "tests/solvers/test_qp.py",
    ),
    m(
        "a package's word is taken for a proof",
        "mercer/solvers/qp.py",
        'return "converged" if proven else "stalled" if self.reason == "converged" else self.reason',
        "return self.reason",
        "tests/solvers/test_qp.py",
    ),
    m(
        "what a limit leaves of the class sums stays there",
        "mercer/solvers/joint/rebalance.py",
        "problem.within_bounds(-alpha * share[problem.y])",
        "problem.within_bounds(-alpha)",
        "tests/solvers/joint/test_feasible.py",
    ),
    m(
        "what a float32 factor leaves is not corrected",
        "mercer/solvers/least_squares/cholesky.py",
        "if left <= (1 / np.sqrt(gram.n) if",
        "if left <= (1e9 if",
        "tests/estimators/test_rls.py::test_a_float32_factor_leads_to_the_float64_answer",
    ),
    m(
        "leave-one-out forgets the weight of a row",
        "mercer/solvers/least_squares/spectrum.py",
        "part, free = np.minimum(weight, 1.0) / problem.total[member]",
        "part, free = 1.0 / problem.total[member]",
        "tests/solvers/least_squares/test_eigen.py",
    ),
    m(
        "of equally good λ the smallest",
        "mercer/solvers/least_squares/spectrum.py",
        "np.flatnonzero(scores == scores.min())[-1]",
        "np.flatnonzero(scores == scores.min())[0]",
        "tests/estimators/test_rls_cv.py",
    ),
    m(
        "the mean of the iterates is one step too long",
        "mercer/solvers/pegasos/iterates.py",
        "(lam * (self.t - suffix_start(self.t)))",
        "(lam * (self.t - suffix_start(self.t) + 1))",
        "tests/solvers/test_pegasos.py",
    ),
    m(
        "a regularised bias is priced once",
        "mercer/solvers/linear/newton.py",
        "slope = b / problem.bias**2",
        "slope = b / problem.bias",
        "tests/estimators/test_linear.py::test_objective_equals_liblinears",
    ),
    m(
        "a repaired β takes up what is missing twice",
        "mercer/problems/dual_problem.py",
        "np.clip(before + missing / len(movers)",
        "np.clip(before + 2 * missing / len(movers)",
        "tests/problems",
    ),
]
