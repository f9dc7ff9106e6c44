"""The competitors behind one interface; every library but mercer and scikit-learn may be missing.

What turns samples into the form a library wants is `prepare` and not timed; what its `fit` does with them is. All
have their own defaults but for C, the kernel, its numbers and tol, and the thread limit of the run.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from truth import Duals, Setting

PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "libsvm-official", "thundersvm-cpu")
TITLES = {
    "mercer": "mercer",
    "sklearn": "scikit-learn",
    "sklearnex": "sklearn-intelex",
    "libsvm": "libsvm",
    "thundersvm": "thundersvm",
    "mercer32": "mercer, float32",
    "sklearnex32": "sklearn-intelex, float32",
}
_KERNELS = ("linear", "poly", "rbf", "sigmoid")


class Estimator:
    """A library whose SVC has scikit-learn's interface, given samples of one precision."""

    def __init__(self, name: str, SVC: Callable[..., Any], dtype: type, threads: int, n_jobs: bool = False) -> None:
        self.name, self.SVC, self.dtype = name, SVC, dtype
        self.threads = {"n_jobs": threads} if n_jobs else {}

    def prepare(self, X: Any, y: np.ndarray | None = None) -> Any:
        X = X.astype(self.dtype)
        return (X if sp.issparse(X) else np.ascontiguousarray(X)), y

    def fit(self, prepared: Any, setting: Setting, **options: Any) -> Any:
        model = self.SVC(
            C=setting.C,
            kernel=setting.kernel,
            gamma=setting.gamma,
            degree=setting.degree,
            coef0=setting.coef0,
            tol=setting.tol,
            **self.threads,
            **options,
        )
        return model.fit(*prepared)

    def decide(self, model: Any, prepared: Any) -> Any:
        return model.decision_function(prepared[0])

    def predict(self, model: Any, prepared: Any) -> np.ndarray:
        return model.predict(prepared[0])

    def duals(self, model: Any) -> Duals:
        coefficients = model.dual_coef_
        coefficients = coefficients.toarray() if sp.issparse(coefficients) else coefficients
        return Duals(np.asarray(model.support_), np.asarray(coefficients, dtype=np.float64), self.dtype)


class Thunder(Estimator):
    """thundersvm takes any input and computes in float32."""

    def duals(self, model: Any) -> Duals:
        return Duals(model.support_, model.dual_coef_, np.float32)


class Libsvm:
    """LIBSVM's own Python interface; the conversion into its nodes is not timed."""

    name, dtype = "libsvm", np.float64

    def __init__(self) -> None:
        self.svmutil = importlib.import_module("libsvm.svmutil")

    def prepare(self, X: Any, y: np.ndarray | None = None) -> Any:
        labels = np.zeros(X.shape[0]) if y is None else y.astype(np.float64)
        return self.svmutil.svm_problem(labels, sp.csr_matrix(X, dtype=np.float64))

    def fit(self, prepared: Any, setting: Setting) -> Any:
        numbers = {"t": _KERNELS.index(setting.kernel), "d": setting.degree, "g": setting.gamma, "r": setting.coef0}
        numbers |= {"c": setting.C, "e": setting.tol}
        options = " ".join(f"-{flag} {number!r}" for flag, number in numbers.items())
        return self.svmutil.svm_train(prepared, self.svmutil.svm_parameter(options + " -q"))

    def decide(self, model: Any, prepared: Any) -> np.ndarray:
        return self._each(model, prepared)[1]

    def predict(self, model: Any, prepared: Any) -> np.ndarray:
        return self._each(model, prepared)[0]

    def _each(self, model: Any, prepared: Any) -> tuple[np.ndarray, np.ndarray]:
        n_classes = model.get_nr_class()
        values = np.empty((prepared.l, n_classes * (n_classes - 1) // 2))
        row = np.ctypeslib.as_ctypes(values)
        answer = self.svmutil.libsvm.svm_predict_values
        labels = np.array([answer(model, prepared.x[i], row[i]) for i in range(prepared.l)])
        return labels, values

    def duals(self, model: Any) -> Duals:
        shape = (model.l,)
        coefficients = [np.ctypeslib.as_array(model.sv_coef[k], shape).copy() for k in range(model.nr_class - 1)]
        return Duals(np.array(model.get_sv_indices()) - 1, np.array(coefficients))


def assemble(names: Iterable[str], threads: int) -> tuple[dict[str, Any], dict[str, str]]:
    """The competitors that can be had here, and why the others cannot."""
    present: dict[str, Any] = {}
    absent: dict[str, str] = {}
    for name in names:
        try:
            present[name] = _make(name, threads)
        except (ImportError, OSError, RuntimeError, AttributeError) as error:
            absent[name] = f"{type(error).__name__}: {error}"
    return present, absent


def _make(name: str, threads: int) -> Any:
    dtype = np.float32 if name.endswith("32") else np.float64
    if name.startswith("mercer"):
        return Estimator(name, importlib.import_module("mercer").SVC, dtype, threads)
    if name == "sklearn":
        return Estimator(name, importlib.import_module("sklearn.svm").SVC, dtype, threads)
    if name.startswith("sklearnex"):
        return Estimator(name, importlib.import_module("sklearnex.svm").SVC, dtype, threads, n_jobs=True)
    if name == "thundersvm":
        return Thunder(name, importlib.import_module("thundersvm").SVC, dtype, threads, n_jobs=True)
    if name == "libsvm":
        return Libsvm()
    raise ValueError(f"{name!r} is no competitor; choose from {', '.join(TITLES)}")
