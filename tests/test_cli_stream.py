"""``linrank train --method sgd --stream``: files and pipes, checkpoints, signals, memory."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from linrank import load, load_model
from linrank.cli.main import main
from linrank.cli.stream import MB, memory_plan
from linrank.stochastic.descent import Learner
from linrank.stochastic.streaming import StreamTrainer

COMMAND = [sys.executable, "-m", "linrank", "train"]
STREAM = ["--method", "sgd", "--stream"]


def stream_text(n_rows, n_features=10, seed=0):
    """Rows of queries of ten, in which the first feature counts."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 1000, (n_rows, n_features))
    labels = (x[:, 0] + rng.integers(0, 500, n_rows)) // 400
    return "".join(
        f"{y} qid:{i // 10} " + " ".join(f"{j}:{v}e-3" for j, v in enumerate(row, 1)) + "\n"
        for i, (row, y) in enumerate(zip(x.tolist(), labels.tolist(), strict=True))
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("stream") / "data.txt"
    path.write_text(stream_text(30_000))
    return str(path)


def train(data, model, *options):
    return main(["train", data, str(model), *STREAM, "-q", *options])


def coef(model):
    return load_model(model).coef


def test_a_file_is_learnt_as_the_trainer_learns_it(data, tmp_path, cli):
    model = tmp_path / "m"
    out = cli("train", data, model, *STREAM, "--alpha", "1e-3", "--json")
    report = json.loads(out.out)
    assert report["data"]["rows"] == 30_000
    assert report["training"]["steps"] == load_model(model).training["n_steps"] == 120_000
    assert report["data"]["batches_without_pairs"] == 0
    for word in (
        "memory    150 MB at most, beside the program = ",
        "buffer",
        "30,000 rows",
        "mean loss",
    ):
        assert word in out.err
    rows = load(data, zero_based=True)
    trainer = StreamTrainer([Learner("pegasos", 1e-3)], memory=memory_plan(150 * MB)["rows"])
    with open(data, "rb") as file:  # the first batch, as documented
        n = file.read(150 * MB // 64).count(b"\n") + 1
    for part in (slice(0, n), slice(n, None)):
        trainer.feed(rows.X[part], rows.y[part], rows.qid[part])
    assert np.array_equal(coef(model), trainer.weights()[0, 1:])
    assert load_model(model).training["index_base"] == 1
    assert coef(model)[0] > 2 * np.abs(coef(model)[1:]).max()


def test_pipes_compression_and_validation_make_no_difference(data, tmp_path):
    packed, model = tmp_path / "data.gz", tmp_path / "m"
    with open(data, "rb") as file:
        packed.write_bytes(gzip.compress(file.read(), 1))
    assert train(data, model) == 0
    assert train(str(packed), tmp_path / "m2") == 0
    with open(data, "rb") as file:
        subprocess.run(
            [*COMMAND, "-", str(tmp_path / "m3"), *STREAM, "--valid", data, "-q"],
            stdin=file,
            check=True,
        )
    for other in ("m2", "m3"):
        assert np.array_equal(coef(model), coef(tmp_path / other))


def test_options_reach_the_trainer(data, tmp_path):
    models = {}
    for options in (
        [],
        ["--seed", "1"],
        ["--algorithm", "pa"],
        ["--average"],
        ["--sampling", "query"],
        ["--sampling", "roc"],
        ["--steps-per-row", "1"],
        ["--passes", "2"],
        ["--alpha", "0.1"],
    ):
        assert train(data, tmp_path / "m", *options) == 0
        models[" ".join(options)] = coef(tmp_path / "m").tobytes()
    assert len(set(models.values())) == len(models)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stream"], "--stream belongs to --method sgd"),
        (["--method", "sgd", "--passes", "2"], "--passes needs --memory-limit"),
        ([*STREAM, "-c", "1"], "--stream excludes -c"),
        ([*STREAM, "--n-steps", "5"], "give --steps-per-row"),
        ([*STREAM, "--record", "exact"], "--stream excludes --record"),
        ([*STREAM, "--scale", "standard"], "--stream needs --scale auto or none, not standard"),
        ([*STREAM, "--dtype", "float64"], "rows are kept as float32"),
        ([*STREAM, "--algorithm", "hybrid"], "--stream needs --algorithm pegasos or "),
        ([*STREAM, "--sampling", "rejection"], "--sampling pairs or query or roc, not rejection"),
        ([*STREAM, "--checkpoint", "-"], "--checkpoint needs a file"),
        ([*STREAM, "--memory-limit", "40MB"], "--memory-limit must be at least 50MB, got 40MB"),
        ([*STREAM, "--checkpoint-every", "5"], "--checkpoint-every needs --checkpoint"),
    ],
)
def test_options_that_do_not_go_together(data, tmp_path, cli, options, message):
    assert message in cli("train", data, tmp_path / "m", *options, status=2).err


def test_faults_of_the_data(tmp_path, capsys):
    path, model = tmp_path / "data", tmp_path / "m"
    for text, options, message in (
        ("1 qid:1 1:x\n", [], f"{path}:1:"),
        ("1 qid:1 1:1\n0 qid:1 2000000000:1\n", [], f"{path}:2:9: feature index 2,000,000,000"),
        ("1 qid:1 1:1\n0 qid:1 2000000000:1\n", [], "give more than --memory-limit 150MB"),
        ("1 qid:1 1:1\n0 qid:1 " + " " * 5_000_000, [], f"{path}:2: a line has more than 2,343,"),
        ("1 qid:1 1:1\n1 qid:1 1:2\n", [], "no two rows could be compared: all 2 labels are 1"),
        ("1 qid:1 1:1\n0 qid:2 1:2\n", [], "no query id comes twice in 2 rows"),
        ("", [], "empty"),
        ("1:2 qid:1 1:1\n", [], "has a weight"),
        ("1 qid:1\n0 qid:1\n", [], f"{path}: none of the 2 rows has a feature"),
    ):
        path.write_text(text)
        assert train(str(path), model, *options) == 1
        assert message in capsys.readouterr().err
        assert not model.exists()


# ---- checkpoints --------------------------------------------------------------------------------


def test_a_finished_checkpoint_gives_the_model_again(data, tmp_path, capsys, cli):
    model, saved = tmp_path / "m", tmp_path / "c"
    options = ["--checkpoint", str(saved)]
    assert train(data, model, *options) == 0
    first = coef(model)
    assert "finished; nothing is left to learn" in cli("train", data, model, *STREAM, *options).err
    assert np.array_equal(coef(model), first)
    assert train(data, model, *options, "--alpha", "1e-3") == 1
    assert "was written with --alpha 0.0001, now it is 0.001" in capsys.readouterr().err
    err = cli("train", data, model, *STREAM, "--checkpoint", model, status=2).err
    assert "MODEL and --checkpoint are one file" in err
    saved.write_bytes(saved.read_bytes()[:1000])
    assert train(data, model, *options) == 1
    assert f"{saved}: is truncated or damaged" in capsys.readouterr().err
    assert train(data, model, "--checkpoint", data) == 1
    assert "is read and would be overwritten" in capsys.readouterr().err


def test_a_finished_checkpoint_is_not_taken_for_that_of_other_data_or_fewer_passes(
    data, tmp_path, capsys
):
    model, other, options = (
        tmp_path / "m",
        tmp_path / "other",
        ["--checkpoint", str(tmp_path / "c")],
    )
    assert train(data, model, *options, "--passes", "2") == 0
    assert train(data, model, *options) == 1
    assert "has learned from 2 passes, more than the 1 now asked for" in capsys.readouterr().err
    other.write_text(stream_text(100, seed=1))
    assert train(str(other), model, *options, "--passes", "2") == 1
    assert f"{other}: is not the data that the checkpoint was made with" in capsys.readouterr().err


def interrupted(arguments, saved, number, wait):
    """Start, send a signal a while after there is a checkpoint, return the exit status."""
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    before = saved.stat().st_mtime_ns if saved.exists() else 0
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if saved.exists() and saved.stat().st_mtime_ns > before:
            break
        time.sleep(0.002)
    time.sleep(wait)
    process.send_signal(number)
    error = process.communicate(timeout=300)[1]
    return process.returncode, error


@pytest.mark.parametrize(
    "packed",
    [pytest.param(False, id="plain"), pytest.param(True, id="gzip", marks=pytest.mark.slow)],
)
def test_killed_again_and_again_the_result_is_the_same(data, tmp_path, packed):
    """SIGKILL at random moments, in the middle of writing a checkpoint too."""
    saved, model, source = tmp_path / "c", tmp_path / "m", data
    if packed:
        source = str(tmp_path / "data.gz")
        with open(data, "rb") as file, open(source, "wb") as target:
            target.write(gzip.compress(file.read(), 1))
    options = ["--passes", "6", "--average"]
    assert train(source, tmp_path / "whole", *options) == 0
    options += ["--checkpoint", str(saved), "--checkpoint-every", "0", "-q"]
    arguments = [*COMMAND, source, str(model), *STREAM, *options]
    rng, n_killed = np.random.default_rng(0), 0
    for _ in range(4):
        status, _ = interrupted(arguments, saved, signal.SIGKILL, rng.random() * 0.1)
        assert status in (0, -signal.SIGKILL)
        n_killed += status != 0
    assert n_killed > 0
    assert subprocess.run(arguments, check=True).returncode == 0
    assert np.array_equal(coef(model), coef(tmp_path / "whole"))
    left = {path.name for path in tmp_path.iterdir()} - {"data.gz"}
    assert left == {"c", "m", "whole"}


def test_ctrl_c_writes_a_checkpoint(data, tmp_path):
    saved, model = tmp_path / "c", tmp_path / "m"
    options = ["--passes", "8"]
    assert train(data, tmp_path / "whole", *options) == 0
    options += ["--checkpoint", str(saved), "--checkpoint-every", "0"]
    arguments = [*COMMAND, data, str(model), *STREAM, *options]
    status, error = interrupted(arguments, saved, signal.SIGINT, 0.05)
    assert status == 130
    assert f"{saved}: the same command goes on from there" in error
    assert "Traceback" not in error
    assert not model.exists()
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "is read again and passed over" in done.stderr
    assert np.array_equal(coef(model), coef(tmp_path / "whole"))


def test_ctrl_c_does_not_wait_for_a_pipe_that_gives_nothing(data, tmp_path):
    saved = tmp_path / "c"
    process = subprocess.Popen(
        [*COMMAND, "-", str(tmp_path / "m"), *STREAM, "--checkpoint", str(saved)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with open(data, "rb") as file:
        process.stdin.write(file.read())
    process.stdin.flush()
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 130
    process.stdin.close()
    process.stderr.close()
    assert saved.exists()


# ---- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("megabytes", [50, 150, 1000, 100_000])
def test_the_plan_adds_up(megabytes):
    plan = memory_plan(megabytes * MB)
    assert sum(plan.values()) == megabytes * MB
    assert plan["rows"] >= 5 * MB


# Not ru_maxrss of getrusage: a process inherits that of the one that has started it.
MEASURED = """
import sys
from linrank.cli import stream
from linrank.cli.main import main
from linrank.models import linear
from linrank.stochastic import stream_passes

def measured(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name))

before = measured("VmRSS")
status = main(sys.argv[1:])
print(measured("VmHWM") - before)
sys.exit(status)
"""


DENSE = "".join(
    f"{(i * 7919) % 3} qid:Q{i // 20} "
    + " ".join(f"{j}:0.{(i * j * 7907) % 9973:04d}" for j in range(1, 31))
    + "\n"
    for i in range(20_000)
)
SPARSE = "".join(
    f"{(i * 7919) % 3} qid:Q{i} "
    + " ".join(f"{1 + j * 3400 + (i * j * 7907) % 3389}:1" for j in range(75))
    + "\n"
    for i in range(5_000)
)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("block", "memory", "n_blocks"),
    [
        pytest.param(DENSE, 150, 45, id="dense-150", marks=pytest.mark.slow),
        pytest.param(DENSE, 50, 20, id="dense-50"),
        pytest.param(SPARSE, 150, 40, id="sparse-ids-that-never-repeat", marks=pytest.mark.slow),
    ],
)
def test_the_process_stays_within_its_memory(tmp_path, block, memory, n_blocks):
    """A pipe of several times the memory; in the sparse one every row has a query of its own,
    but for every hundredth."""
    options = [*STREAM, "--memory-limit", str(memory), "-q", "--checkpoint", str(tmp_path / "c")]
    process = subprocess.Popen(
        [sys.executable, "-c", MEASURED, "train", "-", str(tmp_path / "m"), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    n_bytes = 0
    for k in range(n_blocks):
        text = block.replace("qid:Q", f"qid:{k % 40}" if k % 5 == 0 else f"qid:{k + 100}").encode()
        process.stdin.write(text)
        n_bytes += len(text)
    process.stdin.close()
    peak = int(process.stdout.read()) * 1024
    process.stdout.close()
    assert process.wait() == 0
    assert n_bytes > 80 * MB
    assert peak < memory * MB, f"{peak / MB:.0f} MB"
    assert peak > 0.4 * memory * MB  # it is used, too
