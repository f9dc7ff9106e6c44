"""LIBSVM's functions for Python (`svmutil`) on mercer's machines: the same arguments, options and answers.

    from mercer.cli.libsvm import svm_train, svm_predict

Training and its output are those of ``mercer train`` ([command line](command_line.md)), which writes and reads LIBSVM's
files. Where LIBSVM prints an error and goes on, these raise it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.cli.folds import squared_correlation
from mercer.cli.main import main
from mercer.files.libsvm_model import LibsvmModel, parse_libsvm_model, read_libsvm_model, write_libsvm_model
from mercer.files.libsvm_text import read_libsvm, write_libsvm
from mercer.samples.arrays import Floats, is_sparse

__all__ = [
    "evaluations",
    "read_libsvm",
    "svm_load_model",
    "svm_predict",
    "svm_read_problem",
    "svm_save_model",
    "svm_train",
    "write_libsvm",
]


def svm_train(y: Any, x: Any, options: str = "", *, W: Any = None) -> Any:
    """Train as svm-train does: a model, or with -v the accuracy in percent or the mean squared error.

    Parameters
    ----------
    y : sequence of numbers
        Labels, or numbers.
    x : list of dicts or of lists, array or sparse matrix
        Rows; the keys of a dict are LIBSVM's indices, from 1, or with -t 4 rows ``{0: number, 1: K(x, x_1), …}``.
    options : str, default=""
        Those of svm-train.
    W : sequence of numbers, optional
        A weight for each row; also ``-W FILE``.

    Returns
    -------
    LibsvmModel or float
        `model.estimator()` is the machine as an estimator of mercer.

    Examples
    --------
    >>> from mercer.cli.libsvm import svm_predict, svm_train
    >>> y, x = [1, 1, -1, -1], [{1: 1.0}, {1: 2.0, 3: 0.5}, {1: -1.0}, {2: -1.0, 1: -2.0}]
    >>> model = svm_train(y, x, "-t 0 -c 4 -q")
    >>> labels, (accuracy, _, _), values = svm_predict(y, x, model, "-q")
    >>> labels, accuracy
    ([1, 1, -1, -1], 100.0)
    """
    words = shlex.split(options)
    first = 0 if _value(words, "t") == "4" else 1
    folds = _value(words, "v") is not None
    if folds:  # its figures come as JSON
        words = [word for word in words if word != "-q"]
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "rows", Path(folder) / "rows.model"
        write_libsvm(_rows(x, first), np.asarray(y, dtype=np.float64), data, first_index=first, zeros=first == 0)
        if W is not None:
            weights = Path(folder) / "weights"
            weights.write_text("".join(f"{value!r}\n" for value in np.asarray(W, dtype=np.float64).tolist()))
            words += ["-W", str(weights)]
        told = _run(
            ["train", *words, *(["--json"] if folds else []), str(data), *([] if folds else [str(model)])], folds
        )
        if folds:
            figures = json.loads(told)
            if "accuracy" in figures:
                print(f"Cross Validation Accuracy = {100 * figures['accuracy']:g}%")
                return 100.0 * figures["accuracy"]
            print(f"Cross Validation Mean squared error = {figures['mean_squared_error']:g}")
            print(f"Cross Validation Squared correlation coefficient = {figures['squared_correlation']:g}")
            return figures["mean_squared_error"]
        return parse_libsvm_model(model.read_bytes())


def svm_predict(
    y: Any, x: Any, model: LibsvmModel, options: str = ""
) -> tuple[list[Any], tuple[float, float, float], Any]:
    """Labels or numbers, (accuracy in percent, mean squared error, squared correlation), and values for each row.

    Parameters
    ----------
    y : sequence of numbers
        The truth; an empty one where it is not known.
    x : list of dicts or of lists, array or sparse matrix
        As in `svm_train`.
    model : LibsvmModel
        Of `svm_train` or `svm_load_model`.
    options : str, default=""
        -b 1: the values are probabilities, in the order of the model's labels; -q: print nothing.

    Returns
    -------
    tuple of a list, three numbers and an array
        The values are decision values of every pair of classes in LIBSVM's order, or of the one function.
    """
    words = shlex.split(options)
    X = model.rows(_rows(x, model.first_index), "x", text=True)
    answers = model.predict(X)
    values = model.decisions(X)
    if _value(words, "b") == "1" and model.kind == "classification":
        labels = np.array(model.with_probabilities().label)
        machine = model.estimator(X.shape[1])
        values = machine.predict_proba(X)[:, np.searchsorted(machine.classes_, labels)]
        answers = labels[np.argmax(values, axis=1)]
    truth = np.asarray(y, dtype=np.float64)
    figures = evaluations(truth, answers) if len(truth) else (float("nan"),) * 3
    if "-q" not in words and len(truth):
        right = int((truth == answers).sum())
        if model.kind == "regression":
            print(f"Mean squared error = {figures[1]:g} (regression)")
            print(f"Squared correlation coefficient = {figures[2]:g} (regression)")
        else:
            print(f"Accuracy = {figures[0]:g}% ({right}/{len(truth)}) (classification)")
    return np.asarray(answers).tolist(), figures, values


def evaluations(ty: Any, pv: Any) -> tuple[float, float, float]:
    """Accuracy in percent, mean squared error and squared correlation.

    Parameters
    ----------
    ty, pv : sequence of numbers
        The truth, and what was predicted.
    """
    truth, answers = np.asarray(ty, dtype=np.float64), np.asarray(pv, dtype=np.float64)
    if truth.shape != answers.shape or not len(truth):
        raise ValueError(f"there are {truth.shape} true values and {answers.shape} predictions; they must be as many")
    error = float(np.mean((truth - answers) ** 2))
    return 100.0 * float(np.mean(truth == answers)), error, squared_correlation(truth, answers)


def svm_read_problem(data_file_name: str | os.PathLike[str]) -> tuple[Floats, sp.csr_array]:
    """y and x of a text file; `read_libsvm` with its answers in LIBSVM's order.

    Parameters
    ----------
    data_file_name : str or path-like
        The file.
    """
    X, y = read_libsvm(data_file_name)
    return y, X


def svm_load_model(model_file_name: str | os.PathLike[str]) -> LibsvmModel:
    """The model in a file of LIBSVM's.

    Parameters
    ----------
    model_file_name : str or path-like
        The file.
    """
    return read_libsvm_model(model_file_name)


def svm_save_model(model_file_name: str | os.PathLike[str], model: LibsvmModel) -> None:
    """Write a model as LIBSVM writes it.

    Parameters
    ----------
    model_file_name : str or path-like
        The file.
    model : LibsvmModel
        Of `svm_train` or `svm_load_model`.
    """
    write_libsvm_model(model, model_file_name)


def _value(words: list[str], letter: str) -> str | None:
    """What follows an option, if it was given."""
    given = [k for k, word in enumerate(words[:-1]) if word == f"-{letter}"]
    return words[given[-1] + 1] if given else None


def _rows(x: Any, first: int) -> Any:
    """Rows as a matrix whose first column has the index `first`."""
    if is_sparse(x) or isinstance(x, np.ndarray):
        return x
    if not any(isinstance(row, dict) for row in x):
        return np.asarray(x, dtype=np.float64)
    entries = [sorted(row.items()) for row in x]
    keys = [key for row in entries for key, _ in row]
    if min(keys, default=first) < first:
        raise ValueError(f"a row has the index {min(keys)}, but indices count from {first}; 0 is for -t 4")
    ends = np.cumsum([0, *map(len, entries)])
    data = np.array([value for row in entries for _, value in row], dtype=np.float64)
    return sp.csr_array((data, np.array(keys, dtype=np.intp) - first, ends), (len(x), max(keys, default=0) - first + 1))


def _run(words: list[str], quiet: bool) -> str:
    """Run the command; its complaint is raised, and what it prints is returned, or passed on."""
    said, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(told):
        try:
            failed = main(words) != 0
        except SystemExit as usage:
            failed = bool(usage.code)
    if failed:
        raise ValueError(said.getvalue().strip() or f"wrong usage: {shlex.join(words)}")
    if not quiet and told.getvalue():
        print(told.getvalue(), end="")
    if said.getvalue():
        print(said.getvalue(), end="")
    return told.getvalue()
