"""mercer's maps of features as rows like scikit-learn's: what each learns, and what must be true of it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from mercer.errors import ModelFormatError
from mercer.features.feature_map import prepare_again
from mercer.files.scikit.checks import Fitted
from mercer.files.scikit.table import Row, row
from mercer.fitting.pipeline.state import (
    Array,
    BoundKernel,
    Count,
    Kind,
    Number,
    Places,
    Unsaved,
    check_vectors,
    expect,
    is_count,
)


def _kernel_of_vectors(model: Fitted) -> None:
    expect(
        model.kernel_.accepts == "vectors" and model.kernel_.bound, "kernel_ must be a kernel of vectors, with numbers"
    )


def _nystrom(model: Fitted) -> None:
    _kernel_of_vectors(model)
    check_vectors("landmarks_", model.landmarks_, len(model.indices_), model.n_features_in_)


def _random_fourier(model: Fitted) -> None:
    _kernel_of_vectors(model)
    expect(is_count(model.n_components), "n_components must be a count")
    n = len(model.frequencies_)
    expect(
        (int(model.n_components) + 1) // 2 == n > 0, f"{model.n_components!r:.40} components have no {n} frequencies"
    )
    odd = int(model.n_components) % 2 == 1
    expect(odd == (vars(model)["_phase"] is not None), "an odd number of components has a phase, and no other has")


def _prepared(X: Any) -> Any:
    """A check that makes again what follows from the kernel and the number of features; X makes samples of no rows."""

    def check(model: Fitted) -> None:
        _kernel_of_vectors(model)
        learnt = dict(vars(model))
        try:
            prepare_again(model, X((0, model.n_features_in_)))
        except (ValueError, OverflowError) as error:
            raise ModelFormatError(str(error)) from None
        for name, value in learnt.items():
            expect(not is_count(value) or getattr(model, name) == value, f"{name} must be {getattr(model, name)!r:.40}")

    return check


def _with_scale(model: Fitted) -> None:
    from mercer.features.gaussian import gaussian_of

    model._scale = gaussian_of(model.kernel_)[0]


def _row(**fitted: Kind) -> Row:
    return row("mercer.features", kernel_=BoundKernel(), **fitted)


FEATURE_MAPS: Final[dict[str, Row]] = {
    "Nystrom": _row(
        indices_=Places(),
        landmarks_=Kind(),
        eigenvalues_=Array(None),
        _map=Array("indices_", "eigenvalues_"),
    ).but(whole=_nystrom),
    "RandomFourier": _row(
        frequencies_=Array(None, "n_features_in_"), _phase=Number(or_none=True), _scale=Unsaved()
    ).but(whole=_random_fourier, finish=_with_scale),
    "GaussianSeries": _row(n_terms_=Count(), _scale=Unsaved(), _gamma=Unsaved()).but(whole=_prepared(np.empty)),
    "Monomials": _row(_constants=Unsaved(), _size=Unsaved(), _degree=Unsaved(), _ordered=Unsaved()).but(
        whole=_prepared(sp.csr_array)
    ),
}
