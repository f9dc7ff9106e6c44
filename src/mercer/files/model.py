"""Interface of a model read from a file, whichever program wrote it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from mercer.samples.arrays import Floats
from mercer.samples.labels import class_pairs

if TYPE_CHECKING:
    from mercer.files.liblinear_model import LiblinearModel
    from mercer.files.libsvm_model import LibsvmModel
    from mercer.places.expansion import Expansion
    from mercer.tables.estimator import Tabular


Facts = dict[str, Any]  # description of a model by name, as plain values
Estimator = Any  # a fitted estimator of mercer or scikit-learn


def check_model(model: Any, kind: type[Model], maker: str) -> None:
    """Raise TypeError if `model` is not of this kind, for instance an estimator that must be converted first."""
    if not isinstance(model, kind):
        raise TypeError(
            f"this file is written from a {kind.__name__}, but the model is a {type(model).__name__}; convert it with "
            f"{maker}(model)"
        )


class Model(ABC):
    """Model of any file format; attributes that most formats lack default to None."""

    native: str = "libsvm"  # default format for other programs
    first_index: int = 1  # first index of LIBSVM text; 0 if a row begins with its number in a kernel matrix
    feature_names: Any = None  # names of the training columns, if known
    table: Tabular | None = None  # the table model, if it was trained on a table
    n_training_rows: int | None = None  # number of training rows, if mercer trained it
    has_probabilities: bool = False  # True if trained with LIBSVM's -b 1

    @property
    @abstractmethod
    def kind(self) -> str:
        """Kind of prediction: "classification", "regression", "one-class", "clustering", or "features" without any."""

    @property
    def expansion(self) -> Expansion | None:
        """Kernel expansion of f; None for a model that stores w."""
        return None

    @abstractmethod
    def facts(self) -> Facts:
        """Return the content of the file as plain values."""

    def rows(self, X: Any, source: str, text: bool) -> Any:
        """Return the rows of a data file as the model needs them; `text` means that the file is LIBSVM text."""
        return X

    @abstractmethod
    def decisions(self, X: Any) -> Floats:
        """Return the decision values, one column per output."""

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Return labels, numbers, or ±1."""

    @abstractmethod
    def with_probabilities(self) -> LibsvmModel:
        """Return the model with LIBSVM's probability parameters; raise ValueError if it has none."""

    @abstractmethod
    def estimator(self, n_features: int | None = None) -> Estimator:
        """Return the estimator or Pipeline; `n_features` is the number of columns if the file does not store it."""

    @abstractmethod
    def as_libsvm(self) -> LibsvmModel:
        """Return the content of the LIBSVM file for this model; raise TypeError if LIBSVM has no such model."""

    @abstractmethod
    def as_liblinear(self) -> LiblinearModel:
        """Return the content of the LIBLINEAR file for this model; raise TypeError if LIBLINEAR has no such model."""


def margin_facts(norms: Floats, names: list[str]) -> Facts:
    """Return the margin 1/‖w‖ of each output; None if an indefinite kernel makes ‖w‖² negative."""
    widths = [1 / norm if norm > 0 else None for norm in norms.tolist()]
    return {"margin": widths[0]} if len(widths) == 1 else {"margins": dict(zip(names, widths, strict=True))}


def pair_names(labels: Any) -> list[str]:
    """Return the names of the pairs of classes, in LIBSVM's order."""
    return [f"{labels[i]} against {labels[j]}" for i, j in class_pairs(len(labels))]
