"""
Without targets: components, clusters and a test
================================================

These methods describe samples in feature space without labels. A line cannot separate two circles. After ``KernelPCA``
it can: the scores of new points are the values of the components, drawn here as contours.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles, make_moons

from mercer import KernelKMeans, KernelPCA, SpectralClustering, mmd_test

COLOURS = np.array(["#3b6fb6", "#d1603d"])

X, y = make_circles(300, factor=0.3, noise=0.05, random_state=0)
pca = KernelPCA(n_components=3, gamma=4.0).fit(X)
xx, yy = np.meshgrid(np.linspace(-1.4, 1.4, 150), np.linspace(-1.4, 1.4, 150))
values = pca.transform(np.column_stack([xx.ravel(), yy.ravel()]))
figure, axes = plt.subplots(1, 3, figsize=(10, 3.5), layout="constrained", sharey=True)
for k, ax in enumerate(axes):
    size = np.abs(values[:, k]).max()
    ax.contourf(xx, yy, values[:, k].reshape(xx.shape), levels=np.linspace(-size, size, 13), cmap="RdBu")
    ax.scatter(*X.T, c=np.where(y == 1, "white", "black"), s=10, edgecolors="black", linewidths=0.5)
    ax.set(title=f"component {k + 1}: {pca.explained_variance_ratio_[k]:.0%} of the variance", aspect="equal")
scores = pca.transform(X)[:, 0]
print(f"first component: {scores[y == 0].min():.2f} to {scores[y == 0].max():.2f} on the outer circle, ", end="")
print(f"{scores[y == 1].min():.2f} to {scores[y == 1].max():.2f} on the inner one")

# %%
# There are two methods for clusters. k-means with a Gaussian looks for round groups. Spectral clustering follows a
# random walk between neighbours, and finds groups of any shape. Both give labels to new points, here the background.

X, y = make_moons(300, noise=0.07, random_state=0)
xx, yy = np.meshgrid(np.linspace(-1.5, 2.5, 160), np.linspace(-1.0, 1.5, 120))
grid = np.column_stack([xx.ravel(), yy.ravel()])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
for ax, model in zip(
    axes,
    (KernelKMeans(2, gamma=1.0, random_state=0), SpectralClustering(2, gamma=30.0, random_state=0)),
    strict=True,
):
    model.fit(X)
    first = np.bincount(model.labels_[y == 0]).argmax()
    ax.pcolormesh(xx, yy, (model.predict(grid) == first).reshape(xx.shape), cmap="RdBu", alpha=0.3, vmin=-0.2, vmax=1.2)
    ax.scatter(*X.T, c=COLOURS[np.where(model.labels_ == first, 0, 1)], s=9)
    ax.set(title=type(model).__name__, aspect="equal")

# %%
# A test of two samples with the same means and variances. The statistic is compared with its values when the
# same points are divided at random.

rng = np.random.default_rng(0)
normal = rng.normal(size=(400, 1))
laplace = rng.laplace(scale=np.sqrt(0.5), size=(400, 1))
found = mmd_test(normal, laplace, gamma=2.0, n_permutations=2000, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
bins = np.linspace(-4, 4, 33)
axes[0].hist([normal[:, 0], laplace[:, 0]], bins, color=COLOURS, label=["normal", "Laplace"])
axes[0].set(xlabel="x", ylabel="samples", title="two samples")
axes[0].legend()
axes[1].hist(found.permuted, 50, color="0.75", label="random divisions")
axes[1].axvline(found.statistic, color=COLOURS[1], label="these two samples")
axes[1].set(xlabel="MMD², unbiased", ylabel="divisions", title=f"p = {found.p_value:.4f}")
axes[1].legend()
print(found)
