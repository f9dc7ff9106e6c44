"""An estimator that is copied, pickled or asked in one thread while another one fits it."""

import copy
import pickle
import threading

import numpy as np
import pytest

import mercer
from mercer.runtime.refitting import fitted_names

X = np.random.default_rng(0).normal(size=(30, 2))
MACHINES = [
    (mercer.SVC(), (X[:, 0] > 0).astype(int)),
    (mercer.KernelPCA(2), None),
]


@pytest.mark.parametrize(("machine", "y"), MACHINES, ids=lambda value: type(value).__name__)
def test_copies_are_whole(machine, y):
    """Each has all that a fit leaves; nothing changes under the copier's hands."""
    model = machine.fit(X, y)
    names, errors, ended = set(fitted_names(model)), [], threading.Event()

    def look():
        try:
            while not ended.is_set():
                for made in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
                    assert set(fitted_names(made)) == names
        except BaseException as error:
            errors.append(error)

    looker = threading.Thread(target=look)
    looker.start()
    for _ in range(40):
        model.fit(X, y)
        if errors:
            break
    ended.set()
    looker.join()
    assert not errors


def test_what_is_handed_over_is_handed_over_at_once():
    """No moment at which an attribute is missing: the dictionary is another one, and the old one as it was."""
    model = mercer.SVC().fit(X, X[:, 0] > 0)
    before = vars(model)
    kept = dict(before)
    model.fit(X, X[:, 1] > 0)
    assert vars(model) is not before
    assert before == kept
