from .svmutil import evaluations as evaluations
from .svmutil import read_libsvm as read_libsvm
from .svmutil import svm_load_model as svm_load_model
from .svmutil import svm_predict as svm_predict
from .svmutil import svm_read_problem as svm_read_problem
from .svmutil import svm_save_model as svm_save_model
from .svmutil import svm_train as svm_train
from .svmutil import write_libsvm as write_libsvm
