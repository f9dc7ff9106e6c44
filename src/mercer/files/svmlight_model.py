"""SVMlight's model file, read as a LIBSVM model of the classes +1 and −1, and written from a model of one function.

    SVM-light Version V6.02
    2 # kernel type                     0 linear, 1 (s a·b + c)^d, 2 exp(−γ‖a − b‖²), 3 tanh(s a·b + c)
    3 # kernel parameter -d             then -g, -s, -r and -u
    ...
    0.25 # threshold b, each following line is a SV (starting with alpha*y)
    0.5 1:0.25 3:1 # comment

f(x) = Σ α_iy_i k(x_i, x) − b, so that SVMlight's b is LIBSVM's rho. svm_learn does not store whether f is for two
classes, a regression or a ranking; files written here have a comment with it, which svm_classify skips:

    2 # kernel type, of epsilon_svr
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import numpy as np

from mercer.files.atomic_write import replacing
from mercer.files.libsvm_model import CLASSIFIERS, KERNELS, SVM_TYPES, LibsvmModel
from mercer.files.model import check_model
from mercer.files.model_text import as_float, as_integer, read_vectors, zero_based_columns
from mercer.runtime.errors import ModelFormatError

# Beginnings of the comments in the lines after the first.
_HEADER: Final = (
    *("kernel type", "kernel parameter -d", "kernel parameter -g", "kernel parameter -s", "kernel parameter -r"),
    *("kernel parameter -u", "highest feature index", "number of training documents"),
    *("number of support vectors plus 1", "threshold b"),
)
# Separator in the first comment before the machine, which is named unless it is a classifier.
_MACHINE_MARK: Final = ", of "
_TYPES: Final = ("linear", "polynomial", "rbf", "sigmoid")  # LIBSVM's names, in the order of SVMlight's numbers


def read_svmlight_model(path: str | os.PathLike[str]) -> LibsvmModel:
    """Read a model that svm_learn or `write_svmlight_model` wrote, or raise ModelFormatError.

    A file from svm_learn does not say whether it is a regression, and is read as two classes, +1 and −1; predictions of
    a regression are then the model's `decisions(X)`.

    Parameters
    ----------
    path : str or path-like
        File to read.
    """
    return parse_svmlight_model(Path(path).read_bytes(), os.fspath(path))


def parse_svmlight_model(content: bytes, name: str = "the model") -> LibsvmModel:
    """Parse the bytes of an SVMlight model file; see `read_svmlight_model`."""
    lines = content.split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines or not lines[0].startswith(b"SVM-light Version"):
        raise ModelFormatError(f"{name} is not an SVMlight model: it does not begin with 'SVM-light Version'")
    if len(lines) < len(_HEADER) + 1:
        raise ModelFormatError(
            f"{name} is truncated: the header needs {len(_HEADER) + 1} lines, but the file has {len(lines)}"
        )
    texts, comments = [], []
    for number, (line, comment) in enumerate(zip(lines[1:], _HEADER, strict=False), 2):
        value, mark, text = line.decode("ascii", "backslashreplace").partition("#")
        if not mark or not text.strip().startswith(comment):
            raise ModelFormatError(f"{name}:{number}: expected a value and '# {comment}', found {line[:40]!r}")
        texts.append(value.strip())
        comments.append(text.strip().removeprefix(comment))
    kind, degree, gamma, s, r = texts[:5]
    kernel_type, numbers = _kernel(as_integer(kind, name), degree, gamma, s, r, name)
    count = as_integer(texts[8], name) - 1
    body = [line.partition(b"#")[0] for line in lines[1 + len(_HEADER) :]]
    first_line = len(_HEADER) + 2
    coefficients, vectors = read_vectors(body, count, 1, name, first_line, "the number of support vectors, less 1,")
    vectors = zero_based_columns(vectors, name)
    rho = np.array([as_float(texts[9], name)])
    svm_type = comments[0].removeprefix(_MACHINE_MARK)
    if svm_type in SVM_TYPES and svm_type not in CLASSIFIERS:
        parts = (svm_type, kernel_type, numbers, rho, coefficients, vectors)
        return LibsvmModel(*parts, name=name, program="SVMlight")
    is_positive = coefficients[:, 0] > 0
    order = np.concatenate([np.flatnonzero(is_positive), np.flatnonzero(~is_positive)])
    return LibsvmModel(
        "c_svc",
        kernel_type,
        numbers,
        rho,
        coefficients[order],
        vectors[order],
        (1, -1),
        (int(is_positive.sum()), int((~is_positive).sum())),
        name=name,
        program="SVMlight",
    )


def write_svmlight_model(model: LibsvmModel, path: str | os.PathLike[str], n_documents: int | None = None) -> None:
    """Write a model of one function in the format of SVMlight's svm_classify.

    Parameters
    ----------
    model : LibsvmModel
        Model of a regression, of one class, or of the classes +1 and −1, with a kernel that is not precomputed.
    path : str or path-like
        File to write.
    n_documents : int, optional
        Number of training rows, which the file states; default: the number of support vectors.
    """
    check_model(model, LibsvmModel, "mercer.files.libsvm_estimator.libsvm_from_estimator")
    if model.label not in (None, (1, -1), (-1, 1)) or model.kernel_type not in _TYPES or len(model.rho) != 1:
        raise TypeError(
            f"an SVMlight file stores one function with the kernels {', '.join(_TYPES)}, for a regression, one class "
            f"or the classes 1 and -1; this is {model.svm_type} with the kernel {model.kernel_type}, labels "
            f"{model.label}"
        )
    sign = -1.0 if model.label == (-1, 1) else 1.0
    numbers, count = model.numbers, len(model.coefficients)
    gamma, coef0 = numbers.get("gamma", 1.0), numbers.get("coef0", 1.0)
    values = (
        _TYPES.index(model.kernel_type), int(numbers.get("degree", 3)), f"{gamma:.17g}", f"{gamma:.17g}",
        f"{coef0:.17g}", "empty", model.vectors.shape[1], count if n_documents is None else n_documents, count + 1,
        f"{sign * model.rho[0]:.17g}",
    )  # fmt: skip
    head = [f"{value} # {comment}" for value, comment in zip(values, _HEADER, strict=True)]
    head[0] += f"{_MACHINE_MARK}{model.svm_type}" if model.label is None else ""
    head[-1] += ", each following line is a SV (starting with alpha*y)"
    lines = ["SVM-light Version V6.02", *head]
    starts, columns, entries = model.vectors.indptr, model.vectors.indices + 1, model.vectors.data
    for k, coefficient in enumerate(sign * model.coefficients[:, 0]):
        row = slice(starts[k], starts[k + 1])
        pairs = "".join(f"{i}:{v:.17g} " for i, v in zip(columns[row].tolist(), entries[row].tolist(), strict=True))
        lines.append(f"{coefficient:.17g} {pairs}#")
    with replacing(path) as file:
        file.write("\n".join([*lines, ""]).encode("ascii"))


def _kernel(kind: int, degree: str, gamma: str, s: str, r: str, name: str) -> tuple[str, dict[str, float]]:
    """Return LIBSVM's name of a kernel and its parameters, from the values in an SVMlight header."""
    if not 0 <= kind < len(_TYPES):
        raise ModelFormatError(f"{name}: kernel type {kind} is unknown, or a function compiled into SVMlight")
    texts = {"degree": degree, "gamma": gamma if _TYPES[kind] == "rbf" else s, "coef0": r}
    numbers: dict[str, float] = {}
    for key in KERNELS[_TYPES[kind]][1]:
        numbers[key] = as_integer(texts[key], name) if key == "degree" else as_float(texts[key], name)
    if numbers.get("degree", 0) < 0 or numbers.get("gamma", 0) < 0:
        raise ModelFormatError(f"{name}: degree and gamma (or -s) must not be negative, but they are {numbers}")
    return _TYPES[kind], numbers
