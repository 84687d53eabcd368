"""Files that are whole or not there: one way to write, for many writers, names and ends."""

import errno
import itertools
import multiprocessing
import os
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import linrank
from linrank import Dataset, LinearModel, Run, write_run
from linrank.cli.files import write_lines
from linrank.export.artefact import Artefact
from linrank.io.write import write
from linrank.stochastic import checkpoint
from linrank.system import durable
from linrank.system.durable import Scratch, check_place, replacing, settle, sweep

DATA = Dataset.of(np.arange(12.0).reshape(6, 2), [0, 1, 2] * 2, qid=[1, 1, 1, 2, 2, 2])
RUN = Run.of([1, 1], ["a", "b"], [0.5, 0.25])
ONE = Artefact("engine", {"model.json": b"{}"}, "Put model.json there.\n")
# All that writes one file.
WRITERS = {
    "model": lambda path: LinearModel([1.0, 2.0]).save(path),
    "scores": lambda path: write_lines(os.fspath(path), ["1\n", "2\n"]),
    "checkpoint": lambda path: checkpoint.save(path, {"w": np.ones(3), "n": 1}),
    "run": lambda path: write_run(path, RUN),
    "artefact": lambda path: ONE.save(path),
    **{
        name: lambda path, name=name: write(DATA, path, name, overwrite=True)
        for name in ("svmlight", "csv", "tsv", "parquet", "arrow")
    },
}
every_writer = pytest.mark.parametrize("kind", WRITERS)


def put(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


def left(folder):
    """What is in a folder beside what was meant to be there."""
    return sorted(name for name in os.listdir(folder) if name.startswith(".linrank-"))


# ---- one writer ---------------------------------------------------------------------------------


@every_writer
def test_every_writer_leaves_one_file_forced_to_the_disk(tmp_path, monkeypatch, kind):
    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda d: (synced.append(os.fstat(d).st_ino), sync(d))[1])
    path = tmp_path / "out"
    WRITERS[kind](path)
    assert left(tmp_path) == []
    assert os.listdir(tmp_path) == ["out"] or kind == "artefact"  # which has instructions beside
    assert path.stat().st_ino in synced
    assert tmp_path.stat().st_ino in synced


@every_writer
def test_a_fault_leaves_the_old_file(tmp_path, monkeypatch, kind):
    path = tmp_path / "out"
    path.write_text("old")

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="Input/output error") as caught:
        WRITERS[kind](path)
    named = os.fspath(caught.value.filename)
    assert named == str(path) or (kind, named) == ("artefact", str(tmp_path / "out.README.txt"))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


@every_writer
def test_names_of_255_bytes_can_be_written_and_longer_ones_are_named(tmp_path, kind):
    """The temporary name has nothing of them."""
    path = tmp_path / ("x" * 250 + ".json")
    WRITERS[kind](path)
    assert path.stat().st_size > 0
    path = tmp_path / ("x" * 251 + ".json")
    with pytest.raises(OSError, match="File name too long") as caught:
        WRITERS[kind](path)
    assert os.fspath(caught.value.filename) == str(path)


def test_a_store_with_a_name_of_255_bytes(tmp_path):
    path = tmp_path / ("x" * 255)
    linrank.Store.of(path, DATA)
    assert linrank.Store.of(path, DATA, overwrite=True).n_rows == 6
    with pytest.raises(OSError, match="File name too long") as caught:
        linrank.Store.of(f"{path}x", DATA)
    assert caught.value.filename == f"{path}x"
    assert os.listdir(tmp_path) == ["x" * 255]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
@every_writer
def test_a_full_disk_is_told_by_the_name_that_was_given(kind):
    with pytest.raises(OSError, match="No space left on device while the file was") as caught:
        WRITERS[kind]("/dev/full")
    assert caught.value.filename == "/dev/full"


def test_a_random_name_that_someone_has_taken_is_not_followed(tmp_path, monkeypatch):
    """Whoever could foresee it would have others write where he wants."""
    monkeypatch.setattr(os, "urandom", lambda n: bytes(n))
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".linrank-{durable._machine()}-{'0' * 16}.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError) as caught:
        put(tmp_path / "out")
    assert caught.value.filename == str(tmp_path / "out")
    assert victim.read_text() == "precious"


def test_files_that_belong_together_are_settled_before_one_is_renamed(tmp_path, monkeypatch):
    order = []

    def note(name, call, *args):
        order.append(name)
        return call(*args)

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, partial(note, name, getattr(os, name)))
    with replacing(tmp_path / "a") as first, replacing(tmp_path / "b") as second:
        first.write(b"1")
        second.write(b"2")
        settle(first, second)
    assert order.index("replace") == 3  # both, then the second once more


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        check_place(tmp_path)
    for path in (tmp_path / "none" / "x", tmp_path / "file" / "x"):
        with pytest.raises(FileNotFoundError, match=r"cannot be written: there is no folder .*"):
            check_place(path)
    check_place(tmp_path / "file")
    check_place("/dev/null")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folders_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="cannot be written: permission denied"):
        check_place(tmp_path / "x")


# ---- many writers -------------------------------------------------------------------------------


FORK = multiprocessing.get_context("fork")


def put_often(path, content):
    for _ in range(40):
        put(path, content)


def test_processes_that_write_one_path_leave_one_whole_file(tmp_path):
    path, wanted = tmp_path / "out", [bytes([65 + i]) * 300_000 for i in range(4)]
    put(path, wanted[0])
    writers = [FORK.Process(target=put_often, args=(path, content)) for content in wanted]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert path.read_bytes() in wanted
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["same.csv", "same.parquet", "same.txt.gz"])
def test_conversions_to_one_path_leave_one_whole_file(tmp_path, name):
    """Temporaries were named by the process, so that threads wrote into one file."""
    path, wanted = tmp_path / name, []

    def save(n):
        linrank.convert(DATA.select(slice(0, n)), path, overwrite=True)

    for n in (3, 4, 5, 6):
        save(n)
        wanted.append(path.read_bytes())
    for _ in range(10):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(save, (3, 4, 5, 6)))
        assert path.read_bytes() in wanted
    assert os.listdir(tmp_path) == [name]


def test_stores_written_to_one_path_leave_one_whole_store(tmp_path):
    path = tmp_path / "store"
    refused = f"{path} is being written by another process; wait for it, or name another folder"

    def save(n):
        try:
            linrank.Store.of(path, DATA.select(slice(0, n)), overwrite=True)
        except FileExistsError as error:
            return str(error) == refused
        return "written"

    for _ in range(5):
        with ThreadPoolExecutor(4) as pool:
            outcomes = list(pool.map(save, (3, 4, 5, 6)))
        linrank.Store(path).verify()
        assert os.listdir(tmp_path) == ["store"]
        assert "written" in outcomes
        assert all(outcomes)


# ---- what the dead leave ------------------------------------------------------------------------


def hold(path, has_begun, goes_on):
    """Write half of a file beside a scratch folder, and wait; or die, where there is nothing to
    wait for."""
    with Scratch(str(path.parent)) as own, replacing(path) as file:
        put(os.path.join(own.path, "big"), b"x" * 100)
        file.write(b"half")
        file.flush()
        if goes_on is None:
            os.kill(os.getpid(), signal.SIGKILL)
        has_begun.set()
        goes_on.wait()


def test_what_the_dead_left_is_removed_and_nothing_of_the_living(tmp_path):
    path, has_begun, goes_on = tmp_path / "out", FORK.Event(), FORK.Event()
    living = FORK.Process(target=hold, args=(path, has_begun, goes_on))
    living.start()
    assert has_begun.wait(300)
    of_the_living = left(tmp_path)
    assert sorted(os.path.splitext(name)[1] for name in of_the_living) == [".dir", ".lock", ".tmp"]
    dead = FORK.Process(target=hold, args=(path, has_begun, None))
    dead.start()
    dead.join()
    assert dead.exitcode == -signal.SIGKILL
    assert len(left(tmp_path)) == 6
    put(tmp_path / "another")  # anything that is written there
    assert left(tmp_path) == of_the_living
    goes_on.set()
    living.join()
    assert living.exitcode == 0
    assert sorted(os.listdir(tmp_path)) == ["another", "out"]
    assert path.read_bytes() == b"half"


def plant(folder, machine, kind="tmp", age=0.0):
    path = folder / f".linrank-{machine}-{os.urandom(8).hex()}.{kind}"
    path.write_text("left")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_files_of_another_machine_must_have_been_left_alone_for_a_day(tmp_path):
    """Its locks may not be seen here, and its clock may be another."""
    ages = (3600, 90_000, -90_000)
    planted = [plant(tmp_path, "0" * 8, age=age) for age in ages]
    planted.append(plant(tmp_path, durable._machine()))
    orphan = tmp_path / f".linrank-{durable._machine()}-{'0' * 16}.dir"  # whose lock is gone
    (orphan / "deep").mkdir(parents=True)
    sweep(str(tmp_path))
    assert [p.exists() for p in (*planted, orphan)] == [True, False, True, False, False]
    lock = plant(tmp_path, "0" * 8, "lock", age=90_000)
    folder = lock.with_suffix(".dir")
    folder.mkdir()
    (folder / "1.tmp").write_text("still written to")
    sweep(str(tmp_path))
    assert folder.exists()
    os.utime(folder / "1.tmp", (0, 0))
    sweep(str(tmp_path))
    assert not folder.exists()
    assert not lock.exists()


def test_nothing_is_removed_where_there_are_no_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(durable, "_lock", lambda descriptor: None)
    path, given = plant(tmp_path, durable._machine()), {"token": "0123456789abcdef"}
    put(tmp_path / "out")
    with Scratch(str(tmp_path), **given) as first, Scratch(str(tmp_path), **given) as other:
        assert first.path != other.path  # nobody shares a folder that cannot be locked
    assert sorted(os.listdir(tmp_path)) == sorted(["out", path.name])


def test_other_files_links_and_pipes_are_left_alone(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "mine").touch()
    machine = durable._machine()
    names = [f".linrank-{machine}-{'0' * 16}.dir", f".linrank-{machine}-{'1' * 16}.tmp"]
    for name in names:
        (tmp_path / name).symlink_to(victim)
    os.mkfifo(tmp_path / f".linrank-{machine}-{'2' * 16}.tmp")
    (tmp_path / ".linrank-notes.tmp").touch()
    before = sorted(os.listdir(tmp_path))
    sweep(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == before
    assert (victim / "mine").exists()
    sweep(str(tmp_path / "none"))


def test_a_nameless_file_that_a_kill_left_its_name_is_swept(tmp_path, monkeypatch):
    with durable.nameless_file(str(tmp_path)) as file:
        assert os.listdir(tmp_path) == []
        file.write(b"x")
        assert file.seek(0) == 0
        assert file.read() == b"x"
    with monkeypatch.context() as patch:
        patch.setattr(durable.os, "unlink", lambda name: None)  # as if it were killed before
        durable.nameless_file(str(tmp_path)).close()
    assert len(os.listdir(tmp_path)) == 1
    sweep(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_sweeps_and_writers_do_not_disturb_each_other(tmp_path):
    """A file is locked a moment after it was made; whoever loses it in between makes another."""
    stop = threading.Event()

    def clean(_):
        while not stop.is_set():
            sweep(str(tmp_path))

    def work(i):
        for k in range(25):
            put(tmp_path / f"out{i}", b"%d" % k)
            with Scratch(str(tmp_path)) as own:
                put(os.path.join(own.path, "x"))

    with ThreadPoolExecutor(5) as pool:
        cleaners = pool.map(clean, range(2))
        try:
            list(pool.map(work, range(3)))
        finally:
            stop.set()
        list(cleaners)
    sweep(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["out0", "out1", "out2"]
    assert {(tmp_path / f"out{i}").read_bytes() for i in range(3)} == {b"24"}


def test_a_file_that_a_sweep_took_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    lock, calls = durable._lock, []

    def late(descriptor):
        calls.append(descriptor)
        if len(calls) == 1:
            monkeypatch.setattr(durable, "_lock", lock)
            sweep(str(tmp_path))
        return lock(descriptor)

    monkeypatch.setattr(durable, "_lock", late)
    made = []
    os.close(durable.new_file(str(tmp_path), made))
    assert (len(calls), len(made)) == (1, 2)
    assert os.listdir(tmp_path) == [os.path.basename(made[-1])]


def test_a_signal_that_comes_when_a_file_was_just_made(tmp_path, monkeypatch):
    """Before its maker knows that it is there."""
    call = os.open

    def struck(*args):
        os.close(call(*args))
        if args[1] & os.O_CREAT:
            raise KeyboardInterrupt
        return call(*args)

    monkeypatch.setattr(os, "open", struck)
    for make in (lambda: put(tmp_path / "out"), lambda: Scratch(str(tmp_path))):
        with pytest.raises(KeyboardInterrupt):
            make()
        assert os.listdir(tmp_path) == []


def test_who_waits_for_a_lock_gets_it(tmp_path):
    order = []

    def enter(i):
        with durable.one_at_a_time(tmp_path / "x"):
            order.append(i)
            time.sleep(0.01)
            order.append(i)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(enter, range(8)))
    assert all(order[k] == order[k + 1] for k in range(0, 16, 2))
    assert os.listdir(tmp_path) == []


def test_file_systems_on_which_a_file_does_not_keep_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, "samestat", lambda *_: False)
    linrank.Store.of(tmp_path / "store", DATA)
    with durable.one_at_a_time(tmp_path / "x"):
        put(tmp_path / "x")
    assert linrank.Store(tmp_path / "store").n_rows == 6


# ---- killed at every step -----------------------------------------------------------------------

STEPS = ("open", "mkdir", "fsync", "replace", "rename", "unlink", "rmdir", "close")


def dies_at(step, action):
    """Run an action in a process that is killed before its n-th call of the system; if it was."""

    def act():
        calls = itertools.count(1)

        def counted(call, *args, **kwargs):
            if next(calls) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        for name in STEPS:
            setattr(os, name, partial(counted, getattr(os, name)))
        durable._swap = partial(counted, durable._swap)
        action()

    child = FORK.Process(target=act)
    child.start()
    child.join()
    return child.exitcode == -signal.SIGKILL


def save_store(path, k):
    linrank.Store.of(path, DATA.select(slice(0, 3 + k)), overwrite=True)


def read_store(path):
    store = linrank.Store(path)
    store.verify()
    return store.n_rows


CASES = {
    "file": (lambda path, k: put(path, b"%d" % k), lambda path: path.read_bytes()),
    "checkpoint": (
        lambda path, k: checkpoint.save(path, {"w": np.full(3, k)}),
        lambda path: np.asarray(checkpoint.load(path)["w"])[0],
    ),
    "model": (
        lambda path, k: LinearModel([float(k)]).save(path),
        lambda path: linrank.load_model(path).coef[0],
    ),
    "store": (save_store, read_store),
    "store by two renames": (save_store, read_store),
    "artefact in a folder": (
        lambda path, k: Artefact("e", {"a": b"%d" % k, "b": b"%d" % k}, "Do.\n").save(path),
        lambda path: {p.name: p.read_bytes() for p in path.iterdir() if p.name[0] != "."},
    ),
}


@pytest.mark.parametrize("has_old", [True, False], ids=["over an old one", "new"])
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[] if k == "file" else pytest.mark.slow) for k in CASES]
)
def test_killed_at_every_step(tmp_path, monkeypatch, kind, has_old):
    """What is there is the old or the new one, whole; the next to write leaves nothing else."""
    save, read = CASES[kind]
    if kind == "store by two renames":
        monkeypatch.setattr(durable, "_swap", lambda first, second: False)
    folder, path = tmp_path / "here", tmp_path / "here" / "out"
    folder.mkdir()
    save(path, 2)
    new, names = read(path), sorted(os.listdir(folder))
    save(path, 1)
    old, n_steps = read(path), 0
    allowed = [old, new] if has_old else [new]
    if kind == "artefact in a folder" and has_old:  # whose files are replaced one by one
        allowed += [{**new, "a": old["a"]}, {**old, "b": new["b"]}]
        allowed += [{**old, "a": new["a"]}, {**new, "b": old["b"]}]
    while True:
        n_steps += 1
        if has_old:
            save(path, 1)
        else:
            path.unlink() if path.is_file() else shutil.rmtree(path)
        if not dies_at(n_steps, lambda: save(path, 2)):
            break
        if has_old or os.path.lexists(path):
            assert read(path) in allowed, n_steps
        save(path, 2)
        assert read(path) == new
        assert len(os.listdir(folder)) == len(names), os.listdir(folder)
        assert left(folder) == []
    assert n_steps > 5
