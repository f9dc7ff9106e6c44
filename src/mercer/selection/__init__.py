"""Choosing a model: cross-validation that shares kernel values between folds, prices and kernels."""

from mercer.selection import learn_kernel as learn_kernel
