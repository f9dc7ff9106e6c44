"""Learning without targets, with every kernel: principal components, clusters, canonical correlations, a test."""

from mercer.unsupervised.kernel_cca import KernelCCA
from mercer.unsupervised.kernel_kmeans import KernelKMeans
from mercer.unsupervised.kernel_pca import KernelPCA
from mercer.unsupervised.manifold import manifold_kernel
from mercer.unsupervised.mmd import mmd_test
from mercer.unsupervised.spectral import SpectralClustering

__all__ = ["KernelCCA", "KernelKMeans", "KernelPCA", "SpectralClustering", "manifold_kernel", "mmd_test"]
