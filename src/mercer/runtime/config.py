"""Settings of the library as a whole: on which device data of this machine are computed.

`set_config` holds for the process, `config_context` for a block of code, and the environment variable MERCER_DEVICE
says what holds before either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_process = {"device": os.environ.get("MERCER_DEVICE") or "cpu"}
_block: ContextVar[dict[str, str] | None] = ContextVar("mercer_config", default=None)


def get_config() -> dict[str, str]:
    """The settings that hold here.

    Examples
    --------
    >>> import mercer
    >>> mercer.get_config()
    {'device': 'cpu'}
    """
    return dict(_process | (_block.get() or {}))


def set_config(*, device: str | None = None) -> None:
    """Change settings for this process; None leaves one as it is.

    Parameters
    ----------
    device : str, optional
        Where data of this machine are computed: "cpu" is this machine. Data that live elsewhere are computed there,
        whatever this says.

    Examples
    --------
    >>> import mercer
    >>> mercer.set_config(device="cpu")
    """
    _process.update(_given(device))


@contextmanager
def config_context(*, device: str | None = None) -> Iterator[None]:
    """Change settings for a block of code; None leaves one as it is.

    Threads and processes that joblib starts, as ``n_jobs=2`` of scikit-learn's searches does, do not see it. Threads
    see `set_config`, and both the environment variable MERCER_DEVICE.

    Parameters
    ----------
    device : str, optional
        As in `set_config`.

    Examples
    --------
    >>> import mercer
    >>> with mercer.config_context(device="cpu"):
    ...     machine = mercer.SVC().fit([[0.0], [1.0]], [0, 1])
    """
    token = _block.set((_block.get() or {}) | _given(device))
    try:
        yield
    finally:
        _block.reset(token)


def _given(device: str | None) -> dict[str, str]:
    if device is None:
        return {}
    if not isinstance(device, str) or not device:
        raise ValueError(f"device={device!r} must be the name of a device, such as 'cpu'")
    return {"device": device}
