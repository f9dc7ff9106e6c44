"""Engines: a machine that is trained on a device or a cluster has the f of one that is trained on the host."""

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import mercer
from tools.answers import NoSuchTool, expect_same_function
from tools.rows import NEW, POINTS, N, fitted


def on_device(row):
    """On torch's own processor: rows of the host that are placed there, and tensors.

    Draws of landmarks and of steps are another engine's own, so that all samples are landmarks here, and descent only
    comes near.
    """
    import torch

    host = fitted(row) if not row.has("landmarks") else row.fit(row.make().set_params(n_landmarks=N))
    with mercer.config_context(device="torch-cpu"):
        there = row.fit(clone(host))
        expect_same_function(host, there, row, close=0.1 if row.has("descent") else 1e-5)
    if row.form == "rows" and hasattr(host, "predict"):
        target = row.y if row.classifies or row.y is None else torch.tensor(row.y)
        found = clone(host).fit(torch.tensor(POINTS), target).predict(torch.tensor(NEW))
        expected = host.predict(NEW)
        if np.asarray(expected).dtype.kind == "f":
            np.testing.assert_allclose(np.asarray(found), expected, atol=1e-5)


def on_dask(row):
    """Rows in chunks of uneven size, on the workers of the client that is open."""
    import dask.array as da

    X = row.training()
    if row.form == "strings":
        raise NoSuchTool("strings are no array")
    if row.form == "frame":
        import dask.dataframe as dd

        X = dd.from_pandas(X, npartitions=2)
    else:
        X = da.from_array(X.toarray() if row.form == "csr" else X, chunks=((13, 1, N - 14), X.shape[1]))
        X = X.map_blocks(sp.csr_array) if row.form == "csr" else X
    expect_same_function(fitted(row), row.make().fit(X, row.y), row, close=1e-5)
