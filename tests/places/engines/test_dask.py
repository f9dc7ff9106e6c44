"""A Dask cluster of two processes as an engine: layouts of chunks, odd inputs, deaths, and what is left behind."""

import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from contracts.gram_contract import check_gram_contract
from contracts.names_contract import check_names_contract
from contracts.samples_contract import check_samples_contract
from mercer.cli.main import main
from mercer.files.libsvm_text import write_libsvm
from mercer.places import gram_for
from mercer.places.chunked import gram as chunked_gram
from mercer.samples.engine import engine_of
from places.engines.cluster_claims import (
    GIVEN,
    KERNEL,
    MACHINES,
    NEW,
    X,
    check_machine,
    check_reference,
    cuts,
    killing,
    t,
    three,
    y,
)
from test_architecture import CELLS

distributed = pytest.importorskip("distributed", reason="Dask is not installed: python -m pip install 'mercer[dask]'")
dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402  # after the skip without Dask

from mercer.places.chunked.conversion import as_rows  # noqa: E402  # after the skip without Dask
from mercer.places.chunked.dask import ENGINE, cluster  # noqa: E402  # after the skip without Dask

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("dask")]
LAYOUTS = {"one": (400,), "uneven": (150, 1, 249), "small": (40,) * 10}


@pytest.fixture(scope="module")
def two_workers():
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        made = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with made:
        yield made


@pytest.fixture(autouse=True)
def client(two_workers, monkeypatch):
    monkeypatch.setattr(chunked_gram, "OUTER_ROWS", 100)
    with distributed.Client(two_workers) as client:
        yield client


def placed(array, sizes=(150, 1, 249)):
    return da.from_array(array, chunks=(sizes, *array.shape[1:]))


KERNEL_MACHINES = ("SVC", "SVR", "OneClassSVM")
EVERY_LAYOUT = [
    pytest.param(name, layout, marks=[] if (i, j) == (0, 1) else pytest.mark.thorough)
    for i, name in enumerate(KERNEL_MACHINES)
    for j, layout in enumerate(LAYOUTS)
]


@pytest.mark.parametrize(("name", "layout"), EVERY_LAYOUT)
def test_machines_do_not_depend_on_chunks(name, layout):
    def fit(machine, X, y):
        return machine.fit(placed(X, LAYOUTS[layout]), None if y is None else da.from_array(y, chunks=170))

    check_machine(name, fit)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("linear RLS", "NystromRLS") else pytest.mark.thorough)
        for name in MACHINES
        if name not in KERNEL_MACHINES
    ],
)
def test_machines_are_those_of_this_machine(name):
    check_machine(name, lambda machine, X, y: machine.fit(placed(X), y))


@pytest.mark.thorough
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize(("name", "kind"), CELLS)
def test_every_machine_reaches_the_reference_value(name, kind, given, monkeypatch):
    def fit(machine, X, y, weight, sizes):
        parts = [(dask.delayed(X[a:b]), (b - a, X.shape[1])) for a, b in cuts(len(y), sizes)]
        rows = da.concatenate([da.from_delayed(part, shape, X.dtype) for part, shape in parts])
        return machine.fit(rows, y, sample_weight=weight)

    monkeypatch.setattr(chunked_gram, "OUTER_ROWS", 16)
    check_reference(name, kind, given, fit)


@pytest.mark.thorough
def test_contracts():
    rows = X[:40]
    check_samples_contract(ENGINE.samples(rows), rows)
    check_gram_contract(gram_for(KERNEL, ENGINE.samples(placed(rows, (30, 0, 10)))), KERNEL(rows), 1e-12)


def test_answers_are_lazy_and_keep_their_chunks():
    model = mercer.SVC(kernel=KERNEL).fit(placed(X), three)
    for name in ("predict", "decision_function"):
        answer = getattr(model, name)(placed(X))
        assert answer.chunks[0] == (150, 1, 249)
        np.testing.assert_array_equal(answer.compute(), getattr(model, name)(X))
    unknown = placed(X)[placed(X)[:, 0] > 0]
    np.testing.assert_array_equal(model.predict(unknown).compute(), model.predict(X[X[:, 0] > 0]))
    with pytest.raises(ValueError, match="5 features"):
        model.predict(placed(X[:, :3]))
    assert model.score(placed(X), da.from_array(three, chunks=90)) == model.score(X, three)


@pytest.mark.thorough
def test_tuning_across_the_cluster():
    grid = {"C": [0.1, 10.0]}
    found = mercer.tune(mercer.SVC(kernel=KERNEL), placed(X), y, grid=grid, cv=3)
    assert found.best_params_ == mercer.tune(mercer.SVC(kernel=KERNEL), X, y, grid=grid, cv=3).best_params_


# --- odd inputs -------------------------------------------------------------------------------------------------------


def sneaky():
    """float32 in a chunk that is said to be float64."""
    parts = [(X[:100].astype(np.float32), 100), (X[100:], 300)]
    return da.concatenate([da.from_delayed(dask.delayed(rows), (n, 5), np.float64) for rows, n in parts])


ODD = {
    "unknown sizes": lambda: (placed(X)[placed(np.ones(400, dtype=bool))], y),
    "columns too": lambda: (da.from_array(X, chunks=(90, 2)), y),
    "mixed types": lambda: (da.concatenate([da.from_array(X[:100].astype(np.float32)), da.from_array(X[100:])]), y),
    "types that differ from what they say": lambda: (sneaky(), y),
    "sparse": lambda: (placed(X).map_blocks(sp.csr_array), y),
    "chunks of one class": lambda: (da.from_array(X[np.argsort(y)], chunks=(40, 5)), np.sort(y)),
    "persisted": lambda: (placed(X).persist(), y),
    "integers": lambda: (da.from_array(np.round(100 * X).astype(int), chunks=(90, 5)), y),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "unknown sizes" else pytest.mark.thorough) for name in ODD]
)
def test_odd_chunks_are_handled(name):
    given, target = ODD[name]()
    model = mercer.SVC(kernel=KERNEL).fit(given, target)
    assert model.converged_
    if name != "integers":
        assert (model.predict(NEW) == mercer.SVC(kernel=KERNEL).fit(X, y).predict(NEW)).mean() > 0.98
    assert engine_of(given).samples(given).dtype == np.float64


def test_what_is_no_number_is_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="column 'b' of X holds category"):
        as_rows(pandas.DataFrame({"a": [1.0], "b": pandas.Categorical(["x"])}))
    with pytest.raises(ValueError, match="masked"):
        mercer.SVC().fit(placed(X).map_blocks(np.ma.masked_array), y)
    with pytest.raises(ValueError, match=r"2\*\*53"):
        as_rows(np.array([[2**60]]))
    with pytest.raises(ValueError, match="holds complex"):
        mercer.SVC().fit(placed(X) * 1j, y)
    broken = X.copy()
    broken[200, 1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN: X\[200, 1\]"):
        mercer.SVC().fit(placed(broken), y)
    with pytest.raises(ValueError, match="1 dimensions"):
        mercer.SVC().fit(placed(t), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        mercer.SVC().fit(placed(X), y[:-1])


def test_frames_give_rows():
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcde"))
    frame = frames.from_pandas(table, npartitions=3)
    model = mercer.SVC(kernel=KERNEL).fit(frame, frames.from_pandas(pandas.Series(y), npartitions=2))
    np.testing.assert_array_equal(model.predict(frame).compute(), model.predict(X))
    holes = table.astype("Float64")
    holes.loc[7, "a"] = pandas.NA
    with pytest.raises(ValueError, match=r"contains NaN: X\[7, 0\]"):
        mercer.SVC().fit(frames.from_pandas(holes, npartitions=3), y)
    with pytest.raises(ValueError, match="column 'e' of X holds category"):
        mercer.SVC().fit(frame.assign(e=frame["e"].astype(str).astype("category")), y)


def test_frames_know_their_columns_by_name():
    """scikit-learn's rule for pandas frames, before anything is computed, and in every chunk."""
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcde"))
    frame, other = (frames.from_pandas(one, npartitions=3) for one in (table, table[list("bacde")]))
    here, model = mercer.SVC(kernel=KERNEL).fit(table, y), mercer.SVC(kernel=KERNEL).fit(frame, y)
    assert list(model.feature_names_in_) == list("abcde")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for fitted in (here, model):
            np.testing.assert_array_equal(fitted.predict(frame).compute(), here.predict(table))
            assert fitted.score(frame, y) == here.score(table, y)
            for wrong in (other, frame.rename(columns={"a": "z"})):
                with pytest.raises(ValueError, match="feature names should match"):
                    fitted.predict(wrong)
                with pytest.raises(ValueError, match="feature names should match"):
                    fitted.score(wrong, y)
    with pytest.warns(UserWarning, match="does not have valid feature names, but SVC was fitted with"):
        np.testing.assert_array_equal(model.predict(placed(X)).compute(), here.predict(table))
    with pytest.raises(TypeError, match="one is called 0"):
        mercer.SVC().fit(frame.rename(columns={"a": 0}), y)


@pytest.mark.thorough
def test_names_of_frames_keep_their_contract():
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    check_names_contract(
        lambda rows, names: frames.from_pandas(pandas.DataFrame(rows, columns=names), npartitions=2),
        X[:, :4],
        y,
        lambda answer: answer.compute(),
    )
    table = pandas.DataFrame(X, columns=list("abcde"))
    frame, model = frames.from_pandas(table, npartitions=3), mercer.SVC(kernel=KERNEL).fit(table, y)
    found = frame.map_partitions(lambda part: pandas.Series(model.predict(part), part.index), meta=(None, int))
    assert (frame.assign(found=found).compute()["found"].to_numpy() == model.predict(table)).all()  # as the page says


def test_rows_of_another_order_of_bytes():
    model = mercer.SVC(kernel=KERNEL).fit(placed(X.astype(">f8")), y)
    assert model.certificate_ == mercer.SVC(kernel=KERNEL).fit(placed(X), y).certificate_


def test_sums_are_added_and_taken_away():
    target, weight = X[:, 0] + 0.1 * t, np.where(np.arange(400) % 3, 1.0, 0.0)
    model, some = mercer.RLSRegressor(kernel="linear"), slice(150, 400)
    model.partial_fit(placed(X), da.from_array(target, chunks=130), da.from_array(weight, chunks=90))
    here = mercer.RLSRegressor(kernel="linear").fit(X, target, weight)
    np.testing.assert_allclose(model.predict(NEW), here.predict(NEW), rtol=1e-9)
    model.forget(placed(X[some], (1, 249)), target[some], weight[some])
    here.fit(X[:150], target[:150], weight[:150])
    np.testing.assert_allclose(model.predict(NEW), here.predict(NEW), rtol=1e-9)


def test_a_chunk_that_is_rows_already_has_one_key(client):
    parts = [da.from_delayed(dask.delayed(drawn, pure=False)(True), (200, 5), np.float64) for _ in range(2)]
    rows = da.concatenate(parts).persist()  # made by workers, and so aligned in their memory
    samples = ENGINE.samples(rows)
    assert {future.key for future in samples.chunks.futures} == {one.key for one in distributed.futures_of(rows)}
    frames, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = frames.from_pandas(pandas.DataFrame(X), npartitions=2)
    assert all(future.key.startswith("mercer-rows") for future in ENGINE.samples(frame).chunks.futures)


def drawn(pure):
    return np.random.default_rng(0 if pure else None).normal(size=(200, 5))


def test_chunks_that_are_refused_are_not_logged(capfd, client):
    client.run(lambda: logging.getLogger("distributed.worker").setLevel(logging.WARNING))
    with pytest.raises(ValueError, match="holds complex128"):
        ENGINE.samples(placed(X) * 1j)
    assert "Compute Failed" not in capfd.readouterr().err


def test_another_version_on_the_workers_is_refused(monkeypatch):
    monkeypatch.setattr(mercer, "__version__", "99.0")
    with pytest.raises(RuntimeError, match=r"this client has mercer 99.0, but a worker has"):
        ENGINE.samples(placed(X))


# --- workers, schedulers and clients that go away ---------------------------------------------------------------------


@pytest.mark.thorough
def test_a_worker_that_dies_is_survived(two_workers, client, monkeypatch):
    monkeypatch.setattr(chunked_gram, "OUTER_ROWS", 40)
    rows = placed(X, LAYOUTS["small"]).persist()
    before = mercer.SVC(kernel=KERNEL, tol=1e-6).fit(rows, y)
    end = killing(lambda: [w.pid for w in two_workers.workers.values() if w.pid], 0.3)
    after = mercer.SVC(kernel=KERNEL, tol=1e-6).fit(rows, y)
    end()
    assert after.certificate_ == before.certificate_


@pytest.mark.thorough
def test_tasks_that_died_too_often_are_asked_again(client, tmp_path):
    """With allowed-failures=1 the scheduler gives a task up after two deaths."""
    rows = engine_of(placed(X)).samples(placed(X, (200, 200)))

    def deadly(chunk, folder):
        count = len(os.listdir(folder))
        if count < 4:
            open(os.path.join(folder, str(time.time_ns())), "w").close()
            os._exit(1)
        return float(chunk.sum())

    found = rows.chunks.map(deadly, [(), None], (str(tmp_path),))
    assert found == [(0, pytest.approx(X[:200].sum()))]


def tasks(client, wanted):
    """mercer's tasks on the scheduler, once there are any as `wanted`, or none."""
    for _ in range(600):
        names = client.run_on_scheduler(lambda dask_scheduler: list(map(str, dask_scheduler.tasks)))
        found = [name for name in names if "mercer" in name]
        if bool(found) == wanted:
            break
        time.sleep(0.1)
    return found


def test_no_task_is_left_behind(client):
    rows = placed(X).persist()
    mercer.SVC(kernel=KERNEL).fit(rows, y)
    assert not tasks(client, wanted=False)


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="signals between processes as POSIX has them")
def test_ctrl_c_cancels_the_tasks(client):
    child = textwrap.dedent(
        f"""
        import dask.array as da, numpy as np, mercer
        from distributed import Client
        from mercer.places.chunked import gram
        gram.OUTER_ROWS = 500
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(6000, 8)), rng.integers(2, size=6000)
        with Client({client.scheduler.address!r}):
            model, rows = mercer.SVC(C=1e4, tol=1e-12), da.from_array(X, chunks=(1000, 8)).persist()
            try:
                model.fit(rows, y)
            except KeyboardInterrupt:
                print(hasattr(model, "certificate_"), flush=True)
            input()
            print(mercer.SVC().fit(rows[:100], y[:100]).converged_, flush=True)
        """
    )
    process = subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert tasks(client, wanted=True)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "False\n"
        assert not tasks(client, wanted=False)
        assert process.communicate("\n", timeout=200)[0] == "True\n"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.thorough
def test_a_client_that_is_gone_is_told(two_workers, client, monkeypatch):
    rows = engine_of(placed(X)).samples(placed(X))
    client.restart()
    assert mercer.SVC(kernel=KERNEL).fit(rows, y).converged_  # the scheduler forgot everything
    client.close()
    with pytest.raises(RuntimeError, match="the Dask client is closed"):
        mercer.SVC(kernel=KERNEL).fit(rows, y)
    with pytest.raises(RuntimeError, match=r"make a new Client|make one first"):
        mercer.SVC(kernel=KERNEL).fit(placed(X), y)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as empty, distributed.Client(empty):
        monkeypatch.setattr(cluster, "_GONE_SECONDS", 1.0)
        with pytest.raises(RuntimeError, match=r"has had no worker for \d+ s, and none is expected; start workers"):
            mercer.SVC(kernel=KERNEL).fit(placed(X), y)


@pytest.mark.thorough
@pytest.mark.parametrize("known", [True, False], ids=["the cluster", "its address"])
def test_workers_that_come_back_late_are_waited_for(known, monkeypatch):
    """A cluster gives up a worker that is late; a nanny elsewhere starts its worker again. Neither means none comes."""
    monkeypatch.setattr(cluster, "_GONE_SECONDS", 0.1)
    monkeypatch.setattr(cluster, "_LOOK_SECONDS", 2.0 if known else 0.1)  # the cluster needs a moment to ask again
    late = {"distributed.deploy.lost-worker-timeout": "50ms" if known else "1h"}
    with (
        dask.config.set(late),
        distributed.LocalCluster(n_workers=1, dashboard_address=None) as made,
        distributed.Client(made if known else made.scheduler_address),
    ):
        rows = engine_of(placed(X)).samples(placed(X))
        before = rows.chunks.map(lately, [(), None, None], (5.0,))  # so long that it looks at the workers
        end = killing(lambda: [one.pid for one in made.workers.values()], 0.5)
        assert rows.chunks.map(lately, [(), None, None], (5.0,)) == before
        assert end()


def lately(chunk, seconds):
    time.sleep(seconds)
    return float(chunk.sum())


@pytest.mark.thorough
def test_the_command_trains_a_folder_there(two_workers, tmp_path, capsys):
    folder = tmp_path / "rows"
    folder.mkdir()
    for k, some in enumerate((slice(0, 150), slice(150, 400))):
        write_libsvm(X[some], y[some], folder / f"part{k}.svm")
    for there in ([], ["--cluster", two_workers.scheduler_address]):
        assert main(["train", str(folder), str(tmp_path / "m.mercer"), "--gamma", "0.3", "-q", *there]) == 0
        model = mercer.load(tmp_path / "m.mercer")
        here = mercer.SVC(kernel="rbf", gamma=0.3).fit(sp.csr_array(X), y)
        assert abs(model.certificate_.dual - here.certificate_.dual) <= model.certificate_.gap + here.certificate_.gap
    with pytest.raises(SystemExit):
        main(["train", str(tmp_path), str(tmp_path / "m.mercer"), "--folds", "3"])
    assert "--folds is for data in memory, not for a folder" in capsys.readouterr().err


@pytest.mark.thorough
def test_arrays_as_expressions(two_workers):
    """The mode of Dask's arrays is chosen when they are imported."""
    child = textwrap.dedent(
        f"""
        import dask
        dask.config.set({{"array.query-planning": True}})
        import dask.array as da, numpy as np, mercer
        from distributed import Client
        with Client({two_workers.scheduler_address!r}):
            rng = np.random.default_rng(0)
            X = rng.normal(size=(200, 3))
            y = (X[:, 0] > 0).astype(int)
            model = mercer.SVC().fit(da.from_array(X, chunks=(70, 3)), da.from_array(y, chunks=50))
            here = mercer.SVC().fit(X, y)
            assert abs(model.certificate_.dual - here.certificate_.dual) < 1e-6
            answer = model.predict(da.from_array(X, chunks=(70, 3)))
            assert answer.chunks == ((70, 70, 60),)
            assert (answer.compute() == here.predict(X)).all()
        """
    )
    subprocess.run([sys.executable, "-c", child], check=True, timeout=120)
