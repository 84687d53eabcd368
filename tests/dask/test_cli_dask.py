"""``linrank train STORE --dask``: the model of memory, options that do not fit, clear errors."""

import logging
import os
import signal
import time

import distributed
import numpy as np
import psutil
import pytest
from distributed_data import ranking

import linrank
from cli_files import start
from linrank.cli.main import main
from linrank.dask import clients
from linrank.dask.clients import cluster_at
from linrank.io.store.store import Store

ROOT = os.path.dirname(os.path.dirname(linrank.__file__))
ENVIRONMENT = {**os.environ, "PYTHONPATH": ROOT}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "store"
    data = ranking(40, seed=2)
    Store.write(path, data.X, data.y, qid=data.qid, chunk_bytes=800)
    return path


def train(*arguments):
    return main(["train", *map(str, arguments), "--quiet"])


@pytest.mark.parametrize(
    "options",
    [
        ["-c", "0.3", "--scale", "standard"],
        ["--method", "domination", "--penalty", "l2", "--alpha", "0.3"],
    ],
    ids=["ranksvm", "domination"],
)
def test_a_cluster_trains_the_model_of_memory(cluster, store, tmp_path, cli, options):
    here, there, kept = (tmp_path / name for name in ("here.json", "there.json", "weights.ckpt"))
    assert train(store, here, *options, "-e", "1e-12", "--memory-limit", "64GB") == 0
    address = cluster
    command = ["train", store, there, *options, "-e", "1e-12", "--dask", address, "--json"]
    report = cli(*map(str, command), "--checkpoint", str(kept)).json
    assert report["data"]["dask"] == address
    assert kept.exists()
    one, other = linrank.load_model(here), linrank.load_model(there)
    np.testing.assert_allclose(other.coef, one.coef, rtol=1e-10)
    assert other.training.keys() == one.training.keys()


def test_a_checkpoint_is_kept_and_resumed(cluster, store, tmp_path, capsys, cli):
    file, model = tmp_path / "weights.ckpt", tmp_path / "model.json"
    asked = [store, model, "-e", "1e-12", "--dask", cluster]
    assert train(*asked, "--checkpoint", file, "--max-iter", 1) in (0, 3)
    assert file.exists()
    assert "resumed" in cli("train", *map(str, asked), "--checkpoint", file, "--resume").err
    assert train(*asked, "-c", "2", "--checkpoint", file, "--resume") == 1
    assert "is of a fit with C='auto', this one has 2.0" in capsys.readouterr().err


@pytest.mark.time_limit(600)
def test_workers_of_this_machine(store, tmp_path):
    """In a process of its own: workers are started by one that runs the command."""
    own = {"cwd": tmp_path, "env": ENVIRONMENT}
    process = start("train", store, "model.json", "--dask", "local:2", **own)
    told = process.communicate()[1]
    assert process.returncode == 0, told
    assert "local:2: 2 workers" in told
    assert "Traceback" not in told
    assert "Warning" not in told  # a port that others have taken is no matter of ours
    assert linrank.load_model(tmp_path / "model.json").training["n_pairs"] > 0


@pytest.mark.parametrize(
    "options",
    [["--Cs", "0.01,0.1"], ["--method", "domination", "--penalty", "l2", "--alphas", "1,10"]],
    ids=["ranksvm", "domination"],
)
def test_a_cluster_chooses_what_passes_choose(cluster, store, options, cli):
    found = {}
    for place in (["--memory-limit", "1GB"], ["--dask", cluster]):
        arguments = ["tune", str(store), *options, "--folds", "3", "--json", "-q", *place]
        found[place[0]] = cli(*arguments).json
    one, other = found.values()
    np.testing.assert_allclose(other["path"]["scores"], one["path"]["scores"], atol=1e-3)
    np.testing.assert_allclose(other["path"]["objectives"], one["path"]["objectives"], rtol=1e-3)
    err = cli("tune", store, *options, "--patience", "5", status=2).err
    assert "--patience needs --dask" in err


@pytest.mark.parametrize(
    ("status", "options", "message"),
    [
        (2, "--resume", "--resume needs --dask"),
        (2, "--patience 5", "--patience needs --dask"),
        (2, "--dask local:0", "give a number of workers"),
        (2, "--dask local:x", "give a number of workers"),
        (2, "--dask local:1 --resume", "--resume needs --checkpoint"),
        (2, "--dask local:1 --solver bundle", "needs --solver newton"),
        (2, "--dask local:1 --pairs closest", "excludes --pairs closest"),
        (2, "--dask local:1 --memory-limit 1GB", "excludes --memory-limit"),
        (2, "--dask local:1 --method kernel", "--dask belongs to --method ranksvm or domination"),
        (2, "--dask local:1 --checkpoint -", "needs a file"),
        (2, "--dask local:1 --checkpoint {model}", "MODEL and --checkpoint are one file"),
        (1, "--dask local:1 --method domination", "use penalty='l2'"),
        (1, "--dask tcp://127.0.0.1:9", "no Dask scheduler answers at 'tcp://127.0.0.1:9'"),
        (1, "--dask local:1 --checkpoint {notes}", "no checkpoint of linrank, and would be wri"),
    ],
)
def test_what_does_not_fit_is_refused(store, tmp_path, monkeypatch, status, options, message, cli):
    monkeypatch.setattr("linrank.dask.clients._TIMEOUT", 0.5)
    model, notes = tmp_path / "model.json", tmp_path / "notes.txt"
    notes.write_text("mine")
    options = options.format(model=model, notes=notes).split()
    assert message in cli("train", str(store), str(model), *options, status=status).err
    assert notes.read_text() == "mine"
    assert not model.exists()


def test_text_is_refused_with_the_way_to_a_store(tmp_path, capsys):
    text = tmp_path / "train.txt"
    text.write_text("1 qid:1 1:1\n0 qid:1 1:0\n")
    assert train(text, tmp_path / "model.json", "--dask", "local:2") == 2
    assert f"linrank convert {text} -o STORE" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
@pytest.mark.time_limit(600)
def test_a_worker_that_is_killed_while_the_cluster_starts(store, tmp_path):
    """Dask gives up the whole cluster then; the command starts it again."""
    own = {"cwd": tmp_path, "env": ENVIRONMENT}
    assert start("train", store, "plain.json", "--dask", "local:2", "-q", **own).wait() == 0
    process = start("train", store, "model.json", "--dask", "local:2", **own)
    workers = []
    while not workers and process.poll() is None:
        time.sleep(0.01)
        children = psutil.Process(process.pid).children(recursive=True)
        workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
    workers[0].kill()
    _, told = process.communicate()
    assert process.returncode == 0, told
    assert "Traceback" not in told
    one, other = (linrank.load_model(tmp_path / name).coef for name in ("plain.json", "model.json"))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_failures", [2, 3])
def test_a_cluster_is_started_three_times_at_most(n_failures, store, tmp_path, monkeypatch, capsys):
    failures = [RuntimeError("Nanny failed to start.")] * n_failures
    start = distributed.LocalCluster

    def fail_first(**options):
        if failures:
            raise failures.pop()
        return start(**{**options, "processes": False, "preload": []})

    monkeypatch.setattr(clients, "LocalCluster", fail_first)
    status = train(store, tmp_path / "model.json", "--dask", "local:1")
    told = capsys.readouterr().err
    assert (status, failures) == (n_failures // 3, [])
    assert told.count("\n") == n_failures // 3
    if status:
        assert "a worker of local:1 ended while it started, 3 times in a row" in told


@pytest.mark.time_limit(600)
def test_ctrl_c_on_a_terminal_shows_nothing_of_the_workers(tmp_path):
    """A terminal sends it to the workers too, which would each print where they were."""
    data = ranking(3000, seed=3)
    Store.write(tmp_path / "store", data.X, data.y, qid=data.qid, chunk_bytes=20_000)
    kept = tmp_path / "weights.ckpt"
    options = ["--dask", "local:2", "--loss", "hinge", "-e", "1e-12", "--checkpoint", kept]
    own = {"cwd": tmp_path, "env": ENVIRONMENT, "start_new_session": True}
    process = start("train", "store", "model.json", *options, **own)
    while not kept.exists() and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, seen = process.communicate(timeout=300)
    assert process.returncode == 130, seen
    assert seen.splitlines()[2:] == ["", "linrank: interrupted"]
    assert not (tmp_path / "model.json").exists()


def test_what_dask_logs_is_not_shown(cluster):
    """A lost scheduler is told by one line, not by the client's traceback."""
    noisy = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = [logger.level for logger in noisy]
    noisy[1].setLevel(logging.WARNING)  # as Dask configures it
    try:
        with cluster_at(cluster):
            assert not noisy[1].isEnabledFor(logging.ERROR)
    finally:
        for logger, level in zip(noisy, before, strict=True):
            logger.setLevel(level)
