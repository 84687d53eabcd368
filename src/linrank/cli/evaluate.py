"""linrank evaluate DATA (SCORES | --model MODEL) [-m METRIC] [options]

Rank the rows of each query of DATA by score and compare with the labels. SCORES has one number
per row, in the order of the file (as linrank predict writes it); --model computes them instead.
With --qrels and --run, the same for a TREC run, by the rules of trec_eval.
"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from linrank.cli import files, options
from linrank.cli.console import Console, Result
from linrank.cli.main import UsageError
from linrank.cli.options import STANDARD
from linrank.system.resources import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linrank.metrics import Evaluation

OPTIONS = f"""
  [DATA]         labeled rows: a file, a store, or - for stdin
  [SCORES]       score file, or - for stdin
  --model MODEL  score the rows with this model
{options.metric_options("ndcg, map, mrr and pairwise accuracy")}
  -o, --output FILE.csv:output  write the values of every query, or - for stdout
TREC files, instead of DATA and SCORES:
  --qrels QRELS  judgments: qid iteration docid relevance
  --run RUN      run: qid Q0 docid rank score tag
  --complete     count queries that RUN lacks, as trec_eval -c: 0 for what nobody found
"""
RULES = """
--qrels needs --run: judgments and what was retrieved
--run needs --qrels: what was retrieved, and judgments
--run excludes DATA: TREC files take the place of DATA, SCORES and --model
--run excludes --model: TREC files take the place of DATA, SCORES and --model
--complete needs --run: it counts queries that a run lacks
"""


def configure(parser: options.Parser) -> None:
    """Declare the options."""
    options.declare(parser, OPTIONS)
    parser.set_defaults(convention=None)  # depends on what is evaluated
    options.add_common(parser, judgments=False)


def run(args: Namespace, console: Console) -> Result:
    """Read, score, measure."""
    of_run = args.qrels is not None or args.run is not None
    _check(args, of_run)
    facts, result = (_evaluate_run if of_run else _evaluate_data)(args, console)
    if args.output is not None:
        files.write_lines(args.output, _csv(result))
    facts |= {
        "queries": result.n_queries,
        "convention": args.convention,
        "rules": result.convention.describe(),
        "metrics": result.to_dict()["means"],
    }
    return Result(facts, "" if args.output == STANDARD else result.to_text())


def _check(args: Namespace, of_run: bool) -> None:
    """Fail on what can be known to be wrong before anything is read."""
    if not of_run and args.data is None:
        raise UsageError("give DATA and its scores, or --qrels and --run")
    if not of_run and (args.scores is None) == (args.model is None):
        raise UsageError("give either SCORES or --model MODEL")
    args.convention = args.convention or ("trec_eval" if of_run else "linrank")
    files.check_metrics(args.metrics, args.convention)
    files.check_files([args.data, args.scores, args.model, args.qrels, args.run], args.output)


def _evaluate_run(args: Namespace, console: Console) -> tuple[dict[str, Any], Evaluation]:
    from linrank.io.trec import load_qrels, load_run
    from linrank.metrics.runs import RUN_METRICS, JudgedRun

    qrels = load_qrels(args.qrels, progress=console.reading_progress(args.qrels))
    run = load_run(args.run, progress=console.reading_progress(args.run))
    console.clear()
    judged = JudgedRun(qrels, run, complete=args.complete, n_jobs=args.jobs)
    how = "counted as found nothing" if args.complete else "left out; --complete counts them"
    for n, where in (
        (judged.n_not_judged, "of the run without judgments left out"),
        (judged.n_not_retrieved, f"of the qrels not in the run: {how}"),
    ):
        if n:
            console.say("note", f"{count(n, 'query', 'queries')} {where}")
    metrics = args.metrics or RUN_METRICS
    result = judged.evaluate(metrics=metrics, convention=args.convention, n_jobs=args.jobs)
    return {"qrels": args.qrels, "run": args.run, "rows": judged.run.n_rows}, result


def _evaluate_data(args: Namespace, console: Console) -> tuple[dict[str, Any], Evaluation]:
    from linrank.metrics import DEFAULT_METRICS, evaluate

    if args.model is not None:
        data, scores = files.read_and_score(files.read_model(args.model), args.data, args, console)
    else:
        data = files.read_data(args.data, args, console, missing="keep")  # no feature is looked at
        scores = files.read_scores_of(args.scores, data)
    result = evaluate(
        data.labels,
        scores,
        qid=data.qid,
        metrics=files.metrics_for(data, args.metrics, DEFAULT_METRICS, args.convention, console),
        convention=args.convention,
        docid=data.all_docids,
        n_jobs=args.jobs,
    )
    sources = {name: getattr(args, name) for name in ("data", "scores", "model")}
    return {**sources, "rows": data.n_rows}, result


def _csv(result: Evaluation) -> Iterator[str]:
    """A header, then one line per query; an empty field where the metric leaves the query out."""
    names = list(result.per_query)
    yield ",".join(["qid", *map(_quote, names)]) + "\n"
    columns = [result.per_query[name].tolist() for name in names]
    ids = [1] if result.query_ids is None else result.query_ids.tolist()
    for qid, *values in zip(ids, *columns, strict=True):
        fields = ["" if value != value else repr(value) for value in values]
        yield ",".join([_quote(str(qid)), *fields]) + "\n"


def _quote(text: str) -> str:
    """A field of CSV: in quotes, with quotes doubled, where it holds a separator or a quote."""
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text
