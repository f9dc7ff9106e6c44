"""``mercer.save`` and ``mercer.load``: a fitted model as a ``.mercer`` file.

A file holds an estimator of mercer, or what scikit-learn's pipelines, transformers and wrappers make of it: a model of
standardised data is of little use without the numbers it was standardised with.
"""

from __future__ import annotations

import os
from typing import Any

import sklearn
from sklearn.utils.validation import check_is_fitted

import mercer
from mercer.errors import ModelFormatError, ModelVersionWarning, warn_user
from mercer.files.mercer_file.container import read_container, write_container
from mercer.files.mercer_file.model_description import describe_model, estimator_class, machines_in, rebuild_model
from mercer.files.mercer_file.stored_array import Array
from mercer.tables.estimator import Tabular


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator of mercer, or a pipeline of scikit-learn around it, to a ``.mercer`` file.

    The file appears under its name only when it is complete: if saving fails, what was there is intact.

    Parameters
    ----------
    model : estimator
        Fitted. Around mercer's estimators may stand Pipeline, ColumnTransformer, FeatureUnion, scikit-learn's scalers,
        encoders, imputers and vectorizers, PCA, CalibratedClassifierCV, VotingClassifier, TransformedTargetRegressor
        and the like. A kernel that is a Python function cannot be saved this way; use pickle.
    path : str or path-like
        Conventionally ends in ``.mercer``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mercer
    >>> model = mercer.SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.mercer"
    ...     mercer.save(model, path)
    ...     again = mercer.load(path)
    >>> again.predict([[0.2], [2.9]]).tolist()
    [0, 1]
    """
    check_is_fitted(model)
    arrays: dict[str, Array] = {}
    described = describe_model(model, arrays)
    if not machines_in(model):
        raise TypeError(f"{type(model).__name__} holds no estimator of mercer's, and a .mercer file is for those")
    content = {"mercer": mercer.__version__, "scikit-learn": sklearn.__version__, "model": described}
    write_container(path, content, arrays)


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> Any:
    """Load what `save` wrote. The model predicts exactly, bit for bit, what it predicted when it was saved.

    Loading never runs code from the file. A file that is damaged, truncated or from a newer version raises
    ModelFormatError, which says what is wrong and where; a path that is missing or no regular file, OSError. If the
    model holds parts of scikit-learn and another minor version of it wrote them, ModelVersionWarning says so.

    Parameters
    ----------
    path : str or path-like
        The file.
    mmap : bool, default=False
        Leave the arrays in the file and map it into memory, so that many processes share one copy. The checksums are
        still compared now; do not overwrite such a file in place later (`save` never does: it replaces files).

    Examples
    --------
    See `save`.
    """
    content, arrays = read_container(path, mmap)
    try:
        model = rebuild_model(content.get("model"), arrays)
        if not machines_in(model):
            raise ModelFormatError("there is no fitted estimator of mercer in it")
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # The checksums held, so these are headers somebody wrote, or a version whose states differ.
        reason = f"{type(error).__name__}: {error}" if not isinstance(error, ModelFormatError) else str(error)
        raise ModelFormatError(
            f"{os.fspath(path)!r}, written by mercer {content.get('mercer')!r:.40} with scikit-learn "
            f"{content.get('scikit-learn')!r:.40}, read by {mercer.__version__} with {sklearn.__version__}: "
            f"{' '.join(reason.split()):.600}"
        ) from error
    learner = model.estimator_ if type(model) is Tabular else model
    if estimator_class(type(learner).__name__) is None:
        _compare(content.get("scikit-learn"), os.fspath(path))
    return model


def _compare(written: Any, path: str | bytes) -> None:
    """Warn if another minor version of scikit-learn wrote the file."""
    if isinstance(written, str) and written.split(".")[:2] != sklearn.__version__.split(".")[:2]:
        warn_user(
            f"{path!r} was written with scikit-learn {written:.40}, and this is {sklearn.__version__}: its parts of "
            "the model may predict differently; compare a few predictions, then save the model again",
            ModelVersionWarning,
        )
