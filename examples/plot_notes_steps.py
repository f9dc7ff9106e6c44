"""
How many steps: the tolerance and the order of samples
======================================================

This experiment follows Igel's section 4.3.3. Decomposition needs at most a constant times 1/ε steps to bring the
violation below ε. In practice it needs far fewer; their number depends on the rule for the pair, and a little on the
order of the samples.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SVC, datasets, steps
from mercer.kernels import Gaussian

plt.rcParams["figure.constrained_layout.use"] = True
BLUE, ORANGE, GREEN = "C0", "C1", "C2"

X, y = datasets.location(80, distance=1.5, random_state=0)
kernel, C = Gaussian(gamma=0.5), 10.0
runs = {
    rule: steps(X, y, kernel=kernel, C=C, rule=rule, tol=1e-6)
    for rule in ("most violating", "second order", "maximum gain")
}
epsilons = np.logspace(0, -6, 25)
figure, ax = plt.subplots(figsize=(6, 4))
for (rule, run), colour in zip(runs.items(), (BLUE, ORANGE, GREEN), strict=True):
    violations = np.array([step.violation for step in run])
    counts = [1 + int(np.argmax(violations <= epsilon)) for epsilon in epsilons]
    ax.loglog(1 / epsilons, counts, color=colour, linewidth=2, label=rule)
    print(f"{rule}: {counts[12]} steps to 1e-3, {counts[-1]} to 1e-6")
ax.loglog(1 / epsilons, 30 / epsilons, color="0.5", linestyle=":", label="a multiple of 1/ε")
ax.set(xlabel="1/ε", ylabel="steps until the violation is ε", ylim=(10, 2e4))
ax.legend()

# %%
# The same samples in other orders. Samples with rounded coordinates have ties, and which of two equal pairs is taken
# depends on the order. `SVC` sorts the samples into a canonical order first, so that its number of steps does not
# depend on the order of the rows.

rounded, rng = X.round(0), np.random.default_rng(0)
orders = [rng.permutation(len(X)) for _ in range(40)]
counts = [len(steps(rounded[some], y[some], kernel=kernel, C=C, rule="most violating", tol=1e-3)) for some in orders]
own = {int(np.ravel(SVC(C=C, kernel=kernel).fit(rounded[some], y[some]).n_iter_)[0]) for some in orders}
figure, ax = plt.subplots(figsize=(6, 3.2))
ax.hist(counts, bins=20, color=BLUE)
ax.set(xlabel="steps to ε = 0.001", ylabel="orders of the same samples")
print(f"from {min(counts)} to {max(counts)} steps; SVC: {own}")
