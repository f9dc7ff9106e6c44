"""
A machine on a tenth of its vectors
===================================

``mercer.compress`` returns a machine of the same class with fewer vectors. They need not be training samples: a
gradient search places them, so that a few vectors replace many.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

import mercer
from mercer.inspection.displays import DecisionDisplay, PathDisplay

X, y = make_moons(1200, noise=0.25, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
model = mercer.SVC(C=10).fit(X, y)
small = mercer.compress(model, 10, X=X)
print(small.compression_)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharex=True, sharey=True)
for ax, machine, title in (
    (axes[0], model, f"{len(model.support_)} support vectors"),
    (axes[1], small, f"{small.compression_.n_vectors} vectors"),
):
    DecisionDisplay.from_estimator(machine, X_test, y_test, ax=ax)
    ax.set_title(f"{title}: {machine.score(X_test, y_test):.1%} right")
    ax.get_legend().remove()
axes[1].scatter(*small.function_.vectors.T, marker="*", s=160, color="gold", edgecolors="black", zorder=5)

# %%
# The stars are the ten vectors. The next figure shows the cost of fewer vectors: the distance ‖w − w'‖ from the
# original, the score on new samples, and the share of these whose label is provably the original's, by ``|f'(x)| > ‖w −
# w'‖√k(x, x) + |b − b'|``.

PathDisplay.from_compression(model, X_test, y_test, n_vectors=[3, 5, 8, 12, 20, 40, 80])

# %%
# The proof covers the worst possible sample and therefore needs more vectors than the score. ``max_error`` sets the
# bound that the compressed machine has to meet:

sure = mercer.compress(model, max_error=0.3)
kept = sure.compression_.keeps_label(X_test)
print(f"{sure.compression_.n_vectors} vectors prove {kept.mean():.1%} of the labels")

# %%
# Any machine, compressed or not, can be written as one C file for a device:

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "moons.c"
    mercer.save(small, path, dtype="float32")
    print("\n".join(path.read_text().splitlines()[:12]))
