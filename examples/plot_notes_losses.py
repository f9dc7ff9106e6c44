"""
The losses
==========

The loss of a machine for two classes is a function of the functional margin y f(x). The 0-1 loss counts errors and
cannot be minimised in reasonable time; the other losses are above it, so that their minimum bounds the number of
errors.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer.notes.theory import risk

plt.rcParams["figure.constrained_layout.use"] = True

margin = np.linspace(-2, 3, 501)


def loss_of_each(name, **options):
    """The loss at every margin: the risk of one sample with the label +1."""
    return np.array([risk([1.0], [f], loss=name, **options) for f in margin])


curves = {
    "squared hinge": (loss_of_each("squared_hinge"), {"color": "C4", "linewidth": 6, "alpha": 0.45}),
    "squared, (1 − yf)²": (loss_of_each("squared"), {"color": "C0", "linestyle": "--"}),
    "logistic, in units of log 2": (loss_of_each("logistic") / np.log(2), {"color": "C2", "linestyle": "-."}),
    "hinge, max(0, 1 − yf)": (loss_of_each("hinge"), {"color": "C1"}),
    "0-1": (loss_of_each("zero_one"), {"color": "black", "drawstyle": "steps-post"}),
}
figure, ax = plt.subplots(figsize=(6, 4.2))
for name, (values, style) in curves.items():
    ax.plot(margin, values, label=name, **{"linewidth": 2, **style})
ax.set(xlabel="functional margin y f(x)", ylabel="loss", ylim=(-0.1, 4), xlim=(-2, 2.5))
ax.legend(loc="upper right")

# %%
# The proof of the soft-margin bound (Igel, theorem 4.4) needs a loss between the 0-1 loss and the slacks that is
# Lipschitz: the ramp. With a target margin γ its slope is 1/γ.

figure, ax = plt.subplots(figsize=(6, 3.6))
for gamma, colour in ((1.0, "C0"), (0.3, "C2")):
    ramp = loss_of_each("ramp", target_margin=gamma)
    ax.plot(margin, ramp, color=colour, linewidth=2, label=f"ramp, γ = {gamma:g}")
ax.plot(margin, loss_of_each("hinge"), color="C1", linestyle=(0, (2, 3)), linewidth=3, label="slack ξ")
ax.plot(margin, loss_of_each("zero_one"), color="black", linewidth=2, drawstyle="steps-post", label="0-1")
ax.set(xlabel="functional margin y f(x)", ylabel="loss", ylim=(-0.1, 2.2), xlim=(-1, 2))
ax.legend(loc="upper right")
