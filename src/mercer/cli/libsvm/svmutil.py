"""LIBSVM's functions for Python (`svmutil`), computed by mercer: same arguments, options and return values.

    from mercer.cli.libsvm import svm_train, svm_predict

Training and its output are those of ``mercer train`` ([command line](command_line.md)), which writes and reads LIBSVM's
files. Where LIBSVM prints an error and continues, these functions raise it.
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
    """Train as svm-train does, or with -v cross-validate.

    Parameters
    ----------
    y : sequence of numbers
        Class labels, or targets of a regression.
    x : list of dicts or of lists, array or sparse matrix
        Rows; the keys of a dict are LIBSVM's indices, which count from 1. With -t 4, a row is
        ``{0: row number, 1: K(x, x_1), …}``.
    options : str, default=""
        Options of svm-train.
    W : sequence of numbers, optional
        Weight of each row; ``-W FILE`` in `options` reads the weights from a file.

    Returns
    -------
    LibsvmModel or float
        The model; `model.estimator()` turns it into a mercer estimator. With -v the accuracy in percent or the mean
        squared error of the cross-validation.

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
    first_index = 0 if _option_value(words, "t") == "4" else 1
    cross_validates = _option_value(words, "v") is not None
    if cross_validates:  # the scores are returned as JSON, which -q would suppress
        words = [word for word in words if word != "-q"]
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "rows", Path(folder) / "rows.model"
        X, targets = _rows(x, first_index), np.asarray(y, dtype=np.float64)
        write_libsvm(X, targets, data, first_index=first_index, zeros=first_index == 0)
        if W is not None:
            weights = Path(folder) / "weights"
            weights.write_text("".join(f"{value!r}\n" for value in np.asarray(W, dtype=np.float64).tolist()))
            words += ["-W", str(weights)]
        output = _run(
            ["train", *words, "--json", str(data)] if cross_validates else ["train", *words, str(data), str(model)],
            cross_validates,
        )
        if cross_validates:
            scores = json.loads(output)
            if "accuracy" in scores:
                print(f"Cross Validation Accuracy = {100 * scores['accuracy']:g}%")
                return 100.0 * scores["accuracy"]
            print(f"Cross Validation Mean squared error = {scores['mean_squared_error']:g}")
            print(f"Cross Validation Squared correlation coefficient = {scores['squared_correlation']:g}")
            return scores["mean_squared_error"]
        return parse_libsvm_model(model.read_bytes())


def svm_predict(
    y: Any, x: Any, model: LibsvmModel, options: str = ""
) -> tuple[list[Any], tuple[float, float, float], Any]:
    """Predict as svm-predict does.

    Parameters
    ----------
    y : sequence of numbers
        True labels or targets; an empty sequence where they are not known.
    x : list of dicts or of lists, array or sparse matrix
        Rows, as for `svm_train`.
    model : LibsvmModel
        Model from `svm_train` or `svm_load_model`.
    options : str, default=""
        -b 1: the values are probabilities, in the order of the model's labels; -q: print nothing.

    Returns
    -------
    tuple of a list, three numbers and an array
        The predictions; (accuracy in percent, mean squared error, squared correlation); and the decision values, for
        every pair of classes in LIBSVM's order, or of the model's only function.
    """
    words = shlex.split(options)
    X = model.rows(_rows(x, model.first_index), "x", text=True)
    answers = model.predict(X)
    values = model.decisions(X)
    if _option_value(words, "b") == "1" and model.kind == "classification":
        labels = np.array(model.with_probabilities().label)
        machine = model.estimator(X.shape[1])
        values = machine.predict_proba(X)[:, np.searchsorted(machine.classes_, labels)]
        answers = labels[np.argmax(values, axis=1)]
    truth = np.asarray(y, dtype=np.float64)
    scores = evaluations(truth, answers) if len(truth) else (float("nan"),) * 3
    if "-q" not in words and len(truth):
        right = int((truth == answers).sum())
        if model.kind == "regression":
            print(f"Mean squared error = {scores[1]:g} (regression)")
            print(f"Squared correlation coefficient = {scores[2]:g} (regression)")
        else:
            print(f"Accuracy = {scores[0]:g}% ({right}/{len(truth)}) (classification)")
    return np.asarray(answers).tolist(), scores, values


def evaluations(ty: Any, pv: Any) -> tuple[float, float, float]:
    """Return accuracy in percent, mean squared error and squared correlation.

    Parameters
    ----------
    ty, pv : sequence of numbers
        True values and predicted values.
    """
    truth, answers = np.asarray(ty, dtype=np.float64), np.asarray(pv, dtype=np.float64)
    if truth.shape != answers.shape or not len(truth):
        raise ValueError(
            f"the true values have the shape {truth.shape} and the predictions {answers.shape}; both must have the "
            "same length, at least 1"
        )
    error = float(np.mean((truth - answers) ** 2))
    return 100.0 * float(np.mean(truth == answers)), error, squared_correlation(truth, answers)


def svm_read_problem(data_file_name: str | os.PathLike[str]) -> tuple[Floats, sp.csr_array]:
    """Read (y, x) from a LIBSVM text file; `read_libsvm` returns the same in the order (X, y).

    Parameters
    ----------
    data_file_name : str or path-like
        File to read.
    """
    X, y = read_libsvm(data_file_name)
    return y, X


def svm_load_model(model_file_name: str | os.PathLike[str]) -> LibsvmModel:
    """Read a model from a LIBSVM model file.

    Parameters
    ----------
    model_file_name : str or path-like
        File to read.
    """
    return read_libsvm_model(model_file_name)


def svm_save_model(model_file_name: str | os.PathLike[str], model: LibsvmModel) -> None:
    """Write a model as LIBSVM writes it.

    Parameters
    ----------
    model_file_name : str or path-like
        File to write.
    model : LibsvmModel
        Model from `svm_train` or `svm_load_model`.
    """
    write_libsvm_model(model, model_file_name)


def _option_value(words: list[str], letter: str) -> str | None:
    """Return the value of the option ``-letter``, or None if it is not given; the last one counts."""
    positions = [k for k, word in enumerate(words[:-1]) if word == f"-{letter}"]
    return words[positions[-1] + 1] if positions else None


def _rows(x: Any, first: int) -> Any:
    """Return the rows as a matrix whose first column has the index `first`."""
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
    """Run the command and return what it prints, raising its error; print it too unless `quiet`."""
    errors, output = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(output):
        try:
            has_failed = main(words) != 0
        except SystemExit as usage:
            has_failed = bool(usage.code)
    if has_failed:
        raise ValueError(errors.getvalue().strip() or f"wrong usage: {shlex.join(words)}")
    if not quiet and output.getvalue():
        print(output.getvalue(), end="")
    if errors.getvalue():
        print(errors.getvalue(), end="")
    return output.getvalue()
