"""What stochastic descent cannot do with a stream: see all samples at once, or go on as another machine."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

from mercer.kernels import Kernel

if TYPE_CHECKING:
    from mercer.fitting.pipeline.machine import Machine


def takes_samples(machine: Machine) -> bool:
    """Whether a machine can be given some samples after others; AttributeError, so that `hasattr` says no, if not."""
    if getattr(machine.kernel, "accepts", machine.kernel) in ("gram", "precomputed"):
        raise AttributeError(
            "partial_fit cannot add samples to a precomputed kernel, which needs their values with all others; fit the "
            "larger matrix (SVC and the like: with warm_start=True, the old samples first)"
        )
    return True


def check_stream(machine: Machine, kernel: Kernel) -> None:
    """Refuse parameters that a chunk alone cannot serve, and such as were changed since the first one.

    `kernel` is the one that the parameters ask for now.
    """
    for name in ("early_stopping", "certificate"):
        if getattr(machine, name):
            raise ValueError(f"{name}=True needs all samples at once: use fit, or set it to False for a stream")
    if isinstance(machine.class_weight, str):
        raise ValueError(
            f"class_weight={machine.class_weight!r} needs all labels at once; give a dict from label to weight"
        )
    if kernel.accepts == "gram":
        raise ValueError("a precomputed kernel matrix cannot come as a stream: use fit, or another kernel")
    if not hasattr(machine, "_theta_"):
        return
    linear = not hasattr(machine, "_expansion_")
    if (machine.kernel == "linear") != linear or _is_another(kernel, machine.kernel_):
        _refuse("kernel", machine.kernel, machine.kernel_)
    biased = machine.bias == "regularized"
    if biased is not _had_bias(machine, linear, biased):
        _refuse("bias", machine.bias, "'regularized'" if machine.bias is False else False)


def _is_another(asked: Kernel, used: Kernel) -> bool:
    """Whether a kernel is of another kind, or has other numbers; "scale" and the like stand for any number."""
    now, then = asked.get_params(), used.get_params()
    numbers = [name for name, value in now.items() if isinstance(value, Real)]
    return type(asked) is not type(used) or now.keys() != then.keys() or any(now[k] != then[k] for k in numbers)


def _had_bias(machine: Machine, linear: bool, otherwise: bool) -> bool:
    """Whether the machine learnt a bias; `otherwise` where all of its functions happen to pass through the origin."""
    if linear:
        return bool(machine._theta_.shape[1] > machine.n_features_in_)
    if machine.intercept_.any():
        return True
    return otherwise and not machine.dual_coef_.sum(axis=1).any()


def _refuse(name: str, now: Any, then: Any) -> None:
    raise ValueError(
        f"{name}={now!r} was set after training began with {name}={then}, and steps cannot go on as another machine; "
        f"set {name} back, or start anew with fit or fit_stream"
    )
