"""Models as files."""

from typing import TYPE_CHECKING

from mercer.runtime.on_demand import on_demand

__all__ = ["load", "save"]

if TYPE_CHECKING:
    from mercer.files.save_and_load import load, save
else:
    # Not every file is a .mercer file, which takes more of scikit-learn.
    _MODULES = (
        "liblinear_estimator liblinear_model libsvm_estimator libsvm_model libsvm_text onnx_export svmlight_model"
    )
    __getattr__, __dir__ = on_demand(
        __name__,
        dict.fromkeys(__all__, "mercer.files.save_and_load")
        | {name: f"mercer.files.{name}" for name in _MODULES.split()},
    )
