"""Questions to the model in a file, whatever program wrote it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from mercer.samples.arrays import Floats
from mercer.samples.labels import every_pair

if TYPE_CHECKING:
    from mercer.files.liblinear_model import LiblinearModel
    from mercer.files.libsvm_model import LibsvmModel
    from mercer.places.expansion import Expansion
    from mercer.tables.estimator import Tabular


Facts = dict[str, Any]  # what is told of a model, by name
Estimator = Any  # of mercer or scikit-learn, fitted


def check_model(model: Any, kind: type[Model], maker: str) -> None:
    """Refuse what is no model of this kind, such as the estimator that one is made from."""
    if not isinstance(model, kind):
        raise TypeError(
            f"a file is written from a {kind.__name__}, and this is a {type(model).__name__}; make one with "
            f"{maker}(model)"
        )


class Model(ABC):
    """A model; what most formats do not have is None here."""

    native: str = "libsvm"  # the format that other programs read it in
    first_index: int = 1  # of LIBSVM text; 0 where a row begins with its number in a kernel matrix
    feature_names: Any = None  # the columns it was trained on, where it knows them by name
    table: Tabular | None = None  # what reads a table as it comes, if that is what was trained
    n_training_rows: int | None = None  # how many rows mercer trained it on, if it did
    has_probabilities: bool = False  # whether LIBSVM's -b 1 was asked for in training

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind of prediction: "classification", "regression", "one-class", "clustering", or nothing: "features"."""

    @property
    def expansion(self) -> Expansion | None:
        """f as a sum of kernels, unless it keeps w."""
        return None

    @abstractmethod
    def facts(self) -> Facts:
        """Content of the file, in words and plain numbers."""

    def rows(self, X: Any, source: str, text: bool) -> Any:
        """The rows of a data file as the model takes them; `text` says that it was LIBSVM's."""
        return X

    @abstractmethod
    def decisions(self, X: Any) -> Floats:
        """The decision values, one column per output."""

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Labels, values, or ±1."""

    @abstractmethod
    def with_probabilities(self) -> LibsvmModel:
        """Classes, pairs and the numbers that -b 1 added, as LIBSVM has them; ValueError where there are none."""

    @abstractmethod
    def estimator(self, n_features: int | None = None) -> Estimator:
        """The estimator or Pipeline; `n_features` columns will come, where the file does not say."""

    @abstractmethod
    def as_libsvm(self) -> LibsvmModel:
        """Content of LIBSVM's file of it; TypeError where there is none."""

    @abstractmethod
    def as_liblinear(self) -> LiblinearModel:
        """Content of LIBLINEAR's file of it; TypeError where there is none."""


def margins_told(norms: Floats, names: list[str]) -> Facts:
    """1/‖w‖ of each output; an indefinite kernel has no feature space, and there may be no margin to speak of."""
    widths = [1 / norm if norm > 0 else None for norm in norms.tolist()]
    return {"margin": widths[0]} if len(widths) == 1 else {"margins": dict(zip(names, widths, strict=True))}


def pair_names(labels: Any) -> list[str]:
    """The pairs of classes, in LIBSVM's order."""
    return [f"{labels[i]} against {labels[j]}" for i, j in every_pair(len(labels))]
