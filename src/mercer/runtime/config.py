"""Global settings: the device on which data in host memory are computed, and the client of a Dask cluster.

`set_config` applies to the process and `config_context` to a block of code. The environment variable MERCER_DEVICE sets
the initial value.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_process: dict[str, Any] = {"device": os.environ.get("MERCER_DEVICE") or "cpu", "client": None}
_block: ContextVar[dict[str, Any] | None] = ContextVar("mercer_config", default=None)


def get_config() -> dict[str, Any]:
    """Return the settings that are currently in effect.

    Returns
    -------
    dict
        The name of the device under "device", and under "client" the Dask client, None for the current one.

    See Also
    --------
    set_config : Change settings for the process.
    config_context : Change settings for a block of code.

    Examples
    --------
    >>> import mercer
    >>> mercer.get_config()
    {'device': 'cpu', 'client': None}
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
    _process.update(_checked_settings(device, None))


@contextmanager
def config_context(*, device: str | None = None, client: Any = None) -> Iterator[None]:
    """Change settings for a block of code; None leaves a setting as it is.

    Threads and processes that joblib starts, for example for ``n_jobs=2`` of scikit-learn's searches, do not inherit
    this change. Threads inherit `set_config`; threads and processes inherit the environment variable MERCER_DEVICE.

    Parameters
    ----------
    device : str, optional
        Device on which data in host memory are computed, as in `set_config`.
    client : distributed.Client, optional
        Client of the Dask cluster on which Dask collections, and host data with ``device="dask"``, are computed. By
        default it is Dask's current client.

    See Also
    --------
    set_config : Change settings for the process.

    Examples
    --------
    >>> import mercer
    >>> with mercer.config_context(device="cpu"):
    ...     machine = mercer.SVC().fit([[0.0], [1.0]], [0, 1])
    """
    token = _block.set((_block.get() or {}) | _checked_settings(device, client))
    try:
        yield
    finally:
        _block.reset(token)


def _checked_settings(device: str | None, client: Any) -> dict[str, Any]:
    """Return the settings that are not None, by name."""
    if device is not None and (not isinstance(device, str) or not device):
        raise ValueError(f"device={device!r} must be the name of a device, such as 'cpu'")
    if client is not None and not hasattr(client, "scheduler_info"):
        raise TypeError(
            f"client={client!r} must be a distributed.Client; for an address: distributed.Client({client!r})"
        )
    return {name: value for name, value in (("device", device), ("client", client)) if value is not None}
