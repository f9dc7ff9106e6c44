"""``mercer.save`` writes what the ending of a path says, and ``mercer.load`` reads what the content of a file is."""

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
from mercer.files.mercer_file.model_file import read_mercer_file, too_large, write_mercer_file
from mercer.runtime.errors import ModelFormatError
from mercer.runtime.parameters import integer, one_of

# Bytes at the start of a model of another program in which its first key is looked for.
_HEADER_BYTES: Final = 1 << 16


def save(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Save a fitted model; the ending of the path says as what.

    ========== =====================================================================================================
    ending     file
    ========== =====================================================================================================
    .onnx      an ONNX graph with the input ``X`` and the outputs ``decision`` and ``label``; needs the extra onnx
    .c         a C99 file with the functions ``NAME_decision(x, f)`` and ``NAME_predict(x)``, no heap, only <math.h>
    .model     a text of LIBLINEAR for LinearSVC and LinearSVR, of LIBSVM for SVC, NuSVC, SVR, NuSVR and OneClassSVM
    .mercer    everything that `load` needs to give back the same bits; also any other ending, or none
    ========== =====================================================================================================

    Endings of formats that mercer does not write, such as .pkl, are refused. The file appears under its name only when
    it is complete: if saving fails, what was there is intact.

    Parameters
    ----------
    model : estimator
        Fitted. In a .mercer file, Pipeline, ColumnTransformer, FeatureUnion, scikit-learn's scalers, encoders, imputers
        and vectorizers, PCA, CalibratedClassifierCV, VotingClassifier, TransformedTargetRegressor and the like may
        stand around mercer's estimators. A kernel that is a Python function cannot be saved this way; use pickle.
        ONNX and C take a machine behind scalers, the texts of LIBSVM and LIBLINEAR a machine alone.
    path : str or path-like
        The file to write.
    **options : keywords
        Options of the format:

        - .onnx: ``dtype`` of the rows to come, "float64" (default) or "float32"; the graph computes in float64.
        - .c: ``dtype``, "float64" (default) or "float32", of rows and arithmetic; ``name``, which the names in the file
          begin with, by default the name of the file; ``X``, rows like those to come, at which the arithmetic is
          tried instead of at the machine's own vectors.
        - .model: ``format``, "libsvm", "liblinear" or "svmlight"; ``label_order`` of LIBSVM's text, the order of the
          classes in it.

    Raises
    ------
    TypeError
        For a model that such a file cannot hold; the message names it, and says what can. For an option that the
        format does not have.
    ValueError
        For an ending of another program. For a C file whose float32 arithmetic is too coarse for the model: outputs
        would be off by more than a hundredth of the largest.

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
    model = model if isinstance(model, BaseEstimator) else getattr(model, "model", model)  # of `easy` and `ask`
    suffix = Path(os.fspath(path)).suffix.lower()
    if suffix in _NOT_WRITTEN:
        raise ValueError(
            f"{os.fspath(path)!r} ends in {suffix}, {_NOT_WRITTEN[suffix]}; mercer.save writes {_ENDINGS}, and a "
            ".mercer file under any ending that no other program has"
        )
    writer = _WRITERS.get(suffix, _Writer(write_mercer_file))
    unknown = [name for name in options if name not in writer.options]
    if unknown:
        known = f"its options are {', '.join(writer.options)}" if writer.options else "it has no options"
        raise TypeError(f"a file {os.fspath(path)!r} has no option {', '.join(map(repr, unknown))}; {known}")
    check_is_fitted(model)
    writer.write(model, path, **options)


def load(
    path: str | os.PathLike[str], *, mmap: bool = False, classes: Iterable[type] = (), n_features: int | None = None
) -> Any:
    """Load a model, whatever the file is called: a .mercer file, or a model of LIBSVM, LIBLINEAR or SVMlight.

    A model from a .mercer file predicts exactly, bit for bit, what it predicted when it was saved. One of another
    program becomes the estimator of mercer's that computes the same function; it has no certificate, and parameters
    that its file does not hold, such as C, are defaults.

    Loading never runs code from the file. A file that is damaged, truncated or from a newer version raises
    ModelFormatError, which says what is wrong and where; a path that is missing or no regular file, OSError. If the
    model holds parts of scikit-learn and another minor version of it wrote them, ModelVersionWarning says so.

    Parameters
    ----------
    path : str or path-like
        The file.
    mmap : bool, default=False
        Of a .mercer file: leave the arrays in the file and map it into memory, so that many processes share one copy.
        The checksums are still compared now; do not overwrite such a file in place later (`save` never does: it
        replaces files).
    classes : classes of estimators, default=()
        Of a .mercer file: estimators of your own that it may hold; they declare what their fit leaves in `_FITTED`.
    n_features : int, optional
        Of the other programs: columns of the rows to come, where they have more than the file uses; of a precomputed
        kernel, the number of training rows.

    Raises
    ------
    ModelFormatError
        For a file that is no model, or no whole one, and for a model of another program that mercer has no machine for,
        such as LIBLINEAR's logistic regression.

    Examples
    --------
    See `save`.
    """
    if n_features is not None:
        integer("n_features", n_features, 1, "the number of columns of the rows to come")
    with open_regular(path) as file:
        content = file.read(HEAD)
        if not is_container(content):
            content += file.read(_HEADER_BYTES - len(content))
            parse = _parser_of(content)
            if parse is not None:
                if mmap or classes:
                    raise ValueError(
                        f"mmap and classes are for .mercer files, and {os.fspath(path)!r} is a model of another program"
                    )
                return _estimator(parse, content + file.read(), path, n_features)
    if n_features is not None:
        raise ValueError(
            f"n_features={n_features!r} is for models of LIBSVM, LIBLINEAR and SVMlight; a .mercer file tells its own"
        )
    return read_mercer_file(path, mmap=mmap, classes=classes)


def _estimator(parse: Callable[[bytes, Any], Any], content: bytes, path: Any, n_features: int | None) -> Any:
    """The estimator of a model of another program; ModelFormatError where mercer has none."""
    try:
        return parse(content, os.fspath(path)).estimator(n_features)
    except MemoryError:
        raise ModelFormatError(too_large(path)) from None
    except ModelFormatError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ModelFormatError(f"{os.fspath(path)!r}: {error}") from error


def _parser_of(head: bytes) -> Callable[[bytes, Any], Any] | None:
    """The reader of the program whose model begins like this, or None."""
    from mercer.files.models import FORMATS

    lines = head.split(b"\n")
    for form in FORMATS.values():
        begins = form.begins and head.startswith(form.begins)
        has_key = form.contains and any(line.split()[:1] == [form.contains] for line in lines)
        if form.read is not None and (begins or has_key):
            return form.read
    return None


@dataclass(frozen=True)
class _Writer:
    """Writer of one format, and the names of its options."""

    write: Callable[..., object]
    options: tuple[str, ...] = ()


def _write_onnx(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    from mercer.files.export.onnx import export_onnx

    export_onnx(model, path, **options)


def _write_c(
    model: Any, path: str | os.PathLike[str], *, dtype: str = "float64", name: str | None = None, X: Any = None
) -> None:
    from mercer.files.export.c.export import export_c
    from mercer.files.export.parts import name_from

    export_c(model, path, dtype=dtype, name=name_from(Path(path)) if name is None else name, X=X)


def _write_text(
    model: Any, path: str | os.PathLike[str], *, format: str | None = None, label_order: Any = None
) -> None:
    """Write the text of a program: by default LIBLINEAR's for its machines, LIBSVM's for others."""
    from mercer.files.liblinear_estimator import MACHINES, liblinear_from_estimator
    from mercer.files.liblinear_model import write_liblinear_model
    from mercer.files.libsvm_estimator import libsvm_from_estimator
    from mercer.files.libsvm_model import write_libsvm_model
    from mercer.files.svmlight_model import write_svmlight_model

    if format is None:
        format = "liblinear" if type(model).__name__ in MACHINES else "libsvm"
    one_of("format", format, ("libsvm", "liblinear", "svmlight"))
    if label_order is not None and format != "libsvm":
        raise ValueError(f"label_order is an option of LIBSVM's text, and format={format!r}")
    if format == "liblinear":
        write_liblinear_model(liblinear_from_estimator(model), path)
    elif format == "svmlight":
        write_svmlight_model(libsvm_from_estimator(model), path)
    else:
        write_libsvm_model(libsvm_from_estimator(model, label_order=label_order), path)


_WRITERS: Final = {
    ".onnx": _Writer(_write_onnx, ("dtype",)),
    ".c": _Writer(_write_c, ("dtype", "name", "X")),
    ".model": _Writer(_write_text, ("format", "label_order")),
}
_ENDINGS: Final = ".mercer, .onnx (ONNX), .c (C99) and .model (LIBSVM's or LIBLINEAR's text)"
_NOT_WRITTEN: Final = dict.fromkeys(OTHER_MODELS, "as files of other programs do") | {
    ".h": "as headers of C do, and a C file declares its functions in its first lines",
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "as pickles do, which pickle.dump and joblib.dump write"),
}
