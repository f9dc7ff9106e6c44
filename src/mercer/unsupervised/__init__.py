"""Learning without targets, with every kernel: principal components, clusters, canonical correlations, a test."""

from typing import TYPE_CHECKING

from mercer.runtime.on_demand import on_demand

__all__ = ["KernelCCA", "KernelKMeans", "KernelPCA", "MMDTest", "SpectralClustering", "manifold_kernel", "mmd_test"]

if TYPE_CHECKING:
    from mercer.unsupervised.kernel_cca import KernelCCA
    from mercer.unsupervised.kernel_kmeans import KernelKMeans
    from mercer.unsupervised.kernel_pca import KernelPCA
    from mercer.unsupervised.manifold import manifold_kernel
    from mercer.unsupervised.mmd import MMDTest, mmd_test
    from mercer.unsupervised.spectral import SpectralClustering
else:
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "KernelCCA": "mercer.unsupervised.kernel_cca",
            "KernelKMeans": "mercer.unsupervised.kernel_kmeans",
            "KernelPCA": "mercer.unsupervised.kernel_pca",
            "MMDTest": "mercer.unsupervised.mmd",
            "SpectralClustering": "mercer.unsupervised.spectral",
            "manifold_kernel": "mercer.unsupervised.manifold",
            "mmd_test": "mercer.unsupervised.mmd",
        },
    )
