"""The data that bad and odd inputs are made of, and every estimator that they are given to."""

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import is_classifier, is_regressor

import mercer.estimators
from mercer import SVC, PegasosSVC, RLSClassifier, RLSRegressor, RLSRegressorCV

rng = np.random.default_rng(0)
N = 40
Y = np.repeat([0, 1], N // 2)
X = rng.normal(size=(N, 3)) + 1.5 * Y[:, None]
T = X[:, 0] + 0.1 * rng.normal(size=N)
K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
THREE = np.r_[np.zeros(15), np.ones(15), np.full(10, 2)].astype(int)
OVERLAP_X, OVERLAP_Y = np.r_[X, X[:4], X[-4:]], np.r_[Y, 1 - Y[:4], 1 - Y[-4:]]
TWO_POINTS = np.array([[1.0, 99999.0], [2.0, 99999.0]])
MASK = np.arange(N) == 3
for shared in (X, Y, T, K):
    shared.flags.writeable = False


def changed(array, *where_and_value):
    """A copy with some entries replaced: changed(X, ((3, 1), nan))."""
    array = np.array(array, dtype=np.float64)
    for where, value in where_and_value:
        array[where] = value
    return array


def csr(X=X, **options):
    return sparse.csr_matrix(X, **options)


def corrupted(attribute, position, value):
    broken = csr()
    getattr(broken, attribute)[position] = value
    return broken


def frame(names=("a", "b", "c"), **columns):
    return pd.DataFrame(X, columns=list(names)).assign(**columns)


def objects(*labels):
    return np.array(labels * (N // len(labels)), dtype=object)


# --- every estimator, by name ----------------------------------------------------------------------------------------


def made(name, **parameters):
    estimator = getattr(mercer.estimators, name)()
    own = estimator.get_params()
    chosen = ({"max_iter": 20} if name == "PegasosSVC" else {}) | ({"random_state": 0} if "random_state" in own else {})
    return estimator.set_params(**chosen | parameters)


def target(name):
    return Y if is_classifier(made(name)) else T


def fit(name, data=X, y=None, weight=None, **parameters):
    return made(name, **parameters).fit(data, target(name) if y is None else y, sample_weight=weight)


def values(model, data=X):
    return model.decision_function(data) if hasattr(model, "decision_function") else model.predict(data)


EVERY = tuple(mercer.estimators.__all__)
CLASSIFIERS = tuple(name for name in EVERY if is_classifier(made(name)))
REGRESSORS = tuple(name for name in EVERY if is_regressor(made(name)))
WITH = {  # those that have a parameter
    parameter: tuple(name for name in EVERY if parameter in made(name).get_params())
    for parameter in ("class_weight", "kernel", "cache_size")
}
MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "QuantileSVR", "OneClassSVM", "SVDD")  # of dual problems
REFUSED = (ValueError, TypeError)


def svc(X=X, y=Y, sample_weight=None, **parameters):
    return SVC(**parameters).fit(X, y, sample_weight=sample_weight)


def pegasos(X=X, y=Y, sample_weight=None, **parameters):
    return PegasosSVC(**{"max_iter": 5, "random_state": 0, **parameters}).fit(X, y, sample_weight=sample_weight)


def stream(X=X, y=Y, classes=(0, 1), sample_weight=None, **parameters):
    return PegasosSVC(**{"random_state": 0, **parameters}).partial_fit(X, y, classes, sample_weight)


def rls(X=X, y=T, weight=None, **parameters):
    return RLSRegressor(**parameters).fit(X, y, sample_weight=weight)


def rls_cv(X=X, y=T, weight=None, **parameters):
    return RLSRegressorCV(**parameters).fit(X, y, sample_weight=weight)


def rls_classifier(X=X, y=Y, weight=None, **parameters):
    return RLSClassifier(**parameters).fit(X, y, sample_weight=weight)
