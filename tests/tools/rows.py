"""Rows of the table of what works where: every public estimator, in the variants that tools treat differently.

A row holds how to make the estimator and the kind of its samples and targets. There are 30 samples of three features,
one of them twice, with strings as classes; a machine is as precise as it can be asked to be.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
import mercer.inspection.features
from mercer import kernels
from mercer.kernels import Gaussian

N, D = 30, 3
_rng = np.random.default_rng(3)
POINTS = _rng.normal(size=(N, D))
POINTS[7] = POINTS[2]
NEW = _rng.normal(size=(6, D))
SIGNAL = POINTS[:, 0] + np.sin(2 * POINTS[:, 1]) + 0.3 * _rng.normal(size=N)
SIGNAL[7] = SIGNAL[2]
TWO = np.where(SIGNAL > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(SIGNAL, [-0.6, 0.6])]
SEPARABLE = np.where(POINTS[:, 0] > 0.1, "yes", "no")
OUTPUTS = np.column_stack([SIGNAL, POINTS[:, 1] * POINTS[:, 2] + 1.0])
TARGETS = {"two": TWO, "three": THREE, "separable": SEPARABLE, "number": SIGNAL, "outputs": OUTPUTS, "none": None}
NAMES = ["a", "b", "c"]


def as_texts(points):
    """A text for each point: a letter for each sixth of an axis, twice."""
    return [
        "".join("abcdef"[k] * 2 for k in np.digitize(point, [-1.0, -0.4, 0.0, 0.4, 1.0])) + "ab" for point in points
    ]


def by_hand(A, B):
    """The matrix of kernel values that a precomputed kernel is given."""
    return np.exp(-0.4 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)) + 0.1 * A @ B.T


@dataclass(frozen=True)
class Row:
    """One estimator in one variant.

    `target` is a key of TARGETS; `form` is what samples are: "rows", "csr", "strings", "matrix" (of kernel values) or
    "frame". `facts` are words that the declaration asks for, such as "joint" or "hard margin".
    """

    estimator: str
    variant: str
    make: Callable[[], Any]
    target: str
    form: str = "rows"
    facts: frozenset[str] = frozenset()

    @property
    def name(self):
        return f"{self.estimator}, {self.variant}" if self.variant else self.estimator

    @property
    def classifies(self):
        return self.target in ("two", "three", "separable")

    @property
    def classes(self):
        return {"two": 2, "separable": 2, "three": 3}.get(self.target, 0)

    @property
    def y(self):
        return TARGETS[self.target]

    def has(self, *facts):
        return all(fact in self.facts for fact in facts)

    def given(self, points, among=None):
        """Points as this estimator takes them; of a matrix, kernel values beside the training points `among`."""
        if self.form == "matrix":
            return by_hand(points, POINTS if among is None else POINTS[among])
        forms = {
            "csr": sp.csr_array,
            "strings": as_texts,
            "frame": lambda points: pd.DataFrame(points, columns=NAMES),
        }
        return forms.get(self.form, np.asarray)(points)

    def training(self, which=None):
        """The training samples, or some of them."""
        which = np.arange(N) if which is None else np.asarray(which)
        return self.given(POINTS[which], which)

    def labels(self, which=None):
        return self.y if self.y is None or which is None else self.y[which]

    def fit(self, model=None, which=None, sample_weight=None):
        """A machine trained on the samples, or on some of them."""
        model = self.make() if model is None else model
        more = {} if sample_weight is None else {"sample_weight": sample_weight}
        return model.fit(self.training(which), self.labels(which), **more)

    def __str__(self):
        return self.name


@cache
def fitted(row):
    """The trained machine of a row, once for all tools, none of which may change it."""
    return row.fit()


def machine_in(model):
    """The machine that decides inside of a Pipeline, a table, a search or a calibration."""
    return mercer.unwrap(model).machine


ROWS: list[Row] = []


def row(estimator, variant, target, make=None, *, form="rows", facts="", **parameters):
    """Add a row; the class is found by its name, and is given tol=1e-9, gamma=0.4 where it takes them."""
    cls = getattr(mercer, estimator, None) or getattr(mercer.features, estimator, None)

    words = frozenset(word.strip() for word in facts.split(",") if word.strip())

    def made():
        known = inspect.signature(cls).parameters
        usual = {"tol": 1e-9, "gamma": 0.4, "random_state": 0}
        if "decision_function_shape" in known and "joint" not in words:
            usual["decision_function_shape"] = "ovo"
        return cls(**{name: value for name, value in usual.items() if name in known} | parameters)

    ROWS.append(Row(estimator, variant, make or made, target, form, words))


KERNELS = [Gaussian(gamma=0.4), kernels.Linear()]
FOLDS = KFold(3, shuffle=True, random_state=1)
HALVES = StratifiedKFold(2, shuffle=True, random_state=1)

row("SVC", "", "two")
row("SVC", "three classes", "three", facts="pairs")
row("SVC", "one against the rest", "three", multiclass="ovr", facts="rest")
row("SVC", "Crammer and Singer", "three", multiclass="crammer-singer", facts="joint")
row("SVC", "Weston and Watkins", "three", multiclass="weston-watkins", facts="joint")
row("SVC", "Crammer and Singer, two classes", "two", multiclass="crammer-singer", facts="joint")
row("SVC", "squared slack", "two", slack="l2", C=2.0, facts="squared slack")
row("SVC", "no bias", "two", bias=False)
row("SVC", "regularized bias", "two", bias="regularized", facts="regularized bias")
row("SVC", "hard margin", "separable", C=np.inf, kernel="linear", facts="hard margin, linear")
row("SVC", "linear kernel", "two", kernel="linear", facts="linear")
row("SVC", "Laplacian kernel", "two", kernel="laplacian", facts="laplacian")
row("SVC", "polynomial kernel", "three", kernel="poly", coef0=1.0, facts="pairs")
row("SVC", "sum of kernels", "two", kernel=Gaussian(gamma=0.4) + 0.3 * kernels.Linear(), tol=1e-8, facts="sum")
row("SVC", "precomputed kernel", "two", kernel="precomputed", form="matrix", facts="precomputed")
row(
    "SVC", "precomputed kernel, three classes", "three", kernel="precomputed", form="matrix", facts="precomputed, pairs"
)
row("SVC", "CSR samples", "three", form="csr", facts="pairs")
row("SVC", "strings", "two", kernel=kernels.Spectrum(2), form="strings", facts="strings")
row("SVC", "balanced classes", "three", class_weight="balanced", facts="pairs, balanced")
row("NuSVC", "", "two", nu=0.3)
row("NuSVC", "three classes", "three", nu=0.3, facts="pairs")
row("LinearSVC", "", "two", facts="linear")
row("LinearSVC", "three classes", "three", facts="linear, rest")
row("LinearSVC", "Crammer and Singer", "three", multiclass="crammer_singer", bias="regularized", facts="linear, joint")
row("LinearSVC", "hinge", "two", loss="hinge", facts="linear")
row(
    "LinearSVC",
    "regularized bias, CSR samples",
    "two",
    bias="regularized",
    form="csr",
    facts="linear, regularized bias",
)
row("PegasosSVC", "", "two", tol=1e-3, facts="linear, descent")
row("PegasosSVC", "three classes", "three", tol=1e-3, facts="linear, rest, descent")
row("PegasosSVC", "Gaussian kernel", "two", kernel="rbf", tol=1e-3, facts="descent")
row("MKLClassifier", "", "two", kernel=KERNELS, facts="learnt kernel")
row("MKLClassifier", "three classes", "three", kernel=KERNELS, facts="learnt kernel, pairs")
row("RLSClassifier", "", "two")
row("RLSClassifier", "three classes", "three", facts="rest")
row("RLSClassifier", "linear kernel", "three", kernel="linear", facts="rest, linear")
row("RLSClassifierCV", "", "two", facts="chooses lam")
row("RLSClassifierCV", "three classes", "three", facts="rest, chooses lam")
row("NystromRLSClassifier", "", "two", n_landmarks=12, facts="landmarks")
row("NystromRLSClassifier", "three classes", "three", n_landmarks=12, facts="rest, landmarks")
row("KernelMachineClassifier", "", "two")
row("KernelMachineClassifier", "three classes", "three", facts="rest")
row("KernelMachineClassifier", "squared hinge", "two", loss="squared_hinge")
row("GaussianProcessClassifier", "", "two", kernel=4 * Gaussian(gamma=0.4), optimise=False, facts="process")
row(
    "GaussianProcessClassifier",
    "three classes",
    "three",
    kernel=4 * Gaussian(gamma=0.4),
    optimise=False,
    facts="process, rest",
)

row("SVR", "", "number", C=3.0)
row("SVR", "squared loss", "number", C=3.0, loss="squared_epsilon_insensitive")
row("SVR", "Huber's loss", "number", C=3.0, loss="huber")
row("SVR", "expectile", "number", C=3.0, loss="expectile", tau=0.8)
row("SVR", "no bias", "number", bias=False)
row("SVR", "linear kernel", "number", kernel="linear", facts="linear")
row("SVR", "precomputed kernel", "number", kernel="precomputed", form="matrix", facts="precomputed")
row("SVR", "CSR samples", "number", form="csr")
row("SVR", "strings", "number", kernel=kernels.Spectrum(2), form="strings", facts="strings")
row("NuSVR", "", "number", C=3.0)
row("QuantileSVR", "one quantile", "number", quantiles=0.3)
row("QuantileSVR", "", "number", quantiles=(0.1, 0.5, 0.9), facts="quantiles")
row("LinearSVR", "", "number", facts="linear")
row("LinearSVR", "squared loss", "number", loss="squared_epsilon_insensitive", facts="linear")
row("MKLRegressor", "", "number", kernel=KERNELS, facts="learnt kernel")
row("RLSRegressor", "", "number")
row("RLSRegressor", "two outputs", "outputs", facts="outputs")
row("RLSRegressor", "linear kernel", "number", kernel="linear", facts="linear")
row("RLSRegressorCV", "", "number", facts="chooses lam")
row("RLSRegressorCV", "two outputs", "outputs", facts="outputs, chooses lam")
row("NystromRLS", "", "number", n_landmarks=12, facts="landmarks")
row("NystromRLS", "two outputs", "outputs", n_landmarks=12, facts="landmarks, outputs")
row("KernelMachineRegressor", "", "number")
row("KernelMachineRegressor", "Huber's loss", "number", loss="huber")
row("RankSVM", "", "number", C=0.1, facts="ranks")
row("GaussianProcessRegressor", "", "number", kernel=2 * Gaussian(gamma=0.4), optimise=False, facts="process")
row("RelevanceVectorRegressor", "", "number", facts="relevance")

row("OneClassSVM", "", "none", nu=0.32)
row("OneClassSVM", "linear kernel", "none", nu=0.32, kernel="linear", facts="linear")
row("SVDD", "", "none", nu=0.32)
row("SVDD", "linear kernel", "none", nu=0.32, kernel="linear", facts="linear, own diagonal")

row("KernelPCA", "", "none", n_components=2, facts="transforms")
row("KernelKMeans", "", "none", n_clusters=2, facts="clusters")
row("SpectralClustering", "", "none", n_clusters=2, facts="clusters")
row("KernelCCA", "", "outputs", n_components=1, facts="transforms, two views")
row("Nystrom", "", "none", kernel=Gaussian(gamma=0.4), facts="transforms, features")
row("RandomFourier", "", "none", kernel=Gaussian(gamma=0.4), facts="transforms, features")
row("Monomials", "", "none", kernel=kernels.Polynomial(degree=2, gamma=1.0, coef0=1.0), facts="transforms, features")
row("GaussianSeries", "", "none", kernel=Gaussian(gamma=0.4), facts="transforms, features")

GRID = {"C": [0.5, 5.0]}


def svc(**parameters):
    return mercer.SVC(tol=1e-9, gamma=0.4, **parameters)


def pairs_of_svc():
    return svc(decision_function_shape="ovo")


def svr():
    return mercer.SVR(tol=1e-9, gamma=0.4)


def one_class():
    return mercer.OneClassSVM(tol=1e-9, gamma=0.4)


row("TunedSVC", "", "two", lambda: mercer.TunedSVC(GRID, estimator=svc(), cv=FOLDS), facts="search")
row(
    *("TunedSVC", "three classes", "three"),
    lambda: mercer.TunedSVC(GRID, estimator=pairs_of_svc(), cv=FOLDS),
    facts="search, pairs",
)
row("TunedSVR", "", "number", lambda: mercer.TunedSVR(GRID, estimator=svr(), cv=FOLDS), facts="search")
row(
    *("TunedOneClassSVM", "", "none"),
    lambda: mercer.TunedOneClassSVM({"nu": [0.2, 0.4]}, estimator=one_class(), cv=FOLDS),
    facts="search",
)
row("CalibratedClassifier", "", "two", lambda: mercer.CalibratedClassifier(svc(), cv=FOLDS), facts="calibrated")
row(
    *("CalibratedClassifier", "three classes", "three"),
    lambda: mercer.CalibratedClassifier(pairs_of_svc(), cv=HALVES),
    facts="calibrated, pairs",
)
row(
    *("CalibratedClassifier", "Venn–Abers", "two"),
    lambda: mercer.CalibratedClassifier(svc(), method="venn-abers", cv=FOLDS),
    facts="calibrated",
)
row("CalibratedRegressor", "", "number", lambda: mercer.CalibratedRegressor(svr(), cv=FOLDS), facts="calibrated")
row("Tabular", "around SVC", "two", lambda: mercer.tabular(svc()), form="frame", facts="table")
row("Tabular", "around SVR", "number", lambda: mercer.tabular(svr()), form="frame", facts="table")
row("Pipeline", "scaled SVC", "two", lambda: make_pipeline(StandardScaler(), svc()), facts="pipeline")
row("Pipeline", "scaled SVR", "number", lambda: make_pipeline(StandardScaler(), svr()), facts="pipeline")
row(
    *("Pipeline", "scaled LinearSVC", "three"),
    lambda: make_pipeline(StandardScaler(), mercer.LinearSVC(tol=1e-9)),
    facts="pipeline, linear, rest",
)
row("GridSearchCV", "around SVC", "two", lambda: GridSearchCV(svc(), GRID, cv=FOLDS), facts="foreign search")


def public_estimators():
    """Every public class that can be fitted, found in the package itself."""
    found = {name: getattr(mercer, name) for name in mercer.__all__}
    found |= {name: getattr(mercer.features, name) for name in mercer.features.__all__}
    return sorted(name for name, thing in found.items() if inspect.isclass(thing) and hasattr(thing, "fit"))
