"""Contract of column names, wherever samples live: they are kept, saved, and compared as scikit-learn does."""

from __future__ import annotations

import tempfile
import warnings

import numpy as np
import pytest

import mercer
from mercer.samples.engine import EngineSamples, to_engine

NAMES = list("abcd")


def check_names_contract(place, X, y, take=np.asarray):
    """`place` makes named samples of an array and a list of names; `take` makes an array of the answers about them."""
    X, rest = X[:, : len(NAMES)], X[:, len(NAMES) :]
    assert rest.shape[1] == 0, f"give {len(NAMES)} columns"
    given = place(X, NAMES)
    samples = to_engine(given)
    if isinstance(samples, EngineSamples):
        assert samples.names == tuple(NAMES)
        some = samples.take(np.array([3, 1]))
        assert some.names == samples.joined(some).names == tuple(NAMES)
    here = mercer.SVC(gamma=0.3, tol=1e-6).fit(X, y)
    model = mercer.SVC(gamma=0.3, tol=1e-6).fit(given, y)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.feature_names_in_.dtype == object
    assert abs(model.certificate_.dual - here.certificate_.dual) <= model.certificate_.gap + here.certificate_.gap
    with tempfile.TemporaryDirectory() as folder:
        mercer.save(model, f"{folder}/model.mercer")
        saved = mercer.load(f"{folder}/model.mercer")
    for fitted in (model, saved):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_allclose(take(fitted.decision_function(given)), here.decision_function(X), atol=1e-4)
            assert fitted.score(given, y) == here.score(X, y)
        _check_that_others_are_refused(fitted, place, X, y)
    with pytest.warns(UserWarning, match="X has feature names, but SVC was fitted without feature names"):
        here.score(given, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but SVC was fitted with feature names"):
        model.score(X, y)


def _check_that_others_are_refused(fitted, place, X, y):
    order = [1, 0, 2, 3]
    others = {
        "must be in the same order": (X[:, order], [NAMES[k] for k in order]),
        "unseen at fit time:\n- z\nFeature names seen at fit time, yet now missing:\n- a": (X, ["z", *NAMES[1:]]),
        "yet now missing:\n- d": (X[:, :3], NAMES[:3]),
        "unseen at fit time:\n- e": (np.column_stack([X, X[:, 0]]), [*NAMES, "e"]),
    }
    for told, (rows, names) in others.items():
        wrong = place(rows, names)
        for ask in (fitted.predict, fitted.decision_function, lambda wrong: fitted.score(wrong, y)):
            with pytest.raises(ValueError, match="The feature names should match those") as caught:
                ask(wrong)
            assert told in str(caught.value)
