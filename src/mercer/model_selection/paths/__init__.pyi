"""Names of mercer.paths and their modules."""

from .c_path import CPath as CPath
from .c_path import svm_path as svm_path
from .estimates import radius_margin as radius_margin
from .estimates import span_bound as span_bound
from .estimates import span_estimate as span_estimate
from .estimates import xi_alpha as xi_alpha
