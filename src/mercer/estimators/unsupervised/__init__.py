"""Unsupervised kernel methods: principal components, clustering, canonical correlations, and a two-sample test."""

from mercer.estimators.unsupervised.kernel_cca import KernelCCA
from mercer.estimators.unsupervised.kernel_kmeans import KernelKMeans
from mercer.estimators.unsupervised.kernel_pca import KernelPCA
from mercer.estimators.unsupervised.manifold import manifold_kernel
from mercer.estimators.unsupervised.mmd import mmd_test
from mercer.estimators.unsupervised.spectral import SpectralClustering

__all__ = ["KernelCCA", "KernelKMeans", "KernelPCA", "SpectralClustering", "manifold_kernel", "mmd_test"]
