"""``python -m linrank.demo [FOLDER]``: the whole path on a small sample, in a few seconds.

Makes the queries of a small shop and runs the commands of linrank on them, which it shows: looks at
the data, trains linear RankSVMs over a range of C, chooses one on folds of the training queries,
compares it on the test queries with what anyone could do without learning, and with curves in place
of straight lines, and writes a report, one HTML page. Data, models and report are in the folder.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Sequence

import linrank.cli.main as cli
from linrank.data.synthetic import make_sample
from linrank.io.store.store import Store
from linrank.system.durable import replacing

MARK = ".linrank-demo"  # the file in a folder that the demo made
COMMANDS = (
    "inspect {}/train",
    "tune {}/train --Cs 4^-6:4^2:4 -o {}/model.json",
    "compare {}/train {}/test --methods random,best-feature,ranksvm,curves --baseline random",
    "report {}/test --train {}/train --Cs 4^-6:4^2:4 -o {}/report.html",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the sample to the folder and run the commands there."""
    start = time.perf_counter()
    parser = argparse.ArgumentParser(prog="python -m linrank.demo", description=__doc__)
    parser.add_argument("folder", nargs="?", default="linrank-demo", metavar="FOLDER")
    folder: str = parser.parse_args(argv).folder
    if os.path.exists(folder) and not os.path.isdir(folder):
        parser.error(f"{folder} is a file; name a folder for the model and the report")
    mark = os.path.join(folder, MARK)
    if os.path.isdir(folder) and os.listdir(folder) and not os.path.exists(mark):
        parser.error(f"{folder} has other files in it; name a new folder, or one of the demo")
    os.makedirs(folder, exist_ok=True)
    with replacing(mark):
        pass
    sample = make_sample()
    for name in ("train", "test"):
        data = sample[name].fill("zero")  # a product without reviews has no rating
        Store.of(os.path.join(folder, name), data, overwrite=True)
    for command in COMMANDS:
        print(f"\n$ linrank {command.replace('{}', folder)}", file=sys.stderr, flush=True)
        status = cli.main([word.replace("{}", folder) for word in command.split()])
        if status != cli.OK:
            return status
    if importlib.util.find_spec("matplotlib") is None:
        print("\nno pictures: they need Matplotlib, pip install matplotlib", file=sys.stderr)
    print(f"\ndone in {time.perf_counter() - start:.1f} s; see {folder}/report.html")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
