"""Global settings: the device on which data in host memory are computed.

`set_config` applies to the process and `config_context` to a block of code. The environment variable MERCER_DEVICE sets
the initial value.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_process = {"device": os.environ.get("MERCER_DEVICE") or "cpu"}
_block: ContextVar[dict[str, str] | None] = ContextVar("mercer_config", default=None)


def get_config() -> dict[str, str]:
    """Return the settings that are currently in effect.

    Returns
    -------
    dict
        The name of the device under "device".

    See Also
    --------
    set_config : Change settings for the process.
    config_context : Change settings for a block of code.

    Examples
    --------
    >>> import mercer
    >>> mercer.get_config()
    {'device': 'cpu'}
    """
    return dict(_process | (_block.get() or {}))


def set_config(*, device: str | None = None) -> None:
    """Change settings for this process; None leaves a setting as it is.

    Parameters
    ----------
    device : str, optional
        Device on which data in host memory are computed; "cpu" is the host itself. Data that live on a device are
        computed on that device, whatever this setting says.

    See Also
    --------
    config_context : Change settings for a block of code.

    Examples
    --------
    >>> import mercer
    >>> mercer.set_config(device="cpu")
    """
    _process.update(_checked_settings(device))


@contextmanager
def config_context(*, device: str | None = None) -> Iterator[None]:
    """Change settings for a block of code; None leaves a setting as it is.

    Threads and processes that joblib starts, for example for ``n_jobs=2`` of scikit-learn's searches, do not inherit
    this change. Threads inherit `set_config`; threads and processes inherit the environment variable MERCER_DEVICE.

    Parameters
    ----------
    device : str, optional
        Device on which data in host memory are computed, as in `set_config`.

    See Also
    --------
    set_config : Change settings for the process.

    Examples
    --------
    >>> import mercer
    >>> with mercer.config_context(device="cpu"):
    ...     machine = mercer.SVC().fit([[0.0], [1.0]], [0, 1])
    """
    token = _block.set((_block.get() or {}) | _checked_settings(device))
    try:
        yield
    finally:
        _block.reset(token)


def _checked_settings(device: str | None) -> dict[str, str]:
    """Return the settings that are not None, by name."""
    if device is None:
        return {}
    if not isinstance(device, str) or not device:
        raise ValueError(f"device={device!r} must be the name of a device, such as 'cpu'")
    return {"device": device}
