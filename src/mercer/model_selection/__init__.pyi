from . import learn_kernel as learn_kernel
from . import paths as paths
