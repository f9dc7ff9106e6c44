"""Names of mercer.files and their modules. Not every file is a .mercer file, which takes more of scikit-learn."""

from . import liblinear_estimator as liblinear_estimator
from . import liblinear_model as liblinear_model
from . import libsvm_estimator as libsvm_estimator
from . import libsvm_model as libsvm_model
from . import libsvm_text as libsvm_text
from . import onnx_export as onnx_export
from . import svmlight_model as svmlight_model
from .save_and_load import load as load
from .save_and_load import save as save
