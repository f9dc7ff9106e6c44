"""
Every C at once
===============

``svm_path`` follows the exact solution of a support vector machine from C = 0 to the C beyond which nothing changes. α
is linear between breakpoints, and every breakpoint is computed.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

from mercer import svm_path
from mercer.inspection.displays import DecisionDisplay, PathDisplay

rng = np.random.default_rng(0)
y = np.repeat([-1, 1], 30)
X = rng.normal(size=(60, 2)) + 0.8 * y[:, None]
X_new = rng.normal(size=(2000, 2)) + 0.8 * np.repeat([-1, 1], 1000)[:, None]
y_new = np.repeat([-1, 1], 1000)

path = svm_path(X, y, gamma=0.5, C_max=1000)
print(path)
PathDisplay.from_svm_path(path, X=X_new, y=y_new)

# %%
# The machine at any C has a certificate.

print(path.at(0.37).certificate_)

# %%
# One step: the machine just before and just after the middle breakpoint. One sample joins the margin, or leaves it.

C = path.C_[len(path.C_) // 2]
figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for ax, at in zip(axes, (C * 0.999, C * 1.001), strict=True):
    DecisionDisplay.from_estimator(path.at(at), X, y, ax=ax)
    ax.set_title(f"C = {at:.4g}")

# %%
# An animation of the whole path: as C grows, samples join the margin and leave it again, and the margin becomes
# narrower.

figure, ax = plt.subplots(figsize=(7, 5.6), layout="constrained")


def draw(C):
    ax.clear()
    DecisionDisplay.from_estimator(path.at(C), X, y, resolution=80, ax=ax)
    ax.set_title(f"C = {C:.4g}")


film = FuncAnimation(figure, draw, frames=np.geomspace(path.C_[0], 100, 40), interval=150)
plt.show()
