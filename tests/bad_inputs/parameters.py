"""Parameters of every estimator: out of range, of the wrong type, contradictory, or at the end of float64."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bad_inputs.given import OVERLAP_X, OVERLAP_Y, N, T, X, Y, pegasos, rls, rls_cv, svc
from bad_inputs.judge import Case, Raises, Warns, Works, accurate, constant_function, usable
from mercer import (
    SVC,
    SVDD,
    SVR,
    KernelMachineRegressor,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    NystromRLS,
    OneClassSVM,
    QuantileSVR,
    RankSVM,
)

RARE = (np.arange(N) < 4).astype(int)


def explode(A, B):
    raise AssertionError("the kernel was evaluated")


def after(model, act):
    act(model)
    return model


CASES = [
    *(Case(f"C={C}", lambda C=C: svc(C=C), Raises(ValueError, rf"(?s)C\b.*{C}"), number=66) for C in (0, -1, np.nan)),
    Case("C=inf", lambda: svc(C=np.inf), Works(lambda m: usable(m) and m.score(X, Y) == 1.0), number=66),
    Case(
        "C=inf, not separable",
        lambda: svc(OVERLAP_X, OVERLAP_Y, C=np.inf),
        Raises(ValueError, r"(?s)C=inf.*hard margin.*finite C"),
        number=66,
    ),
    Case("C=1e-300", lambda: svc(C=1e-300), Works(usable, UserWarning), number=66),
    Case("C=1e300", lambda: svc(C=1e300), Works(usable, UserWarning), number=66),
    *(
        Case(f"gamma={g}", lambda g=g: svc(gamma=g), Raises(ValueError, rf"(?s)gamma.*{g}"), number=67)
        for g in (np.nan, np.inf, -1)
    ),
    *(  # scikit-learn refuses them too, whichever kernel or loss uses them
        Case(f"{name}={value!r}, which is not used", fit, Raises(ValueError, rf"{name}={value!r} must be"), number=67)
        for name, value, fit in (
            ("gamma", "typo", lambda: svc(kernel="linear", gamma="typo")),
            ("gamma", np.nan, lambda: svc(kernel=lambda A, B: A @ B.T, gamma=np.nan)),
            ("coef0", np.nan, lambda: svc(coef0=np.nan)),
            ("degree", -1, lambda: svc(degree=-1)),
            ("tau", np.nan, lambda: KernelMachineRegressor("huber", tau=np.nan).fit(X, T)),
        )
    ),
    Case("gamma=0", lambda: svc(gamma=0), Warns(UserWarning, r"(?i)constant|gamma", constant_function), number=67),
    Case(
        "gamma=1e308",
        lambda: svc(gamma=1e308),
        Works(lambda m: usable(m) and len(m.support_) == N and np.allclose(np.abs(m.dual_coef_), 1.0)),
        number=67,
    ),
    *(
        Case(f"tol={t}", lambda t=t: svc(tol=t), Raises(ValueError, rf"(?s)tol.*{t}"), number=68)
        for t in (0, -1, np.nan)
    ),
    Case(
        "tol=1e-20",
        lambda: svc(tol=1e-20),
        Warns(
            UserWarning,
            r"(?i)floor|rounding|precision",
            lambda m: usable(m) and m.certificate_.violation < 1e-10,
        ),
        number=68,
    ),
    Case(
        "degree 0",
        lambda: svc(kernel="poly", degree=0),
        Works(lambda m: usable(m) and constant_function(m), UserWarning),
        number=69,
    ),
    Case(
        "degree 40", lambda: svc(kernel="poly", degree=40, gamma=0.01, coef0=1.0), Works(usable, UserWarning), number=69
    ),
    Case("degree 2.5", lambda: svc(kernel="poly", degree=2.5), Raises(ValueError, r"(?s)degree.*2\.5"), number=69),
    Case("degree -1", lambda: svc(kernel="poly", degree=-1), Raises(ValueError, r"(?s)degree.*-1"), number=69),
    *(
        Case(
            f"max_iter={k}",
            lambda k=k: svc(max_iter=k, tol=1e-6),
            Warns(
                ConvergenceWarning,
                r"(?s)max_iter",
                lambda m: usable(m) and not m.converged_ and m.stop_reason_ == "max_iter",
            ),
            number=72,
        )
        for k in (0, 1)
    ),
    Case("cache_size=0", lambda: svc(cache_size=0), Raises(ValueError, r"(?s)cache_size.*0"), number=73),
    Case("cache_size=nan", lambda: svc(cache_size=np.nan), Raises(ValueError, r"(?s)cache_size.*nan"), number=73),
    Case("cache_size=1e12", lambda: svc(cache_size=1e12), Works(accurate), number=73),
    Case("n_jobs=0", lambda: svc(n_jobs=0), Raises(ValueError, r"(?s)n_jobs.*0"), number=74),
    Case("n_jobs=-1", lambda: svc(n_jobs=-1), Works(accurate), number=74),
    Case("n_jobs=10000", lambda: svc(n_jobs=10_000), Works(accurate), number=74),
    Case("random_state a string", lambda: svc(random_state="x"), Raises(ValueError, r"random_state"), number=81),
    Case(
        "parameters set after fit",
        lambda: after(svc(), lambda m: m.set_params(kernel="linear", gamma=9.0, C=1e-3, degree=7)),
        Works(lambda m: np.array_equal(m.decision_function(X), svc().decision_function(X))),
        number=84,
    ),
    Case(
        "impossible parameters set after fit",
        lambda: after(svc(), lambda m: m.set_params(gamma=-9.0, C=-1.0, tol=np.nan)),
        Works(lambda m: np.array_equal(m.predict(X), svc().predict(X))),
        number=84,
    ),
    Case("LinearSVC: negative C", lambda: LinearSVC(C=-1).fit(X, Y), Raises((ValueError, TypeError), "C=-1")),
    Case(
        "LinearSVC: unknown loss",
        lambda: LinearSVC(loss="l2").fit(X, Y),
        Raises((ValueError, TypeError), "'squared_hinge', 'hinge'"),
    ),
    Case(
        "LinearSVC: unknown bias",
        lambda: LinearSVC(bias="free").fit(X, Y),
        Raises((ValueError, TypeError), "regularized"),
    ),
    Case(
        "LinearSVC: unknown solver",
        lambda: LinearSVC(solver="sgd").fit(X, Y),
        Raises((ValueError, TypeError), "newton"),
    ),
    Case(
        "LinearSVC: nothing to stop at",
        lambda: LinearSVC(tol=None).fit(X, Y),
        Raises((ValueError, TypeError), "gap_tol"),
    ),
    Case(
        "LinearSVR: negative tube",
        lambda: LinearSVR(epsilon=-0.1).fit(X, Y),
        Raises((ValueError, TypeError), "epsilon=-0.1"),
    ),
    Case(
        "SVR: epsilon < 0",
        lambda: SVR(epsilon=-0.1).fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"epsilon=-0.1 must be a finite number of at least 0"),
    ),
    Case(
        "SVR: epsilon nan",
        lambda: SVR(epsilon=np.nan).fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"epsilon=nan"),
    ),
    Case(
        "SVR: C = 0",
        lambda: SVR(C=0).fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"C=0 must be a finite number above 0"),
    ),
    Case(
        "SVR: C = inf",
        lambda: SVR(C=np.inf).fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"C=inf must be a finite number above 0"),
    ),
    Case(
        "SVR: loss",
        lambda: SVR(loss="l2").fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"loss='l2' must be one of 'epsilon_insensitive'"),
    ),
    Case(
        "SVR: delta",
        lambda: SVR(loss="huber", delta=0).fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"delta=0 must be .*threshold of the Huber loss"),
    ),
    Case(
        "SVR: tau",
        lambda: SVR(loss="expectile", tau=1.0).fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"tau=1.0 must be a number strictly between 0 and 1"),
    ),
    Case(
        "SVR: bias",
        lambda: SVR(bias="no").fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"bias='no' must be one of True, False, 'regularized'"),
    ),
    Case(
        "SVC: slack",
        lambda: SVC(slack="l3").fit(X, Y),
        Raises((ValueError, TypeError, AttributeError), r"slack='l3' must be one of 'l1', 'l2'"),
    ),
    Case(
        "SVC: multiclass",
        lambda: SVC(multiclass="all").fit(X, Y),
        Raises((ValueError, TypeError, AttributeError), r"multiclass='all' must be one of"),
    ),
    Case(
        "NuSVR: nu of NuSVR",
        lambda: NuSVR(nu=0).fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"nu=0 must be a number above 0 and at most 1"),
    ),
    Case(
        "OneClassSVM: nu of OneClassSVM",
        lambda: OneClassSVM(nu=1.5).fit(X),
        Raises((ValueError, TypeError, AttributeError), r"nu=1.5 must be a number above 0 and at most 1"),
    ),
    Case(
        "SVDD: nu of SVDD",
        lambda: SVDD(nu=np.nan).fit(X),
        Raises((ValueError, TypeError, AttributeError), r"nu=nan must be"),
    ),
    Case(
        "NuSVC: nu of NuSVC",
        lambda: NuSVC(nu=-1).fit(X, Y),
        Raises((ValueError, TypeError, AttributeError), r"nu=-1 must be .*'auto' chooses"),
    ),
    Case(
        "NuSVC: nu infeasible",
        lambda: NuSVC(nu=0.5, kernel=explode).fit(X, RARE),
        Raises(
            (ValueError, TypeError, AttributeError),
            r"nu=0.5 is infeasible: at most 2·min\(n₊, n₋\)/n = 0.2 for the labels 1 against 0; lower nu",
        ),
    ),
    Case(
        "NuSVC: nu too small",
        lambda: NuSVC(nu=0.01, kernel="linear").fit(np.r_[X, X + 0.01], np.r_[Y, 1 - Y]),
        Raises(
            (ValueError, TypeError, AttributeError),
            r"nu=0.01 is too small.*ρ = 0.*(The smallest useful nu is|They meet even at)",
        ),
    ),
    Case(
        "RankSVM: C=0",
        lambda: RankSVM(C=0).fit(X, T),
        Raises(ValueError, r"C=0 must be"),
    ),
    Case(
        "RankSVM: all the same",
        lambda: RankSVM().fit(X, np.ones(len(X))),
        Raises(ValueError, r"nothing to rank"),
    ),
    Case(
        "QuantileSVR: no quantiles",
        lambda: QuantileSVR([]).fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"quantiles=\[\] must be a number or a list"),
    ),
    Case(
        "QuantileSVR: quantile of 1",
        lambda: QuantileSVR([0.5, 1.0]).fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"quantiles=1.0 must be .*between 0 and 1"),
    ),
    Case(
        "QuantileSVR: quantiles of two dimensions",
        lambda: QuantileSVR([[0.5]]).fit(X, T),
        Raises((ValueError, TypeError, AttributeError), r"quantiles="),
    ),
    Case("PegasosSVC: alpha=0", lambda: pegasos(alpha=0.0), Raises(ValueError, r"alpha=0.0 must be")),
    Case(
        "PegasosSVC: n_iter_no_change=-1",
        lambda: pegasos(n_iter_no_change=-1),
        Raises(ValueError, r"n_iter_no_change=-1 must be an integer of at least 1"),
    ),
    Case("PegasosSVC: alpha=nan", lambda: pegasos(alpha=np.nan), Raises(ValueError, r"alpha=nan must be")),
    Case(
        "PegasosSVC: bias=True",
        lambda: pegasos(bias=True),
        Raises(ValueError, r"bias=True must be one of False, 'regularized'"),
    ),
    Case("PegasosSVC: average", lambda: pegasos(average="mean"), Raises(ValueError, r"average='mean' must be one of")),
    Case(
        "PegasosSVC: sampling",
        lambda: pegasos(sampling="uniform"),
        Raises(ValueError, r"sampling='uniform' must be one of"),
    ),
    Case("PegasosSVC: max_iter", lambda: pegasos(max_iter=-2), Raises(ValueError, r"max_iter=-2")),
    Case("PegasosSVC: max_time", lambda: pegasos(max_time=0), Raises(ValueError, r"max_time=0")),
    Case("PegasosSVC: tol", lambda: pegasos(tol=0.0), Raises(ValueError, r"tol=0.0")),
    Case("PegasosSVC: cache_size", lambda: pegasos(cache_size=0), Raises(ValueError, r"cache_size=0")),
    Case(
        "PegasosSVC: validation_fraction",
        lambda: pegasos(validation_fraction=1.0),
        Raises(ValueError, r"validation_fraction=1.0"),
    ),
    Case(
        "PegasosSVC: n_iter_no_change", lambda: pegasos(n_iter_no_change=0), Raises(ValueError, r"n_iter_no_change=0")
    ),
    Case("PegasosSVC: random_state", lambda: pegasos(random_state="x"), Raises(ValueError, r"random_state='x'")),
    Case("PegasosSVC: n_jobs", lambda: pegasos(n_jobs=0), Raises(ValueError, r"n_jobs=0")),
    Case(
        "RLSRegressor: negative lam",
        lambda: rls(lam=-1.0),
        Raises(ValueError, "lam=-1.0 must be a finite number of at least 0"),
    ),
    Case("RLSRegressor: NaN lam", lambda: rls(lam=np.nan), Raises(ValueError, "lam=nan must be")),
    Case(
        "RLSRegressor: infinite lam", lambda: rls(lam=np.inf), Raises(ValueError, "weighted mean of y.*sklearn.dummy")
    ),
    Case("RLSRegressor: lam as text", lambda: rls(lam="1"), Raises(TypeError, "lam='1' must be a number")),
    Case("RLSRegressor: bias as text", lambda: rls(bias="yes"), Raises(TypeError, "bias='yes'")),
    Case("RLSRegressor: unknown solver", lambda: rls(solver="qr"), Raises(ValueError, "solver='qr' must be one of")),
    Case("RLSRegressor: cache_size 0", lambda: rls(cache_size=0), Raises(ValueError, "cache_size=0")),
    Case(
        "RLSRegressorCV: lams with 0",
        lambda: rls_cv(lams=[0.0, 1.0]),
        Raises(ValueError, r"lams=0.0.*RLSRegressor\(lam=0\)"),
    ),
    Case("RLSRegressorCV: lams with inf", lambda: rls_cv(lams=[1.0, np.inf]), Raises(ValueError, "lams=inf")),
    Case("RLSRegressorCV: negative lams", lambda: rls_cv(lams=[-1.0]), Raises(ValueError, "lams=-1.0")),
    Case("RLSRegressorCV: no lams", lambda: rls_cv(lams=[]), Raises(ValueError, "lams has shape")),
    Case("RLSRegressorCV: zero lams", lambda: rls_cv(lams=0), Raises(ValueError, "lams=0")),
    Case("RLSRegressorCV: unknown criterion", lambda: rls_cv(criterion="aic"), Raises(ValueError, "criterion='aic'")),
    Case(
        "RLSRegressorCV: mistakes of a regressor",
        lambda: rls_cv(criterion="mistakes"),
        Raises(ValueError, "criterion='mistakes'"),
    ),
    Case("RLSRegressorCV: grid of C", lambda: rls_cv(grid={"C": [1.0]}), Raises(ValueError, r"grid may hold.*\['C'\]")),
    Case(
        "LinearSVR: epsilon=None",
        lambda: LinearSVR(epsilon=None).fit(X, T),
        Raises(TypeError, "epsilon=None must be a number"),
    ),
    Case(
        "LinearSVR: epsilon=True",
        lambda: LinearSVR(epsilon=True).fit(X, T),
        Raises(TypeError, "epsilon=True must be a number"),
    ),
    Case(
        "NystromRLS: random_state",
        lambda: NystromRLS(random_state="x").fit(X, T),
        Raises(ValueError, "random_state='x' must be None"),
    ),
    Case("PegasosSVC: alpha that overflows", lambda: pegasos(alpha=1e-308), Raises(FloatingPointError, r"overflowed")),
]
