"""Constructors: what an editor shows, what scikit-learn reads and what an object keeps are the same parameters."""

import copy
import inspect
import pickle
from dataclasses import fields

import pytest
import sklearn.utils
from sklearn.base import BaseEstimator, clone

import mercer
import mercer.inspection.features
from mercer import kernels
from mercer.estimators.fitting.pipeline.machine import Machine
from mercer.kernels import Kernel
from mercer.kernels.names import COMPOSED_KERNELS

PUBLIC = [getattr(mercer, name) for name in mercer.__all__]
FEATURES = [getattr(mercer.features, name) for name in mercer.features.__all__]
KERNELS = [cls for cls in (getattr(kernels, name) for name in kernels.__all__) if inspect.isclass(cls)]
KERNELS += COMPOSED_KERNELS.values()
ESTIMATORS = [cls for cls in PUBLIC + FEATURES if inspect.isclass(cls) and issubclass(cls, BaseEstimator)]
CONSTRUCTED = ESTIMATORS + [cls for cls in KERNELS if issubclass(cls, Kernel) and cls is not Kernel]
NEEDED = {"estimator": mercer.SVC(), "kernel": kernels.Linear(), "left": kernels.Linear(), "right": kernels.Linear()}
NEEDED |= {"function": len, "feature_map": len, "factor": 2.0, "constant": 1.0, "exponent": 2, "columns": (0,)}
THEIRS = dict(sklearn.utils.all_estimators())
# Parameters of scikit-learn's that a machine of the same name lacks, as the migration page says.
ABSENT = {
    "NuSVC": {"class_weight", "probability"},
    "LinearSVC": {"fit_intercept", "multi_class"},
    "LinearSVR": {"fit_intercept"},
}


def made(cls):
    """An object with a default for every parameter that has one."""
    empty = inspect.Parameter.empty
    needed = [name for name, one in inspect.signature(cls).parameters.items() if one.default is empty]
    return cls(**{name: NEEDED[name] for name in needed})


@pytest.mark.parametrize("cls", CONSTRUCTED, ids=lambda cls: cls.__name__)
def test_a_signature_is_what_scikit_learn_reads_and_what_is_kept(cls):
    parameters = inspect.signature(cls).parameters
    read = BaseEstimator._get_param_names.__func__(cls)  # scikit-learn's own, which reads `__init__`
    assert sorted(parameters) == sorted(read) == sorted(cls._get_param_names())
    one = made(cls)
    assert vars(one).keys() == parameters.keys()
    for name, parameter in parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            assert vars(one)[name] is parameter.default
    for other in (clone(one), copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert type(other) is cls
        assert vars(other).keys() == vars(one).keys()
        assert repr(other) == repr(one)
    assert one != clone(one)  # equal by identity alone, and so with a hash
    assert hash(one) == object.__hash__(one)


def subclasses(cls):
    return {cls}.union(*map(subclasses, cls.__subclasses__()))


def test_every_class_takes_all_that_it_and_its_ancestors_declare():
    """A class that declares a parameter, or inherits some from two bases, has to be a dataclass itself."""
    ours = [cls for cls in subclasses(Machine) | subclasses(Kernel) if cls.__module__.startswith("mercer.")]
    assert len(ours) > 80
    for cls in ours:
        ancestors = [base for base in cls.__mro__ if "__dataclass_fields__" in vars(base)]
        declared = {field.name for base in ancestors for field in fields(base)}
        assert inspect.signature(cls).parameters.keys() == declared, cls
        for base in cls.__mro__:
            if issubclass(base, Machine):  # a kernel states facts, and a class between may name what others declare
                annotated = {name for name, kind in inspect.get_annotations(base).items() if "ClassVar" not in kind}
                assert annotated - {"_"} <= declared, base


@pytest.mark.parametrize("cls", [cls for cls in ESTIMATORS if cls.__name__ in THEIRS], ids=lambda cls: cls.__name__)
def test_a_parameter_by_position_is_the_one_that_scikit_learn_has_there(cls):
    def by_position(one):
        parameters = inspect.signature(one).parameters.values()
        return [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]

    ours, theirs = by_position(cls), by_position(THEIRS[cls.__name__])
    assert [name for name in ours if name in theirs] == [name for name in theirs if name in ours]
    if "svm" in THEIRS[cls.__name__].__module__:
        absent = inspect.signature(THEIRS[cls.__name__]).parameters.keys() - inspect.signature(cls).parameters.keys()
        assert absent == ABSENT.get(cls.__name__, set())


def test_an_unknown_parameter_is_explained():
    with pytest.raises(TypeError, match=r"^SVC got an unexpected parameter c=1; did you mean C\?$"):
        mercer.SVC(c=1)
    with pytest.raises(TypeError, match=r"^LinearSVC got an unexpected parameter fit_intercept=True: True is bias="):
        mercer.LinearSVC(fit_intercept=True)
    with pytest.raises(
        TypeError, match=r"^KernelMachineRegressor got an unexpected parameter fit_intercept=False: it is bias"
    ):
        mercer.KernelMachine("huber", fit_intercept=False)
    with pytest.raises(TypeError, match=r"^SVR got an unexpected parameter eps=0.1; did you mean epsilon\?$"):
        mercer.SVR(eps=0.1)
    with pytest.raises(TypeError, match=r"^Gaussian got an unexpected parameter gama=1; did you mean gamma\?$"):
        mercer.kernels.Gaussian(gama=1)

    class Free(mercer.SVC):
        def __init__(self, **options):
            super().__init__(**options)

    assert Free(C=2.0).C == 2.0
    with pytest.raises(TypeError, match="unexpected keyword argument 'c'"):
        Free(c=1)
