"""``mercer.save`` chooses the format by the extension of the path, ``mercer.load`` by the content of the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mercer.files.endings import OTHER_MODELS
from mercer.files.mercer_file.container import HEAD, is_container, open_regular
from mercer.files.mercer_file.model_file import read_mercer_file, too_large_message, write_mercer_file
from mercer.runtime.errors import ModelFormatError
from mercer.runtime.parameters import integer, one_of

# Number of bytes at the start of a file in which the first key of another program's model is looked for.
_HEADER_BYTES: Final = 1 << 16


def save(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Save a fitted model in the format that the extension of the path names.

    ========== =====================================================================================================
    extension  file
    ========== =====================================================================================================
    .onnx      an ONNX graph with the input ``X`` and the outputs ``decision`` and ``label``; needs the extra onnx
    .c         a C99 file with the functions ``NAME_decision(x, f)`` and ``NAME_predict(x)``, no heap, only <math.h>
    .model     LIBLINEAR's text format for LinearSVC and LinearSVR, LIBSVM's for SVC, NuSVC, SVR, NuSVR, OneClassSVM
    .mercer    everything that `load` needs to restore the model bit for bit; also any other extension, or none
    ========== =====================================================================================================

    Extensions of formats that mercer does not write, such as .pkl, are refused. The file appears under its name only
    when it is complete: if saving fails, an existing file stays intact.

    Parameters
    ----------
    model : estimator
        Fitted model. A .mercer file can hold mercer's estimators inside Pipeline, ColumnTransformer, FeatureUnion,
        scikit-learn's scalers, encoders, imputers and vectorizers, PCA, CalibratedClassifierCV, VotingClassifier,
        TransformedTargetRegressor and the like. A kernel that is a Python function cannot be saved this way; use
        pickle. ONNX and C files can hold a machine, alone or in a Pipeline after scalers; LIBSVM and LIBLINEAR files
        only a machine alone.
    path : str or path-like
        File to write.
    **options : keywords
        Options of the format:

        - .onnx: ``dtype`` of the rows to predict, "float64" (default) or "float32"; the graph computes in float64.
        - .c: ``dtype`` of rows and arithmetic, "float64" (default) or "float32"; ``name``, the prefix of all names in
          the file, by default the name of the file; ``X``, typical rows at which the accuracy of the arithmetic is
          tested, by default the machine's own vectors.
        - .model: ``format``, "libsvm", "liblinear" or "svmlight"; ``label_order``, the order of the classes in
          LIBSVM's format.

    Raises
    ------
    TypeError
        If the format cannot store the model; the message names a format that can. If the format has no such option.
    ValueError
        If the extension belongs to another program. If float32 arithmetic is too coarse for a C file of this model:
        outputs would be off by more than a hundredth of the largest.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mercer
    >>> model = mercer.SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mercer.save(model, Path(folder) / "model.mercer")
    ...     mercer.save(model, Path(folder) / "model.model")
    ...     first_line = (Path(folder) / "model.model").read_text().splitlines()[0]
    ...     again = [mercer.load(Path(folder) / name) for name in ("model.mercer", "model.model")]
    >>> [one.predict([[0.2], [2.9]]).tolist() for one in again]
    [[0, 1], [0, 1]]
    >>> first_line
    'svm_type c_svc'
    """
    if not isinstance(model, BaseEstimator):
        model = getattr(model, "model", model)  # the results of `easy` and `unwrap` hold the estimator
    suffix = Path(os.fspath(path)).suffix.lower()
    if suffix in _NOT_WRITTEN:
        raise ValueError(
            f"{os.fspath(path)!r} ends in {suffix}, {_NOT_WRITTEN[suffix]}; mercer.save writes {_ENDINGS}; under an "
            "extension that no other program uses it writes a .mercer file"
        )
    writer = _WRITERS.get(suffix, _FormatWriter(write_mercer_file))
    unknown = [name for name in options if name not in writer.options]
    if unknown:
        options_text = f"its options are {', '.join(writer.options)}" if writer.options else "it has no options"
        raise TypeError(
            f"the format of {os.fspath(path)!r} has no option {', '.join(map(repr, unknown))}; {options_text}"
        )
    check_is_fitted(model)
    writer.write(model, path, **options)


def load(
    path: str | os.PathLike[str], *, mmap: bool = False, classes: Iterable[type] = (), n_features: int | None = None
) -> Any:
    """Load a model from a .mercer file or a model file of LIBSVM, LIBLINEAR or SVMlight, whatever its name.

    A model from a .mercer file predicts bit for bit what it predicted when it was saved. A model of another program
    becomes the mercer estimator that computes the same function; it has no certificate, and parameters that the file
    does not store, such as C, have their default values.

    Loading never runs code from the file. A file that is damaged, truncated or from a newer version raises
    ModelFormatError, which says what is wrong and where; a missing path, or one that is not a regular file, raises
    OSError. ModelVersionWarning is issued if the model contains parts of scikit-learn that another minor version wrote.

    Parameters
    ----------
    path : str or path-like
        File to read.
    mmap : bool, default=False
        For a .mercer file: map the arrays into memory instead of reading them, so that many processes share one copy.
        The checksums are still compared on loading; do not overwrite such a file in place later (`save` never does: it
        replaces files).
    classes : classes of estimators, default=()
        For a .mercer file: your own estimator classes that it may contain; they declare their fitted attributes in
        `_FITTED`.
    n_features : int, optional
        For files of other programs: number of columns of the rows to predict, if the file uses fewer; for a
        precomputed kernel, the number of training rows.

    Raises
    ------
    ModelFormatError
        If the file is not a complete model, or if mercer has no machine for another program's model, such as
        LIBLINEAR's logistic regression.

    Examples
    --------
    See `save`.
    """
    if n_features is not None:
        integer("n_features", n_features, 1, "the number of columns of the rows to predict")
    with open_regular(path) as file:
        content = file.read(HEAD)
        if not is_container(content):
            content += file.read(_HEADER_BYTES - len(content))
            parse = _parser_of(content)
            if parse is not None:
                if mmap or classes:
                    raise ValueError(
                        f"mmap and classes are for .mercer files, but {os.fspath(path)!r} is a model of another program"
                    )
                return _estimator(parse, content + file.read(), path, n_features)
    if n_features is not None:
        raise ValueError(
            f"n_features={n_features!r} is for models of LIBSVM, LIBLINEAR and SVMlight; a .mercer file stores it"
        )
    return read_mercer_file(path, mmap=mmap, classes=classes)


def _estimator(parse: Callable[[bytes, Any], Any], content: bytes, path: Any, n_features: int | None) -> Any:
    """Return the estimator for another program's model; raise ModelFormatError if mercer has none."""
    try:
        machine = parse(content, os.fspath(path)).estimator(n_features)
    except MemoryError:
        raise ModelFormatError(too_large_message(path)) from None
    except ModelFormatError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ModelFormatError(f"{os.fspath(path)!r}: {error}") from error
    if n_features is not None and machine.n_features_in_ > n_features:
        raise ValueError(
            f"n_features={n_features}, but the model in {os.fspath(path)!r} has {machine.n_features_in_} columns; pass "
            "the number of columns of the rows to predict, or leave it out"
        )
    return machine


def _parser_of(head: bytes) -> Callable[[bytes, Any], Any] | None:
    """Return the parser of the program whose model begins like this, or None."""
    from mercer.files.models import FORMATS

    lines = head.split(b"\n")
    for form in FORMATS.values():
        has_beginning = form.begins and head.startswith(form.begins)
        has_key = form.contains and any(line.split()[:1] == [form.contains] for line in lines)
        if form.read is not None and (has_beginning or has_key):
            return form.read
    return None


@dataclass(frozen=True)
class _FormatWriter:
    """Writer of one format, and the names of its options."""

    write: Callable[..., object]
    options: tuple[str, ...] = ()


def _write_onnx(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write an ONNX file."""
    from mercer.files.export.onnx import export_onnx

    export_onnx(model, path, **options)


def _write_c(
    model: Any, path: str | os.PathLike[str], *, dtype: str = "float64", name: str | None = None, X: Any = None
) -> None:
    """Write a C file, whose names begin with the name of the file unless `name` is given."""
    from mercer.files.export.c.export import export_c
    from mercer.files.export.parts import c_name_from

    export_c(model, path, dtype=dtype, name=c_name_from(Path(path)) if name is None else name, X=X)


def _write_text(
    model: Any, path: str | os.PathLike[str], *, format: str | None = None, label_order: Any = None
) -> None:
    """Write a text format: by default LIBLINEAR's for its machines, LIBSVM's for others."""
    from mercer.files.liblinear_estimator import MACHINES, liblinear_from_estimator
    from mercer.files.liblinear_model import write_liblinear_model
    from mercer.files.libsvm_estimator import libsvm_from_estimator
    from mercer.files.libsvm_model import write_libsvm_model
    from mercer.files.svmlight_model import write_svmlight_model

    if format is None:
        format = "liblinear" if type(model).__name__ in MACHINES else "libsvm"
    one_of("format", format, ("libsvm", "liblinear", "svmlight"))
    if label_order is not None and format != "libsvm":
        raise ValueError(f"label_order is an option of LIBSVM's format, but format={format!r}")
    if format == "liblinear":
        write_liblinear_model(liblinear_from_estimator(model), path)
    elif format == "svmlight":
        write_svmlight_model(libsvm_from_estimator(model), path)
    else:
        write_libsvm_model(libsvm_from_estimator(model, label_order=label_order), path)


_WRITERS: Final = {
    ".onnx": _FormatWriter(_write_onnx, ("dtype",)),
    ".c": _FormatWriter(_write_c, ("dtype", "name", "X")),
    ".model": _FormatWriter(_write_text, ("format", "label_order")),
}
_ENDINGS: Final = ".mercer, .onnx (ONNX), .c (C99) and .model (LIBSVM or LIBLINEAR)"
_NOT_WRITTEN: Final = dict.fromkeys(OTHER_MODELS, "like files of other programs") | {
    ".h": "like C headers; write a .c file, whose first lines declare its functions",
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "like pickles, which pickle.dump and joblib.dump write"),
}
