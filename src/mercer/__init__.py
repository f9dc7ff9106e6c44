"""mercer: kernel machines that are exact, fast and certified."""

from mercer.certificate import Certificate
from mercer.estimators import SVC
from mercer.kernels import check_kernel

__version__ = "0.1.0"

__all__ = ["SVC", "Certificate", "check_kernel"]
