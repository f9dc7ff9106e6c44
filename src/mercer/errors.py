"""The exceptions and warnings that only mercer raises; everything else is a ValueError or scikit-learn's own."""


class ModelFormatError(ValueError):
    """A model file that is damaged, truncated, from a newer version, or no model file at all."""


class NonPSDKernelWarning(UserWarning):
    """The kernel matrix has a negative eigenvalue: the fit is a stationary point, not a proven optimum."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""
