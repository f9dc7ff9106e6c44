"""File formats of models: how each is recognised, read and written.

A new format is a module in this folder with a class derived from `Model`, and an entry in `FORMATS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mercer.files.export.c.export import export_c
from mercer.files.export.onnx import export_onnx
from mercer.files.export.parts import c_name_from
from mercer.files.liblinear_model import parse_liblinear_model, write_liblinear_model
from mercer.files.libsvm_model import parse_libsvm_model, write_libsvm_model
from mercer.files.mercer_file.container import HEAD, is_container
from mercer.files.mercer_file.mercer_model import MercerFile
from mercer.files.mercer_file.model_file import read_mercer_file, write_mercer_file
from mercer.files.model import Model
from mercer.files.svmlight_model import parse_svmlight_model, write_svmlight_model
from mercer.runtime.errors import ModelFormatError


@dataclass(frozen=True)
class WriteOptions:
    """Options for writing some formats: number and type of the columns of the rows to predict."""

    n_features: int | None = None
    dtype: str = "float64"


@dataclass(frozen=True)
class Format:
    """Format of one program: the bytes by which a file is recognised, and functions that read and write it."""

    begins: bytes = b""  # first bytes of a file
    contains: bytes = b""  # a word in every file
    read: Callable[[bytes, str], Model] | None = None
    suffix: str = ""
    write: Callable[[Model, Path, WriteOptions], object] | None = None


FORMATS: Final = {
    "mercer": Format(
        suffix=".mercer",
        write=lambda model, path, options: write_mercer_file(model.estimator(options.n_features), path),
    ),
    "libsvm": Format(
        contains=b"svm_type",
        read=parse_libsvm_model,
        write=lambda model, path, _: write_libsvm_model(model.as_libsvm(), path),
    ),
    "liblinear": Format(
        begins=b"solver_type",
        read=parse_liblinear_model,
        write=lambda model, path, _: write_liblinear_model(model.as_liblinear(), path),
    ),
    "svmlight": Format(
        begins=b"SVM-light",
        read=parse_svmlight_model,
        write=lambda model, path, _: write_svmlight_model(model.as_libsvm(), path),
    ),
    "onnx": Format(
        suffix=".onnx",
        write=lambda model, path, options: export_onnx(model.estimator(options.n_features), path, dtype=options.dtype),
    ),
    "c": Format(
        suffix=".c",
        write=lambda model, path, options: export_c(
            model.estimator(options.n_features), path, dtype=options.dtype, name=c_name_from(path)
        ),
    ),
}


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read a model from a file of any format that mercer can read."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        content = file.read(HEAD)
        if is_container(content):  # a .mercer file has its own reader, which reads piece by piece
            return MercerFile(read_mercer_file(path), name)
        content += file.read()
    by_start = [form for form in FORMATS.values() if form.begins and content.startswith(form.begins)]
    by_content = [form for form in FORMATS.values() if form.contains and form.contains in content]
    for form in (*by_start, *by_content):
        if form.read is not None:
            return form.read(content, name)
    raise ModelFormatError(
        f"{name} is not a model: it does not begin like a .mercer file or a model of LIBLINEAR or SVMlight, and has no "
        "line 'svm_type' like a model of LIBSVM"
    )
