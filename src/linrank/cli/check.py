"""linrank check DATA --against MODEL [options]

Compare DATA with what MODEL knows of its training data, before it scores them: features that one of
the two lacks, missing values that the model cannot fill in, values outside of the range of
training, features that have become constant, and means that have moved. Errors come first, then
warnings, each by the importance of the feature; -v shows notes too. The exit status is 4 if there
is an error, with --strict also if there is a warning.
"""

from __future__ import annotations

from argparse import Namespace

from linrank.cli.console import Console, Result
from linrank.cli.files import check_files, index_options, read_data, read_model
from linrank.cli.main import OK, UNFIT
from linrank.cli.options import Parser, add_common, declare, find_given
from linrank.system import card, count

OPTIONS = """
  DATA                data to be scored, a store, or - for stdin
  --against MODEL:str=  model file written by linrank train
  --strict            take warnings for errors in the exit status
  --top N:count=20    findings to show (default: 20)
  --drift D:positive  warn of a mean that has moved by more than D deviations (default: 0.5)
  --outside F:share   warn of values outside of the range of training in more than a share F of the
                      rows; fewer are a note, unless one lies farther out than that range is wide
                      (default: 0.01)
"""


def configure(parser: Parser) -> None:
    """Declare the options."""
    declare(parser, OPTIONS)
    add_common(parser)


def run(args: Namespace, console: Console) -> Result:
    """Read both, compare, and tell what was found."""
    from linrank.judging.check import SEVERITIES, check
    from linrank.models.kernel import KernelModel

    check_files([args.data, args.against])
    model = read_model(args.against)
    if isinstance(model, KernelModel):
        raise ValueError(
            f"{args.against}: is a model of a kernel, which sees distances between rows; check "
            "compares the features of linear and of additive models"
        )
    how = index_options(model.training.get("index_base"), args)
    data = read_data(args.data, args, console, missing="keep", labeled=False, **how)
    thresholds = {name: getattr(args, name) for name in find_given(args, ("drift", "outside"))}
    found = check(data, model, **thresholds)

    shown = [item for item in found if item.severity != "note" or args.verbose]
    rows = [(str(item.severity), f"[{item.code}] {item.message}") for item in shown[: args.top]]
    if len(shown) > args.top:
        rows.append(("", f"and {len(shown) - args.top:,} more; --top shows them"))
    counts = ", ".join(count(len(found.of(s)), s) for s in SEVERITIES if found.of(s))
    counts += "" if len(shown) == len(found) else " (-v shows them)"
    last = f"{data.source}, {count(data.n_rows, 'row')}: {counts or 'nothing stands out'}"
    facts = {
        "data": data.source,
        "model": args.against,
        "rows": data.n_rows,
        "ok": found.ok,
        "findings": [{**vars(item), "values": dict(item.values)} for item in found],
    }
    is_unfit = not found.ok or (args.strict and found.of("warning"))
    return Result(facts, "\n".join([*card(rows), last]), UNFIT if is_unfit else OK)
