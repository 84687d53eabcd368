"""Workers and schedulers killed during a fit: the same bits, or a clear error and a file."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from distributed_data import ranking
from processes import pids, processes

import linrank
import linrank.dask
from linrank.dask.checkpoints import Keeper
from linrank.errors import CheckpointError, ClusterError

N_PARTS = 6
pytestmark = pytest.mark.time_limit(600)  # a process that starts anew takes long on a busy machine


def learnable():
    """Labels that follow from the rows, so that the solver has a way to go."""
    data = ranking(400, seed=1)
    noise = np.random.default_rng(0).normal(size=len(data.y))
    return data._replace(y=np.digitize(data.X @ [3.0, 1.0, 0.3, 0.1] + 0.3 * noise, [-2.0, 2.0]))


DATA = learnable()


def fitted(client, data=DATA, n_parts=N_PARTS, resume=False, **options):
    ranker = linrank.dask.RankSVM(**{"C": 10.0, "tol": 1e-12, "client": client, **options})
    return data.arrays(n_parts).fit(ranker, resume=resume)


@pytest.fixture(scope="module")
def undisturbed(session_client):
    """Coefficients without a kill, and the seconds that they took."""
    fitted(session_client)  # imports
    started = time.monotonic()
    coef = fitted(session_client).coef_
    return coef, time.monotonic() - started


@pytest.mark.parametrize("k", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 20))])
def test_a_worker_killed_at_any_moment_changes_no_bit(client, undisturbed, k):
    expected, seconds = undisturbed
    running = pids(client)
    share = float(np.random.default_rng(k).uniform(0.05, 0.95))
    victim = running[k % len(running)]
    killer = threading.Timer(share * seconds, os.kill, (victim, signal.SIGKILL))
    killer.start()
    try:
        assert np.array_equal(fitted(client).coef_, expected)
    finally:
        killer.join()


@pytest.mark.slow
def test_both_workers_killed_between_two_iterations_change_no_bit(client, undisturbed):
    killed = []

    def kill(state):
        if state["n_iter"] == 1:
            killed.extend(pids(client))
            for victim in killed:
                os.kill(victim, signal.SIGKILL)

    ranker = fitted(client, callback=kill)
    assert np.array_equal(ranker.coef_, undisturbed[0])
    # Whether a round was under way when the loss was noticed, and had to be repeated, is chance.
    assert len(killed) == 2
    assert not set(killed) & set(pids(client))


@pytest.mark.slow
def test_a_killed_scheduler_leaves_a_checkpoint_to_go_on_from(tmp_path, client, undisturbed):
    file = tmp_path / "weights.ckpt"
    times = []
    with processes(tmp_path, n_workers=1) as (running, doomed):

        def kill(state):
            if state["n_iter"] == 1:
                times.append(time.monotonic())
                running.scheduler.kill()

        advice = r"is lost.*The weights of iteration 1 are in .*weights\.ckpt.*resume=True"
        with pytest.raises(ClusterError, match=advice):
            fitted(doomed, checkpoint=file, callback=kill)
        assert time.monotonic() - times[0] < 30.0
    seen = []
    options = {"checkpoint": file, "callback": lambda state: seen.append(state["w"])}
    # Other partitions of the same data.
    ranker = fitted(client, n_parts=N_PARTS + 3, resume=True, **options)
    assert seen[0].any()  # it began at the weights of the file
    scale = np.abs(undisturbed[0]).max()
    np.testing.assert_allclose(ranker.coef_, undisturbed[0], rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        (None, r"is lost\. Nothing was saved.*checkpoint=FILE"),
        ("w.ckpt", r"is lost\. No iteration was finished, and .*w\.ckpt was not written; fit anew"),
    ],
)
def test_the_error_says_when_nothing_was_saved(tmp_path, name, advice):
    keeper = Keeper(None if name is None else tmp_path / name, False, {})
    with pytest.raises(ClusterError, match=advice), keeper.advising():
        raise ClusterError("the connection is lost")


@pytest.fixture(scope="module")
def kept(session_client, tmp_path_factory):
    """The checkpoint of a fit that was ended after one iteration."""
    file = tmp_path_factory.mktemp("kept") / "weights.ckpt"
    fitted(session_client, checkpoint=file, callback=lambda state: state["n_iter"] == 1)
    return file


@pytest.mark.parametrize(
    ("data", "change", "message"),
    [
        (DATA, {"C": 20.0}, r"is of a fit with C=10\.0, this one has 20\.0"),
        (DATA, {"loss": "hinge", "tol": 1e-2}, "is of a fit with loss='squared_hinge'"),
        (DATA, {"scale": "standard"}, "is of a fit with scale='auto', this one has 'standard'"),
        (DATA, {"positive": True}, "is of a fit with bounds=None"),
        (ranking(50), {}, r"is of a fit with n_queries=400, this one has 50"),
        (DATA._replace(X=DATA.X[::-1]), {}, "the objective at its weights was"),  # of the same size
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(client, kept, data, change, message):
    with pytest.raises(CheckpointError, match=message):
        fitted(client, data, 2, resume=True, checkpoint=kept, **change)


def test_a_checkpoint_needs_a_file_that_can_be_written(client, tmp_path):
    (tmp_path / "other").write_bytes(b"no checkpoint at all")
    for name, resume, error, message in (
        ("nowhere/weights.ckpt", False, FileNotFoundError, "there is no folder"),
        ("other", True, CheckpointError, "is no checkpoint of linrank"),
    ):
        with pytest.raises(error, match=message):
            fitted(client, resume=resume, checkpoint=tmp_path / name)
    with pytest.raises(ValueError, match="resume=True needs checkpoint="):
        fitted(client, resume=True)


def set_paused(client, is_paused, workers=None):
    """What Dask does to workers whose memory is nearly full."""

    def set_status(dask_worker):  # goes to them as it is: they know no module of tests
        from distributed.core import Status

        # Else it would look at its memory, and go on.
        dask_worker.memory_manager.memory_pause_fraction = False if is_paused else 0.8
        dask_worker.status = Status.paused if is_paused else Status.running

    client.run(set_status, workers=workers)


@pytest.mark.slow
def test_a_worker_that_is_paused_changes_no_bit(client, undisturbed):
    first = min(client.scheduler_info(n_workers=-1)["workers"])

    def pause(state):
        if state["n_iter"] == 1:
            set_paused(client, True, [first])

    try:
        assert np.array_equal(fitted(client, callback=pause).coef_, undisturbed[0])
    finally:
        set_paused(client, False)


def test_workers_that_are_all_paused_are_an_error_that_says_so(client, undisturbed):
    def pause(state):
        if state["n_iter"] == 1:
            set_paused(client, True)

    try:
        with pytest.raises(ClusterError, match=r"all 2 workers.*paused for patience=3 s"):
            fitted(client, callback=pause, patience=3.0)
    finally:
        set_paused(client, False)
    assert np.array_equal(fitted(client).coef_, undisturbed[0])
