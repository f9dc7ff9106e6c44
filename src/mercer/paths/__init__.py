"""Solutions for every C, and for every sample left out."""

from mercer.on_demand import on_demand

__all__ = ["CPath", "LeaveOneOut", "leave_one_out", "svm_path"]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "CPath": "mercer.paths.c_path",
        "LeaveOneOut": "mercer.paths.left_out",
        "leave_one_out": "mercer.paths.left_out",
        "svm_path": "mercer.paths.every_price",
    },
)
