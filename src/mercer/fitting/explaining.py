"""What every machine can say about its own predictions; the answers come from the room above, `mercer.explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.on_demand import attribute_of

if TYPE_CHECKING:
    from mercer.arrays import Floats
    from mercer.explain import Explanation, PartialDependence, Reasons


class Explained:
    """A machine that explains what it predicts."""

    def explain(
        self, X: Any, background: Any = None, *, background_weight: Any = None, verbose: bool = False
    ) -> Explanation:
        """Exact Shapley values: how much each feature adds to f(x), compared with background rows.

        They are computed without sampling, for kernels that are products over the features, sums of such products, and
        polynomials of ⟨x, z⟩. The time grows with rows · background rows · support vectors · (features that differ)²/2.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples to explain. The result is dense, and so is the work, in pieces.
        background : array or CSR matrix of shape (n_background, n_features)
            What they are compared with: a feature that is "absent" takes the value it has in these rows, in turn. There
            is no default. Often it is a hundred training samples, or those of one class.
        background_weight : array of shape (n_background,), optional
            How much each background row counts; they are divided by their sum.
        verbose : bool, default=False
            Print how far the work is, a line a second at most.

        Returns
        -------
        Explanation
        """
        explain = attribute_of("mercer.explain", "explain")
        found: Explanation = explain(self, X, background, background_weight=background_weight, verbose=verbose)
        return found

    def gradient_importance(self, X: Any, sample_weight: Any = None) -> Floats:
        """The mean of |∂f/∂x_j| over samples, for each feature: how much f reacts to small changes of it.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Where the gradient of f is taken.
        sample_weight : array of shape (n_samples,), optional
            How much each sample counts.

        Returns
        -------
        array of shape (n_features,), or (n_features, n_outputs) for several outputs
        """
        importance: Floats = attribute_of("mercer.explain", "gradient_importance")(self, X, sample_weight)
        return importance

    def partial_dependence(
        self,
        X: Any,
        features: Any,
        *,
        grid: Any = None,
        grid_resolution: int = 50,
        sample_weight: Any = None,
        individual: bool = False,
    ) -> PartialDependence:
        """The mean of f over samples in which one or two features are set to the values of a grid.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples whose other features stay as they are.
        features : int or str, or a pair of them
            A column by its number, or by its name where the machine was trained on names.
        grid : array, or a pair of arrays for two features, optional
            The values. By default the distinct values of the column, or `grid_resolution` of them at equal steps
            between its 5 % and 95 % quantiles.
        grid_resolution : int, default=50
        sample_weight : array of shape (n_samples,), optional
            How much each sample counts in the mean.
        individual : bool, default=False
            Keep the curve of each sample too (ICE).

        Returns
        -------
        PartialDependence
        """
        found: PartialDependence = attribute_of("mercer.explain", "partial_dependence")(
            self,
            X,
            features,
            grid=grid,
            grid_resolution=grid_resolution,
            sample_weight=sample_weight,
            individual=individual,
        )
        return found

    def reasons(self, X: Any, n: int = 5, *, output: int = 0) -> list[Reasons]:
        """The support vectors that decide about each sample: those with the largest |β_i k(x, x_i)|.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `predict`.
        n : int, default=5
            How many vectors.
        output : int, default=0
            Of a regression with several outputs; a classifier tells what speaks for the class it predicts.

        Returns
        -------
        list of Reasons, one for each sample
        """
        found: list[Reasons] = attribute_of("mercer.explain", "reasons")(self, X, n, output)
        return found
