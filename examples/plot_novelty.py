"""
One class: a plane or a ball
============================

``OneClassSVM`` separates the samples from the origin of feature space by a plane, ``SVDD`` encloses them in the
smallest ball. With a Gaussian, all samples have norm 1 there, and the two machines agree. With a linear kernel they
differ: the ball is then a ball in the space of the data.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVDD, OneClassSVM

STYLES = [("#3b6fb6", "-"), ("#d1603d", ":"), ("#4f9d69", "--")]

rng = np.random.default_rng(0)
X = np.vstack([rng.normal([-2, 0], 0.5, (80, 2)), rng.normal([2, 1], 0.5, (80, 2))])

machines = {
    "OneClassSVM, Gaussian": OneClassSVM(nu=0.1, gamma=0.5, tol=1e-6),
    "SVDD, Gaussian": SVDD(nu=0.1, gamma=0.5, tol=1e-6),
    "SVDD, linear": SVDD(nu=0.1, kernel="linear", tol=1e-6),
}
xx, yy = np.meshgrid(np.linspace(-6, 6, 300), np.linspace(-3.5, 4.5, 200))
grid = np.column_stack([xx.ravel(), yy.ravel()])
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.scatter(*X.T, s=10, color="0.5")
for (name, machine), (colour, style) in zip(machines.items(), STYLES, strict=True):
    f = machine.fit(X).decision_function(grid).reshape(xx.shape)
    ax.contour(xx, yy, f, levels=[0.0], colors=colour, linestyles=style)
    outside = np.mean(machine.decision_function(X) < -1e-5)
    ax.plot([], [], color=colour, linestyle=style, label=f"{name}: {outside:.1%} outside")
ax.set_aspect("equal")
figure.legend(loc="outside lower center")

# %%
# At most a share ν of the samples lies outside. The free support vectors lie on the boundary, up to the tolerance. The
# first two machines also agree on new samples:

new = rng.uniform(-4, 4, size=(2000, 2))
plane, ball = (machines[name].predict(new) for name in ("OneClassSVM, Gaussian", "SVDD, Gaussian"))
print(f"{np.mean(plane == ball):.2%} of {len(new)} decisions are the same")
