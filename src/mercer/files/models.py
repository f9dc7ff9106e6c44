"""A trained model, whatever program wrote its file: what it is, what it predicts, and the estimator it becomes.

A new format is one file of this room, with a class that keeps to `Model`, and one entry in `FORMATS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from mercer.arrays import Floats
from mercer.errors import ModelFormatError
from mercer.expansion import Expansion
from mercer.files.c_export import export_c
from mercer.files.c_parts import name_from
from mercer.files.container import HEAD, is_container
from mercer.files.liblinear_estimator import LiblinearFile
from mercer.files.liblinear_model import LiblinearModel, parse_liblinear_model, write_liblinear_model
from mercer.files.libsvm_estimator import LibsvmFile
from mercer.files.libsvm_model import LibsvmModel, parse_libsvm_model, write_libsvm_model
from mercer.files.mercer_model import MercerFile
from mercer.files.model_file import load, save
from mercer.files.onnx_export import export_onnx
from mercer.files.svmlight_model import parse_svmlight_model
from mercer.tables.estimator import Tabular


class Model(Protocol):
    """What can be asked of the model in a file."""

    @property
    def kind(self) -> str:
        """What it predicts: "classification", "regression", "one-class", "clustering", or nothing: "features"."""

    @property
    def native(self) -> str:
        """The format that other programs read it in."""

    @property
    def first_index(self) -> int:
        """Of LIBSVM text: 1, or 0 where a row begins with its number in a kernel matrix."""

    @property
    def feature_names(self) -> Any:
        """The columns it was trained on, where it knows them by name."""

    @property
    def table(self) -> Tabular | None:
        """What reads a table as it comes, if that is what was trained."""

    @property
    def expansion(self) -> Expansion | None:
        """f as a sum of kernels, unless it keeps w."""

    @property
    def n_training_rows(self) -> int | None:
        """How many rows mercer trained it on, if it did."""

    @property
    def has_probabilities(self) -> bool:
        """Whether LIBSVM's -b 1 was asked for in training."""

    def facts(self) -> dict[str, Any]:
        """What the file says, in words and plain numbers."""

    def rows(self, X: Any, source: str, text: bool) -> Any:
        """The rows of a data file as the model takes them; `text` says that it was LIBSVM's."""

    def decisions(self, X: Any) -> Floats:
        """The decision values, one column per output."""

    def predict(self, X: Any) -> Any:
        """Labels, values, or ±1."""

    def with_probabilities(self) -> LibsvmModel:
        """Classes, pairs and the numbers that -b 1 added, as LIBSVM has them; ValueError where there are none."""

    def estimator(self, n_features: int | None = None) -> Any:
        """The estimator or Pipeline; `n_features` columns will come, where the file does not say."""

    def as_libsvm(self) -> LibsvmModel:
        """What LIBSVM's file holds of it; TypeError where it cannot."""

    def as_liblinear(self) -> LiblinearModel:
        """What LIBLINEAR's file holds of it; TypeError where it cannot."""


@dataclass(frozen=True)
class Writing:
    """What only some formats need to know: how many columns will come, and as which type."""

    n_features: int | None = None
    dtype: str = "float64"


@dataclass(frozen=True)
class Format:
    """How files of one program are recognised by their first bytes, or by what they contain; read; and written."""

    begins: bytes = b""
    contains: bytes = b""
    read: Callable[[bytes, str], Model] | None = None
    suffix: str = ""
    write: Callable[[Model, Path, Writing], object] | None = None


FORMATS: Final = {
    "mercer": Format(
        suffix=".mercer",
        write=lambda model, path, how: save(model.estimator(how.n_features), path),
    ),
    "libsvm": Format(
        contains=b"svm_type",
        read=lambda content, path: LibsvmFile(parse_libsvm_model(content, path), path),
        write=lambda model, path, _: write_libsvm_model(model.as_libsvm(), path),
    ),
    "liblinear": Format(
        begins=b"solver_type",
        read=lambda content, path: LiblinearFile(parse_liblinear_model(content, path), path),
        write=lambda model, path, _: write_liblinear_model(model.as_liblinear(), path),
    ),
    "svmlight": Format(
        begins=b"SVM-light",
        read=lambda content, path: LibsvmFile(parse_svmlight_model(content, path), path),
    ),
    "onnx": Format(
        suffix=".onnx",
        write=lambda model, path, how: export_onnx(model.estimator(how.n_features), path, dtype=how.dtype),
    ),
    "c": Format(
        suffix=".c",
        write=lambda model, path, how: export_c(
            model.estimator(how.n_features), path, dtype=how.dtype, name=name_from(path)
        ),
    ),
}


def read_model(path: str | os.PathLike[str]) -> Model:
    """The model in a file of any format that can be read."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        content = file.read(HEAD)
        if is_container(content):  # whose own reader reads it piece by piece
            return MercerFile(load(path), name)
        content += file.read()
    by_start = [one for one in FORMATS.values() if one.begins and content.startswith(one.begins)]
    by_content = [one for one in FORMATS.values() if one.contains and one.contains in content]
    for found in (*by_start, *by_content):
        if found.read is not None:
            return found.read(content, name)
    raise ModelFormatError(
        f"{name} is no model: it does not begin as a .mercer file or a model of LIBLINEAR or SVMlight does, and "
        "it has no line 'svm_type' as LIBSVM's models have"
    )
