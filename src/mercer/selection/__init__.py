"""Choosing a model: cross-validation that shares kernel values between folds, prices and kernels."""

from typing import TYPE_CHECKING

from mercer.runtime.on_demand import on_demand

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, {"learn_kernel": "mercer.selection.learn_kernel"})
