"""Type aliases of displays; matplotlib and pandas are optional and slow to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from pandas import DataFrame as DataFrame
else:
    Axes = Figure = DataFrame = object
MaybeAxes: TypeAlias = Axes | None
MaybeArray: TypeAlias = ArrayLike | None
Column: TypeAlias = int | str  # by number or name
Columns: TypeAlias = Sequence[Column]
Names: TypeAlias = Sequence[str] | None
At: TypeAlias = Mapping[Column, object] | None
Panels: TypeAlias = Sequence[Axes] | np.ndarray | None
