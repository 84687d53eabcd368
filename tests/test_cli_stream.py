"""Streams on the command line: training and answers while the input is open, in bounded memory."""

import gzip
import json
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cli_files import COMMAND, start, wait_for_sleep, write_svmlight
from linrank import load, load_model
from linrank.cli.main import main
from linrank.cli.stream import MB, memory_plan
from linrank.data.synthetic import make_ranking
from linrank.stochastic.descent import Learner
from linrank.stochastic.streaming import StreamTrainer

TRAIN = [*COMMAND, "train"]
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
    return path


@pytest.fixture
def train(data, cli):
    """Train on a stream: what it has told."""

    def run(model, options="-q", source=data, status=0):
        return cli(f"train {source} {model} --method sgd --stream {options}", status=status)

    return run


def coef(model):
    return load_model(model).coef


def pack(data, path):
    """The data, compressed."""
    path.write_bytes(gzip.compress(data.read_bytes(), 1))
    return path


def test_a_file_is_learnt_as_the_trainer_learns_it(data, tmp_path, train):
    model = tmp_path / "m"
    out, err = train(model, "--alpha 1e-3 --json")
    report = json.loads(out)
    assert report["data"]["rows"] == 30_000
    assert report["training"]["steps"] == load_model(model).training["n_steps"] == 120_000
    assert report["data"]["batches_without_pairs"] == 0
    begin = "memory    150 MB at most, beside the program = "
    for word in (begin, "buffer", "30,000 rows", "mean loss"):
        assert word in err
    rows = load(data, zero_based=True)
    trainer = StreamTrainer([Learner("pegasos", 1e-3)], memory=memory_plan(150 * MB)["rows"])
    with open(data, "rb") as file:  # the first batch, as documented
        n = file.read(150 * MB // 64).count(b"\n") + 1
    for part in (slice(0, n), slice(n, None)):
        trainer.feed(rows.X[part], rows.y[part], rows.qid[part])
    assert np.array_equal(coef(model), trainer.weights()[0, 1:])
    assert load_model(model).training["index_base"] == 1
    assert coef(model)[0] > 2 * np.abs(coef(model)[1:]).max()


def test_pipes_compression_and_validation_make_no_difference(data, tmp_path, train):
    model, packed, piped = (tmp_path / name for name in ("m", "m2", "m3"))
    train(model)
    train(packed, source=pack(data, tmp_path / "data.gz"))
    command = [*TRAIN, "-", piped, *STREAM, "--valid", data, "-q"]
    subprocess.run(command, input=data.read_bytes(), check=True)
    for other in (packed, piped):
        assert np.array_equal(coef(model), coef(other))


def test_options_reach_the_trainer(tmp_path, train):
    asked = ("", "--seed 1", "--algorithm pa", "--average", "--sampling query", "--sampling roc")
    models = set()
    for options in (*asked, "--steps-per-row 1", "--passes 2", "--alpha 0.1"):
        train(tmp_path / "m", f"-q {options}")
        models.add(coef(tmp_path / "m").tobytes())
    assert len(models) == len(asked) + 3


# ---- checkpoints --------------------------------------------------------------------------------


def test_a_finished_checkpoint_gives_the_model_again(tmp_path, train):
    model, saved = tmp_path / "m", tmp_path / "c"
    options = f"--checkpoint {saved}"
    train(model, options)
    first = coef(model)
    assert "finished; nothing is left to learn" in train(model, options).err
    assert np.array_equal(coef(model), first)
    err = train(model, f"{options} --alpha 1e-3", status=1).err
    assert "was written with --alpha 0.0001, now it is 0.001" in err
    saved.write_bytes(saved.read_bytes()[:1000])
    assert f"{saved}: is truncated or damaged" in train(model, options, status=1).err


def test_a_finished_checkpoint_is_not_taken_for_that_of_other_data_or_fewer_passes(tmp_path, train):
    model, other, options = tmp_path / "m", tmp_path / "other", f"--checkpoint {tmp_path / 'c'}"
    train(model, f"{options} --passes 2")
    err = train(model, options, status=1).err
    assert "has learned from 2 passes, more than the 1 now asked for" in err
    other.write_text(stream_text(100, seed=1))
    err = train(model, f"{options} --passes 2", source=other, status=1).err
    assert f"{other}: is not the data that the checkpoint was made with" in err


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
def test_killed_again_and_again_the_result_is_the_same(data, tmp_path, train, packed):
    """SIGKILL at random moments, in the middle of writing a checkpoint too."""
    saved, model = tmp_path / "c", tmp_path / "m"
    source = str(pack(data, tmp_path / "data.gz")) if packed else data
    options = "--passes 6 --average -q"
    train(tmp_path / "whole", options, source=source)
    options += f" --checkpoint {saved} --checkpoint-every 0"
    arguments = [*TRAIN, source, str(model), *STREAM, *options.split()]
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


def test_ctrl_c_writes_a_checkpoint(data, tmp_path, train):
    saved, model = tmp_path / "c", tmp_path / "m"
    train(tmp_path / "whole", "--passes 8 -q")
    options = f"--passes 8 --checkpoint {saved} --checkpoint-every 0"
    arguments = [*TRAIN, data, str(model), *STREAM, *options.split()]
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
    process = start("train", "-", tmp_path / "m", *STREAM, "--checkpoint", saved)
    process.stdin.write(data.read_text())
    process.stdin.flush()
    wait_for_sleep(process)
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
    program = [sys.executable, "-c", MEASURED]
    process = start(
        "train", "-", tmp_path / "m", *options, program=program, text=False, stderr=None
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


# ---- predict -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_query(files):
    path = str(files["folder"] / "by_query.json")
    assert main(["train", str(files["train"]), path, "--scale", "query", "-q"]) == 0
    return path


def process(*arguments):
    return start("predict", *arguments, text=False, stderr=None, bufsize=0)


def tell(child, lines):
    child.stdin.write("".join(lines).encode())


def answer(child):
    """A line of the child."""
    assert select.select([child.stdout], [], [], 300.0)[0]
    return child.stdout.readline().decode()


def end(child):
    child.stdin.close()
    rest = child.stdout.read().decode()
    child.stdout.close()
    assert child.wait(timeout=300) == 0
    return rest


@pytest.mark.parametrize("kind", ["model", "by_query"])
@pytest.mark.parametrize("options", ["", "--trec --topk 3"])
def test_a_stream_has_the_bits_of_the_file(files, by_query, kind, options, cli):
    model = {"model": files["model"], "by_query": by_query}[kind]
    whole = cli(f"predict {files['valid']} {model} {options}").out
    assert whole.count("\n") > 20
    assert cli(f"predict {files['valid']} {model} --stream {options}").out == whole
    child = process("-", model, *options.split())
    tell(child, [files["valid"].read_text()])
    assert end(child) == whole


def test_every_line_is_answered_before_the_next(files):
    lines, expected = (files[k].read_text().splitlines()[:4] for k in ("valid", "scores"))
    child = process("-", files["model"])
    for line, score in zip(lines, expected, strict=True):
        tell(child, [line + "\n"])
        assert answer(child) == score + "\n"
    assert end(child) == ""


def test_a_query_is_answered_when_the_next_one_begins(files, by_query, cli):
    lines = files["valid"].read_text().splitlines(keepends=True)
    whole = cli(f"predict {files['valid']} {by_query}").out.splitlines(keepends=True)
    ids = [line.split()[1] for line in lines]
    n_first = ids.index(next(qid for qid in ids if qid != ids[0]))
    child = process("-", by_query)
    tell(child, lines[: n_first - 1])
    tell(child, lines[n_first - 1 : n_first])
    wait_for_sleep(child)
    assert select.select([child.stdout], [], [], 0)[0] == []
    tell(child, lines[n_first : n_first + 1])
    assert [answer(child) for _ in range(n_first)] == whole[:n_first]
    tell(child, lines[n_first + 1 :])
    assert end(child) == "".join(whole[n_first:])


def test_memory_does_not_grow_with_the_stream(files):
    data = make_ranking(n_queries=50, n_features=6, random_state=3)
    text = Path(write_svmlight(files["folder"] / "long.txt", data)).read_bytes()
    block = text * (2_000_000 // len(text))
    child = process("-", files["model"], "-o", "/dev/null")

    def peak():
        with open(f"/proc/{child.pid}/status") as status:
            return next(int(s.split()[1]) for s in status if s.startswith("VmHWM"))

    child.stdin.write(block)
    child.stdin.write(block)
    before = peak()
    for _ in range(14):
        child.stdin.write(block)
    after = peak()
    assert end(child) == ""
    assert after - before < 4000  # kB; the 28 MB of text are 13 MB of rows and ids


def test_unknown_features_are_told_once(files, tmp_path, cli):
    path = tmp_path / "wide.txt"
    path.write_text("1 qid:1 1:1 9:5\n1 qid:1 1:1 12:5\n1 qid:2 1:1\n")
    out, err = cli(f"predict {path} {files['model']} --stream")
    assert len(set(out.split())) == 1
    assert err.count("warning") == 1
    assert "wide.txt:2:" in err
    assert "feature 12 is one that the model has not seen: it knows 6" in err


def test_only_models_by_query_need_the_rows_of_a_query_together(files, by_query, tmp_path, cli):
    path = tmp_path / "mixed.txt"
    path.write_text("1 qid:1 1:1\n1 qid:2 1:1\n1 qid:1 1:2\n")
    cli(f"predict {path} {by_query}")
    cli(f"predict {path} {files['model']} --stream")
