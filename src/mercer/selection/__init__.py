"""Choosing a model: cross-validation that shares kernel values between folds, prices and kernels."""
