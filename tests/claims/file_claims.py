"""Random machines, and what files of them claim: a .mercer file, ONNX and C beside the public methods of the model."""

import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import mercer
from claims.false_claims import both_kernels
from mercer.files.export.c.export import export_c
from mercer.files.export.onnx import onnx_model
from reference.cancelling_data import FAMILIES, labels, samples, targets
from tools.file_tools import file

KERNELS = ("gaussian", "linear", "polynomial", "laplacian", "cosine", "sigmoid", "scaled", "shifted", "mahalanobis")
LABELS = {
    "strings": np.array(["no", 'a"b\n', "c?*/??/", "d\\é"]),
    "integers": np.array([-7, 0, 3, 12], dtype=np.int8),
    "large": np.array([0, 1, 2**40, 2**50]),
    "floats": np.array([-1.0, 0.5, 2.0, 1e9]),
    "truth": np.array([False, True]),
}
CLASSIFIERS = {
    "SVC": lambda rng, C: mercer.SVC(C=C, slack=str(rng.choice(["l1", "l2"])), bias=rng.choice([True, False])),
    "ovr": lambda rng, C: mercer.SVC(C=C, multiclass="ovr"),
    "ties": lambda rng, C: mercer.SVC(C=C, break_ties=True),
    "joint": lambda rng, C: mercer.SVC(C=C, multiclass=str(rng.choice(["crammer-singer", "weston-watkins"]))),
    "NuSVC": lambda rng, C: mercer.NuSVC(nu=0.2),
    "LinearSVC": lambda rng, C: mercer.LinearSVC(C=C),
    "RLSClassifier": lambda rng, C: mercer.RLSClassifier(lam=1 / C),
    "NystromRLSClassifier": lambda rng, C: mercer.NystromRLSClassifier(lam=1 / C, n_landmarks=6, random_state=0),
    "KernelMachineClassifier": lambda rng, C: mercer.KernelMachineClassifier(lam=1 / C),
    "PegasosSVC": lambda rng, C: mercer.PegasosSVC(random_state=0, max_iter=50),
    "GaussianProcessClassifier": lambda rng, C: mercer.GaussianProcessClassifier(optimise=False),
}
REGRESSORS = {
    "SVR": lambda rng, C: mercer.SVR(C=C, loss=str(rng.choice(["epsilon_insensitive", "huber"]))),
    "QuantileSVR": lambda rng, C: mercer.QuantileSVR((0.9, 0.1, 0.5), C=C),
    "LinearSVR": lambda rng, C: mercer.LinearSVR(C=C),
    "RLSRegressor": lambda rng, C: mercer.RLSRegressor(lam=1 / C),
    "NystromRLS": lambda rng, C: mercer.NystromRLS(lam=1 / C, n_landmarks=6, random_state=0),
    "RankSVM": lambda rng, C: mercer.RankSVM(C=min(C, 1.0)),
    "GaussianProcessRegressor": lambda rng, C: mercer.GaussianProcessRegressor(optimise=False),
}
NOVELTY = {
    "OneClassSVM": lambda rng, C: mercer.OneClassSVM(nu=0.3),
    "SVDD": lambda rng, C: mercer.SVDD(nu=0.3),
}
MACHINES = {**CLASSIFIERS, **REGRESSORS, **NOVELTY}


@dataclass
class Drawn:
    """A fitted model, the rows it was trained on and new ones; `told` is its reproduction."""

    seed: int
    told: str
    model: Any
    rows: np.ndarray
    broken: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def labelled(self):
        return hasattr(self.model, "classes_") or hasattr(self.model, "offset_") or hasattr(self.model, "radius_")


def draw(seed):
    """The model of a seed; None where its problem is refused."""
    rng = np.random.default_rng([seed, 99])
    name = list(MACHINES)[seed % len(MACHINES)]
    n, d, family = int(rng.integers(12, 30)), int(rng.integers(1, 5)), str(rng.choice(FAMILIES))
    X, width, plain = samples(family, n, d, float(rng.integers(0, 7)), seed)
    C, gamma, kernel = 10.0 ** rng.integers(-2, 5), 10.0 ** rng.integers(-2, 2), str(rng.choice(KERNELS))
    machine = MACHINES[name](rng, float(C))
    if "kernel" in machine.get_params(deep=False):
        machine.set_params(**both_kernels(kernel, gamma, width, d)[1])
    target, kind = None, ""
    if name in CLASSIFIERS:
        kind = str(rng.choice(list(LABELS)))
        k = int(rng.integers(2, 1 + min(4, len(LABELS[kind]))))
        target = LABELS[kind][labels(plain, k, seed)]
    elif name in REGRESSORS:
        target = targets(plain, 10.0 ** rng.integers(-3, 4), seed)
    steps = [] if rng.random() < 0.7 else [StandardScaler() if rng.random() < 0.5 else MinMaxScaler(clip=True)]
    model = make_pipeline(*steps, machine) if steps else machine
    told = f"seed {seed}: {name} {kernel} on {family}, n={n}, d={d}, C={C:g}, gamma={gamma:g}, {kind}, {steps}"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model.fit(X, target)
        except (ValueError, FloatingPointError):
            return None
    between = X[rng.permutation(n)[: n // 2]] * 0.5 + X[rng.permutation(n)[: n // 2]] * 0.5
    return Drawn(seed, told, model, np.concatenate([X, between]))


def public_values(model, rows):
    """f of the public method, a column for each output that a file has: pairs of classes in the place of votes."""
    machine = model[-1] if hasattr(model, "steps") else model
    pairs = (
        getattr(machine, "decision_function_shape", "ovo") == "ovr" and getattr(machine, "multiclass", "ovo") == "ovo"
    )
    method = "decision_function" if hasattr(model, "decision_function") else "predict"
    if pairs:
        machine.decision_function_shape = "ovo"
    try:
        return np.asarray(getattr(model, method)(rows), dtype=float).reshape(len(rows), -1)
    finally:
        if pairs:
            machine.decision_function_shape = "ovr"


def check_saved(drawn):
    """A file gives the same bits back."""
    with file("model.mercer") as path:
        mercer.save(drawn.model, path)
        again = mercer.load(path)
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(drawn.model, method):
            one, two = (np.asarray(getattr(model, method)(drawn.rows)) for model in (drawn.model, again))
            if one.dtype.kind != two.dtype.kind or not np.array_equal(one, two):
                drawn.broken.append(f"{method} of the .mercer file differs")


# Beside the figure in the file, which has two digits: what rounding in another order may add, of the largest value.
ALLOWED = {"float64": 1e-8, "float32": 1e-3}


def terms(model, rows):
    """The size of the terms of f: of w alone, which a file tries no rows of, or of coefficients that cancel."""
    machine = model[-1] if hasattr(model, "steps") else model
    if hasattr(machine, "coef_"):
        seen = model[:-1].transform(rows) if hasattr(model, "steps") else rows
        return np.abs(seen) @ np.abs(np.atleast_2d(machine.coef_)).T + np.abs(np.atleast_1d(machine.intercept_))
    if not hasattr(machine, "dual_coef_"):
        return 0.0
    largest = (
        np.abs(machine.kernel_.diag(machine.support_vectors_)).max(initial=0.0) if hasattr(machine, "support_") else 1.0
    )
    return np.abs(machine.dual_coef_).sum() * largest


def lost_of_distances(model, rows):
    """Units of rounding that a distance may lose, beside the terms of f: in matrix products, and in x times a matrix.

    A file takes distances from products only where γ‖z‖² is below 1000; x times a matrix is rounded before differences
    are taken, in Python as in the file, but in another order.
    """
    machine = model[-1] if hasattr(model, "steps") else model
    recipe = machine.kernel_.recipe() if hasattr(machine, "kernel_") else None
    if recipe is None or recipe.inner != "sqdist":
        return 0.0
    if recipe.factor is None:
        return 200.0
    seen = model[:-1].transform(rows) if hasattr(model, "steps") else rows
    return 200.0 + np.linalg.norm(recipe.factor) * np.linalg.norm(seen, axis=1).max(initial=0.0)


def compare(drawn, medium, dtype, rows, decision, label, claimed, lost=0.0):
    """Values are as near as the file says at its own vectors, and labels are those of `predict` where f decides."""
    wanted = public_values(drawn.model, rows)
    size = np.abs(wanted).max(axis=0)
    allowed = (100 * claimed + ALLOWED[dtype]) * size + 16 * np.finfo(dtype).eps * (1 + lost) * terms(drawn.model, rows)
    off = np.abs(np.reshape(decision, wanted.shape) - wanted)
    if not (off <= allowed).all():
        drawn.broken.append(
            f"{medium}: off by {np.max(off / np.maximum(size, 1e-300)):.2g} of the largest, claimed {claimed:.2g}"
        )
        return
    if not drawn.labelled:
        return
    settled = (np.abs(wanted) > 2 * allowed).all(axis=1)
    if wanted.shape[1] > 1:  # the largest of several may be ahead by little
        gaps = np.abs(wanted[:, :, None] - wanted[:, None, :])[:, *np.triu_indices(wanted.shape[1], 1)]
        settled &= gaps.min(axis=1) > 4 * allowed.max()
    answers = drawn.model.predict(rows)
    told = np.asarray(label)
    told = told.astype(answers.dtype) if answers.dtype.kind not in "UO" else told.astype(str)
    if (told[settled] != answers[settled]).any():
        drawn.broken.append(f"{medium}: {(told[settled] != answers[settled]).sum()} labels differ from predict")


def claimed_in(text):
    """The figure that a file states; 0 where it states none."""
    found = re.search(r"by at most ([\d.e+-]+) of the largest", text)
    return float(found[1]) if found else 0.0


def rows_in(drawn, dtype):
    """The rows that this type can hold, at least to half of its digits."""
    with np.errstate(over="ignore"):
        rows = drawn.rows.astype(dtype)
    held = np.isfinite(rows) & (np.abs(rows - drawn.rows) <= np.sqrt(np.finfo(dtype).eps) * np.abs(drawn.rows))
    return rows[held.all(axis=1)]


def check_onnx(drawn, dtype):
    """onnxruntime computes what the model answers, or the export is refused in words."""
    import onnxruntime

    try:
        made = onnx_model(drawn.model, dtype=dtype)
    except (TypeError, ValueError) as error:
        return refuse(drawn, error, "ONNX")
    options = onnxruntime.SessionOptions()
    # Its further optimisations turn a division by one number into a factor of float32.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rows = rows_in(drawn, dtype)
    if not len(rows):
        return None
    found = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": rows}), strict=True))
    lost = lost_of_distances(drawn.model, rows.astype(float))
    decision, label, claimed = found["decision"], found.get("label"), claimed_in(made.doc_string)
    compare(drawn, f"ONNX of {dtype}", "float64", rows.astype(float), decision, label, claimed, lost)
    return None


def c_source(drawn, name, dtype):
    """The C file; None where it is refused in words."""
    try:
        return export_c(drawn.model, dtype=dtype, name=name)
    except (TypeError, ValueError) as error:
        return refuse(drawn, error, "C file")


def check_c(drawn, dtype, compiled, text):
    rows = rows_in(drawn, dtype).astype(float)
    if len(rows):
        decision, label = compiled(rows)
        compare(drawn, f"C of {dtype}", dtype, rows, decision, label, claimed_in(text))


def refuse(drawn, error, names):
    if not re.search(names, str(error)):
        drawn.broken.append(f"refused without naming the file: {type(error).__name__}: {error}")
    drawn.refused.append(str(error))
