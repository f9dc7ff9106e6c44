from . import displays as displays
from . import explain as explain
from . import features as features
from . import rkhs as rkhs
