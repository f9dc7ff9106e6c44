from . import datasets as datasets
from . import teaching as teaching
from . import theory as theory
from . import toy as toy
