"""LIBSVM's model file: read with all counts checked, written byte for byte as LIBSVM 3.37 writes it.

    svm_type c_svc                decision_ij(x) = Σ coef k(SV, x) − rho_ij > 0 votes for label i
    kernel_type rbf
    gamma 0.5                     parameters of this kernel: degree, gamma, coef0
    nr_class 2                    also 2 for regression and one-class
    total_sv 2
    rho 0.25                      one for each pair of classes, 12 13 ... 23 ...
    label 1 -1                    classification only, as is nr_sv
    probA, probB                  -b 1: Platt's sigmoid per pair; for regression only probA, the Laplace scale
    prob_density_marks            -b 1, one-class: ten of them
    nr_sv 1 1
    SV
    1 1:0.5 3:1                   nr_class − 1 coefficients, then the support vector

LIBSVM's own reader trusts these counts and reads beyond its arrays if they disagree. Here every count is checked before
it is used, and an error in the file raises ModelFormatError with its line.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy.sparse as sp

from mercer.files.atomic_write import replacing
from mercer.files.model import Estimator, Facts, Model, check_model, margin_facts, pair_names
from mercer.files.model_text import header_line, read_vectors, split_header, zero_based_columns
from mercer.kernels import Kernel
from mercer.kernels.names import kernel_named
from mercer.places.expansion import Expansion
from mercer.runtime.errors import ModelFormatError
from mercer.runtime.threads import effective_n_threads
from mercer.samples.arrays import Floats, Indices, is_sparse
from mercer.samples.engine import configured_engine
from mercer.samples.labels import class_pairs, votes, winner
from mercer.samples.matrices import dense

if TYPE_CHECKING:
    from mercer.files.liblinear_model import LiblinearModel

CLASSIFIERS: Final = ("c_svc", "nu_svc")
SVM_TYPES: Final = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
# LIBSVM's name of a kernel: mercer's name, and its parameters in the order of the file.
KERNELS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "linear": ("linear", ()),
    "polynomial": ("poly", ("degree", "gamma", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
    "precomputed": ("precomputed", ()),
}
_KEYS: Final = (
    *("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv"),
    *("rho", "label", "probA", "probB", "prob_density_marks", "nr_sv"),
)


@dataclass(frozen=True, eq=False)
class LibsvmModel(Model):
    """Content of a LIBSVM model file, in the file's order and with its signs.

    `coefficients` has a row for each support vector and one column fewer than there are classes. For a precomputed
    kernel `vectors` has one column, the serial numbers (from 1) of the training rows.
    """

    svm_type: str
    kernel_type: str
    numbers: dict[str, float]
    rho: Floats
    coefficients: Floats
    vectors: sp.csr_array
    label: tuple[int, ...] | None = None
    nr_sv: tuple[int, ...] | None = None
    prob_a: Floats | None = None
    prob_b: Floats | None = None
    density_marks: Floats | None = None
    name: str = "the model"  # name of the file
    program: str = "LIBSVM"  # program that the format belongs to

    @property
    def kind(self) -> str:
        if self.svm_type in CLASSIFIERS:
            return "classification"
        return "one-class" if self.svm_type == "one_class" else "regression"

    @cached_property
    def first_index(self) -> int:  # type: ignore[override]  # read-only here
        """First index of LIBSVM text: 0 for a precomputed kernel, whose rows begin with their serial number."""
        return 0 if self.kernel_type == "precomputed" else 1

    @property
    def nr_class(self) -> int:
        """Number of classes; 2 for regression and one-class, as in LIBSVM."""
        return 2 if self.label is None else len(self.label)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of classes in the order of rho."""
        return class_pairs(self.nr_class)

    @cached_property
    def has_probabilities(self) -> bool:  # type: ignore[override]  # read-only here
        """True if the model was trained with -b 1."""
        return self.prob_a is not None or self.density_marks is not None

    @property
    def kernel(self) -> Kernel:
        """Kernel as a mercer object."""
        name = KERNELS[self.kernel_type][0]
        degree = int(self.numbers.get("degree", 3))
        return kernel_named(
            name, degree=degree, gamma=self.numbers.get("gamma", 1.0), coef0=self.numbers.get("coef0", 0.0)
        )

    @cached_property
    def by_pair(self) -> sp.csr_array:
        """Coefficients with a column for each pair of classes."""
        if self.nr_sv is None or self.nr_class == 2:
            return sp.csr_array(self.coefficients)
        # The file has one coefficient of a support vector for each class other than its own, in the order of classes.
        k, (n, width) = self.nr_class, self.coefficients.shape
        owner = np.repeat(np.arange(k), self.nr_sv)[:, None]
        other = np.arange(width) + (np.arange(width) >= owner)
        first, second = np.minimum(owner, other), np.maximum(owner, other)
        pair = first * (2 * k - first - 1) // 2 + second - first - 1
        shape = (n, k * width // 2)
        table = sp.csr_array(
            (self.coefficients.ravel(), pair.ravel(), width * np.arange(n + 1)), shape=shape, copy=True
        )
        table.eliminate_zeros()
        return table

    @property
    def expansion(self) -> Expansion | None:
        return self.function() if len(self.rho) else None  # a single class has no function

    def function(self, n_features: int | None = None) -> Expansion:
        """Return the decision functions of all pairs, for samples with ``n_features`` columns (or rows of K)."""
        table = self.by_pair.toarray() if self.by_pair.shape[1] == 1 else self.by_pair
        if self.kernel_type == "precomputed":
            columns = self.serials - 1
            n = max(n_features or 0, int(columns.max(initial=-1)) + 1)
            return Expansion(self.kernel, None, table, -self.rho, columns, n)
        rows = self.vectors
        shape = (rows.shape[0], max(n_features or 0, rows.shape[1]))
        vectors = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=shape)
        return Expansion(self.kernel, vectors, table, -self.rho)

    def facts(self) -> Facts:
        """Return the content of the file as plain values, by name."""
        facts: Facts = {"format": self.program, "machine": self.svm_type, "kernel": str(self.kernel)}
        if self.label is not None:
            facts["labels"] = list(self.label)
            facts["support_vectors"] = {str(c): n for c, n in zip(self.label, self.nr_sv or (), strict=True)}
        facts["total_support_vectors"] = len(self.coefficients)
        facts["probabilities"] = self.has_probabilities
        facts["certificate"] = f"none: {self.program}'s format stores neither a certificate nor C and the tolerance"
        if (expansion := self.expansion) is None or expansion.vectors is None:
            return facts
        names = [""] if self.label is None else pair_names(self.label)
        return facts | margin_facts(expansion.norms(), names)

    def rows(self, X: Any, source: str, text: bool) -> Any:
        """Return the rows of a data file as the model needs them; `text` means that the file is LIBSVM text."""
        if text and self.kernel_type == "precomputed":
            return np.asarray(dense(X))[:, 1:]  # column 0 holds serial numbers, which prediction does not need
        return X

    def decisions(self, X: Any) -> Floats:
        """Return the decision values of all pairs; sparse rows may have fewer or more columns than support vectors."""
        expansion = self.function(X.shape[1])
        width = expansion.n_columns if expansion.columns is not None else expansion.vectors.shape[1]
        if X.shape[1] < width:
            if expansion.columns is not None:
                raise ValueError(f"the rows have {X.shape[1]} kernel values, but the model uses the one at {width}")
            if not is_sparse(X):
                raise ValueError(f"the rows have {X.shape[1]} columns, but the model was trained on {width} or more")
            X = X.copy()
            X.resize((X.shape[0], width))
        engine = configured_engine()
        return expansion(X if engine is None else engine.samples(X), effective_n_threads(None))

    def predict(self, X: Any) -> Any:
        """Return labels, numbers, or ±1."""
        if self.nr_class == 1 and self.label is not None:
            return np.full(X.shape[0], self.label[0])
        return self.answers(self.decisions(X))

    def with_probabilities(self) -> LibsvmModel:
        """Return the model itself; raise ValueError if it was trained without probabilities."""
        if not self.has_probabilities:
            raise ValueError("Model does not support probabiliy estimates: train it with -b 1")
        return self

    def estimator(self, n_features: int | None = None) -> Estimator:
        from mercer.files.libsvm_estimator import estimator_from_libsvm

        return estimator_from_libsvm(self, n_features=n_features)

    def as_libsvm(self) -> LibsvmModel:
        return self

    def as_liblinear(self) -> LiblinearModel:
        raise TypeError(f"{self.name} is a machine with support vectors, which LIBLINEAR's format cannot store")

    def answers(self, decisions: Floats) -> Any:
        """Return the predictions of svm-predict: the label with most votes, ±1 for one-class, f for a regression.

        In a tie of votes the first label wins.
        """
        if self.svm_type == "one_class":
            return np.where(decisions[:, 0] > 0, 1, -1)
        if self.label is None:
            return decisions[:, 0]
        return np.array(self.label)[winner(votes(decisions, self.nr_class)[0])]

    @property
    def serials(self) -> Indices:
        """Serial numbers, from 1, of the training rows that are support vectors, for a precomputed kernel."""
        return self.vectors.toarray()[:, 0].astype(np.intp)


# --- reading ---------------------------------------------------------------------------------------------------------


def read_libsvm_model(path: str | os.PathLike[str]) -> LibsvmModel:
    """Read a model that svm-train wrote, or raise ModelFormatError.

    Parameters
    ----------
    path : str or path-like
        File to read.
    """
    return parse_libsvm_model(Path(path).read_bytes(), os.fspath(path))


def parse_libsvm_model(content: bytes, name: str = "the model") -> LibsvmModel:
    """Parse the bytes of a LIBSVM model file; see `read_libsvm_model`."""
    header, tail = split_header("SV", content, name, "LIBSVM", _KEYS)
    svm_type = header.word("svm_type", SVM_TYPES)
    kernel_type = header.word("kernel_type", tuple(KERNELS))
    numbers: dict[str, float] = {}
    for key in KERNELS[kernel_type][1]:
        (numbers[key],) = header.integers(key, 1) if key == "degree" else header.floats(key, 1).tolist()
    if numbers.get("degree", 0) < 0 or numbers.get("gamma", 0) < 0:
        raise ModelFormatError(f"{name}: degree and gamma must not be negative, but they are {numbers}")
    is_classifier = svm_type in CLASSIFIERS
    (nr_class,) = header.integers("nr_class", 1)
    (total_sv,) = header.integers("total_sv", 1)
    if nr_class < 1 or (not is_classifier and nr_class != 2):
        raise ModelFormatError(f"{name}: nr_class {nr_class} is impossible for svm_type {svm_type}")
    n_pairs = nr_class * (nr_class - 1) // 2
    rho = header.floats("rho", n_pairs)
    label, nr_sv, prob_a, prob_b, marks = None, None, None, None, None
    if is_classifier:
        label, nr_sv = header.labels(nr_class), tuple(header.integers("nr_sv", nr_class))
        if min(nr_sv) < 0 or sum(nr_sv) != total_sv:
            raise ModelFormatError(f"{name}: nr_sv {nr_sv} must add up to total_sv {total_sv}")
        if header.has("probA") or header.has("probB"):
            prob_a, prob_b = header.floats("probA", n_pairs), header.floats("probB", n_pairs)
    elif header.has("probA") and svm_type != "one_class":
        prob_a = header.floats("probA", 1)
    if header.has("prob_density_marks") and svm_type == "one_class":
        marks = header.floats("prob_density_marks", 10)
    header.finish()
    coefficients, vectors = read_vectors(tail, total_sv, nr_class - 1, name, header.end + 1, "total_sv")
    if kernel_type == "precomputed":
        _check_serials(vectors, name)
    else:
        vectors = zero_based_columns(vectors, name)
    parts = (numbers, rho, coefficients, vectors, label, nr_sv, prob_a, prob_b, marks)
    return LibsvmModel(svm_type, kernel_type, *parts, name=name)


def _check_serials(vectors: sp.csr_array, name: str) -> None:
    """Raise ModelFormatError unless each vector is a serial number from 1."""
    serials = vectors.data
    has_one_entry = np.array_equal(np.diff(vectors.indptr), np.ones(vectors.shape[0])) and not vectors.indices.any()
    if not has_one_entry or (serials != np.floor(serials)).any() or (serials < 1).any() or (serials >= 2**31).any():
        raise ModelFormatError(
            f"{name}: a support vector of a precomputed kernel must be 0:i with the row number i of K from 1"
        )


# --- writing ---------------------------------------------------------------------------------------------------------


def write_libsvm_model(model: LibsvmModel, path: str | os.PathLike[str]) -> None:
    """Write the file that svm-predict reads; it appears only when it is complete.

    Parameters
    ----------
    model : LibsvmModel
        Model from `libsvm_from_estimator`.
    path : str or path-like
        File to write.
    """
    check_model(model, LibsvmModel, "mercer.files.libsvm_estimator.libsvm_from_estimator")
    with replacing(path) as file:
        file.write(format_libsvm_model(model))


def format_libsvm_model(model: LibsvmModel) -> bytes:
    """Return the bytes of the file, with 17 digits as LIBSVM, or 8 for the entries of support vectors."""
    lines = [f"svm_type {model.svm_type}", f"kernel_type {model.kernel_type}"]
    for key in KERNELS[model.kernel_type][1]:
        value = model.numbers[key]
        lines.append(f"degree {int(value)}" if key == "degree" else f"{key} {value:.17g}")
    lines += [f"nr_class {model.nr_class}", f"total_sv {len(model.coefficients)}", header_line("rho", model.rho)]
    if model.label is not None:
        lines.append(header_line("label", model.label))
    for key, values in (("probA", model.prob_a), ("probB", model.prob_b), ("prob_density_marks", model.density_marks)):
        if values is not None:
            lines.append(header_line(key, values))
    if model.nr_sv is not None:
        lines.append(header_line("nr_sv", model.nr_sv))
    lines.append("SV")
    first = 0 if model.kernel_type == "precomputed" else 1
    rows = model.vectors
    columns, entries, ends = (rows.indices + first).tolist(), rows.data.tolist(), rows.indptr.tolist()
    entry_format = "%d:%d" if first == 0 else "%d:%.8g"
    for i, coefficients in enumerate(model.coefficients.tolist()):
        words = [f"{value:.17g}" for value in coefficients]
        words += [entry_format % (columns[k], entries[k]) for k in range(ends[i], ends[i + 1])]
        lines.append(" ".join([*words, ""]))
    return ("\n".join(lines) + "\n").encode("ascii")
