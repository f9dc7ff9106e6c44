"""Tables as they come: every column of a frame, whatever it holds, as numbers that a kernel machine can learn from."""

from typing import TYPE_CHECKING

from mercer.runtime.on_demand import on_demand

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, {"formula": "mercer.tables.formula"})
