from . import libsvm as libsvm
