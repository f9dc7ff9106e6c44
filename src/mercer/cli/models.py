"""Models of every kind that the commands read, told apart by their first bytes."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from mercer.errors import ModelFormatError
from mercer.files import load
from mercer.files.container import MAGIC
from mercer.files.liblinear_model import LiblinearModel, parse_liblinear_model
from mercer.files.libsvm_model import LibsvmModel, parse_libsvm_model
from mercer.files.svmlight_model import parse_svmlight_model


def read_model(path: str) -> Any:
    """An estimator or Pipeline (.mercer), a LibsvmModel (LIBSVM, SVMlight) or a LiblinearModel."""
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) == MAGIC:
            return load(path)
        file.seek(0)
        content = file.read()
    if content.startswith(b"SVM-light"):
        return parse_svmlight_model(content, path)
    if content.startswith(b"solver_type"):
        return parse_liblinear_model(content, path)
    if b"svm_type" not in content:
        raise ModelFormatError(
            f"{path} is no model: it does not begin as a .mercer file or a model of LIBLINEAR or SVMlight does, and "
            "it has no line 'svm_type' as LIBSVM's models have"
        )
    return parse_libsvm_model(content, path)


def machine_of(model: Any) -> Any:
    """The machine at the end of a Pipeline, or the estimator itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def names_of(model: Any) -> Any:
    """The columns that a model was trained on, where it knows them by name."""
    if isinstance(model, (LibsvmModel, LiblinearModel)):
        return None
    return getattr(model[0] if isinstance(model, Pipeline) else model, "feature_names_in_", None)
