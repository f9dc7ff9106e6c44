"""Solutions for every C, and for every sample left out."""

from typing import TYPE_CHECKING

from mercer.runtime.on_demand import on_demand

__all__ = [
    "CPath",
    "Estimate",
    "LeaveOneOutResult",
    "leave_one_out",
    "radius_margin",
    "span_bound",
    "span_estimate",
    "svm_path",
    "xi_alpha",
]

if TYPE_CHECKING:
    from mercer.held_out.leave_one_out import LeaveOneOutResult, leave_one_out
    from mercer.paths.c_path import CPath, svm_path
    from mercer.paths.estimates import Estimate, radius_margin, span_bound, span_estimate, xi_alpha
else:
    _HOMES = dict.fromkeys(__all__, "mercer.paths.estimates") | {
        "CPath": "mercer.paths.c_path",
        "LeaveOneOutResult": "mercer.held_out.leave_one_out",
        "leave_one_out": "mercer.held_out.leave_one_out",
        "svm_path": "mercer.paths.c_path",
    }
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
