from . import losses as losses
from . import margins as margins
from . import penalties as penalties
from . import quadratic_programs as quadratic_programs
from .dual_problem import DualProblem as DualProblem
