"""The smallest fitted model of every class that a .mercer file may hold, with rows to predict.

Run as a program, this module adds those that are missing, with their answers, to the zip file that it is given:
tests/files/mercer_file/written_by_0_1_0.zip was made so, and shows that later versions read what users have. What the
file holds stays as it was written.
"""

import json
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

import mercer
from mercer import SVC, SVR, RLSRegressor, kernels
from mercer.inspection.features import GaussianSeries, Monomials, Nystrom, RandomFourier

RNG = np.random.default_rng(3)
X = RNG.normal(size=(14, 2))
SIDES = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
THREE = np.arange(14) % 3
VALUES = np.sin(X[:, 0])
K = X @ X.T + 1.0
WORDS = ["abab", "abba", "baba", "cdcd", "dcdc", "ccdd"]
TABLE = np.array(  # a number, a category, a date, a text, and a column to drop
    [
        [f"{i % 5}.5", ("red", "blue", "green")[i % 3], f"2024-01-{i + 10}", ("on time", "late")[i % 2], "x"]
        for i in range(14)
    ],
    dtype=object,
)


def _classes(names, *options):
    return {name: (lambda name=name: (getattr(mercer, name)(*options).fit(X, SIDES), X)) for name in names}


def _searched(machine, grid, y):
    return machine(grid, cv=2).fit(X, y), X


def _mapped(step):
    return make_pipeline(step, mercer.RLSClassifier()).fit(X, SIDES), X


MODELS = {
    **_classes(
        (
            *("SVC", "NuSVC", "LinearSVC", "MKLClassifier", "KernelMachineClassifier", "NystromRLSClassifier"),
            *("RLSClassifier", "RLSClassifierCV", "GaussianProcessClassifier"),
        )
    ),
    **{
        name: (lambda name=name: (getattr(mercer, name)().fit(X, VALUES), X))
        for name in (
            *("SVR", "NuSVR", "LinearSVR", "MKLRegressor", "KernelMachineRegressor", "NystromRLS", "RLSRegressor"),
            *("RLSRegressorCV", "QuantileSVR", "RankSVM", "GaussianProcessRegressor", "RelevanceVectorRegressor"),
            *("OneClassSVM", "SVDD", "KernelPCA"),
        )
    },
    "KernelKMeans": lambda: (mercer.KernelKMeans(2, random_state=0).fit(X), X),
    "SpectralClustering": lambda: (mercer.SpectralClustering(2, random_state=0).fit(X), X),
    "KernelCCA": lambda: (mercer.KernelCCA(1).fit(X, VALUES), X),
    "PegasosSVC": lambda: (mercer.PegasosSVC(random_state=0, max_iter=5).fit(X, SIDES), X),
    "SVC, three classes": lambda: (SVC().fit(X, np.array(["a", "b", "c"])[THREE]), X),
    "SVC, CSR": lambda: (SVC(kernel="linear").fit(sp.csr_array(X * (X > 0)), SIDES), sp.csr_array(X)),
    "SVC, strings": lambda: (SVC(kernel=kernels.Spectrum()).fit(WORDS, [0, 0, 0, 1, 1, 1]), WORDS),
    "SVC, precomputed": lambda: (SVC(kernel="precomputed").fit(K, SIDES), K),
    "SVC, compressed": lambda: (mercer.compress(SVC(C=10.0).fit(X, SIDES), 3), X),
    "SVC, joint": lambda: (SVC(multiclass="crammer-singer").fit(X, THREE), X),
    "Tabular": lambda: (mercer.Tabular(SVR(), text=["x3"], drop=["x4"]).fit(TABLE, VALUES), TABLE),
    "TunedSVC": lambda: _searched(mercer.TunedSVC, {"C": [1.0, 10.0]}, SIDES),
    "TunedSVR": lambda: _searched(mercer.TunedSVR, [{"C": [1.0]}, {"C": [1.0], "gamma": [0.5]}], VALUES),
    "TunedOneClassSVM": lambda: _searched(mercer.TunedOneClassSVM, {"nu": [0.2, 0.5]}, None),
    **{
        f"CalibratedClassifier, {method}": (
            lambda method=method: (SVC().fit(X, SIDES).calibrate(X, SIDES, method=method, cv=2), X)
        )
        for method in ("sigmoid", "isotonic", "temperature", "venn-abers")
    },
    **{
        f"CalibratedRegressor, {cv}": (lambda cv=cv: (SVR().fit(X, VALUES).calibrate(X, VALUES, cv=cv), X))
        for cv in (2, "leave-one-out", "held-out")
    },
    "CalibratedRegressor, least squares": lambda: (
        RLSRegressor().fit(X, VALUES).calibrate(X, VALUES, cv="leave-one-out"),
        X,
    ),
    "Nystrom": lambda: _mapped(Nystrom(n_components=5)),
    "RandomFourier": lambda: _mapped(RandomFourier(n_components=5)),
    "GaussianSeries": lambda: _mapped(GaussianSeries()),
    "Monomials": lambda: _mapped(Monomials(kernels.Polynomial(degree=2))),
}


def fitted(name):
    """The model of this name, and rows to ask it about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name]()


def answers(model, rows):
    """Everything that a model says of the rows, as lists."""
    said = {}
    for method in ("predict", "decision_function", "predict_proba", "predict_interval", "transform"):
        if hasattr(model, method):
            try:
                said[method] = np.asarray(getattr(model, method)(rows)).tolist()
            except ValueError as error:  # intervals of probabilities are for one method alone
                said[method] = type(error).__name__
    return said


def main(target):
    before = {}
    if Path(target).exists():
        with zipfile.ZipFile(target) as archive:
            before = {name: archive.read(name) for name in archive.namelist()}
    said = json.loads(before.pop("answers.json", b"{}"))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as written, tempfile.TemporaryDirectory() as folder:
        for name, content in before.items():
            written.writestr(name, content)
        for name in MODELS:
            if f"{name}.mercer" in before:
                continue
            model, rows = fitted(name)
            path = Path(folder) / "model.mercer"
            mercer.save(model, path)
            written.writestr(f"{name}.mercer", path.read_bytes())
            said[name] = answers(model, rows)
        written.writestr("answers.json", json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1])
