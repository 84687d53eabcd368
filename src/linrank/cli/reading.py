"""Reading data, scores and models for the commands."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linrank.cli.options import INDEX_BASE, ROLES, UNJUDGED
from linrank.cli.options import flag as flag_of
from linrank.cli.streams import STANDARD, is_model, read_text
from linrank.errors import DataFormatError
from linrank.system.resources import bytes_text, count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from linrank.cli.console import Console
    from linrank.data.dataset import Dataset
    from linrank.data.missing import Filling
    from linrank.io.roles import TableOptions
    from linrank.io.store.store import Store
    from linrank.models.linear import LinearModel, Model


def judgement_options(args: Namespace) -> dict[str, Any]:
    """The options as `linrank.load` takes them; a command may lack them."""
    qrels, unjudged = getattr(args, "qrels", None), getattr(args, "unjudged", None)
    if qrels is None and unjudged is not None:
        raise ValueError(f"--unjudged {unjudged} says what to do with --qrels, which is not given")
    return {} if qrels is None else {"qrels": qrels, "unjudged": unjudged or UNJUDGED[0]}


_NONE = "none"
# How the library's arguments are spelt on the command line.
_FLAGS = "|".join((*ROLES, "features", "format", "missing", "dtype", "unjudged"))
_TOLD = re.compile(rf"(?<![\w-])({_FLAGS})=(?:(False)|('[^']*'(?:, '[^']*')*(?: or '[^']*')?))?")


def column_options(args: Namespace, known: Sequence[str] | None, labelled: bool) -> TableOptions:
    """The options as the reader takes them; a command may lack them."""
    from linrank.io.roles import IF_PRESENT, TableOptions

    found = column_choices(args)
    if found["label"] is None and not (labelled and not getattr(args, "no_labels", False)):
        found["label"] = IF_PRESENT
    return TableOptions(**found, features=getattr(args, "features", None), known=known)


def column_choices(args: Namespace) -> dict[str, Any]:
    """The columns of roles as given: a name, False for none, None by convention."""
    given = {role: getattr(args, role, None) for role in ROLES}
    return {role: False if value == _NONE else value for role, value in given.items()}


def spelt(message: str) -> str:
    """A message with options instead of arguments.

    Examples
    --------
    >>> spelt("choose with label='rel', or label=False; see features=")
    'choose with --label rel, or --label none; see --features'
    >>> spelt("say missing='zero', 'mean' or 'indicator'")
    'say --missing zero, mean or indicator'
    """

    def flag(match: re.Match[str]) -> str:
        value = _NONE if match[2] else match[3] and match[3].replace("'", "")
        return f"--{match[1]}" + (f" {value}" if value is not None else "")

    return _TOLD.sub(flag, message.replace("sidecars=False", "--no-sidecars"))


@contextmanager
def in_options(console: Console, spelt: Callable[[str], str] = spelt) -> Iterator[None]:
    """Let errors and warnings of reading speak of options instead of arguments."""
    try:
        with console.warnings(spelt):
            yield
    except ValueError as error:
        if type(error) not in (ValueError, DataFormatError):  # others are made of more than words
            raise
        raise type(error)(spelt(str(error))) from error


def open_store(args: Namespace) -> Store:
    """The store at ``DATA``; options that say how to read text have no place here."""
    from linrank.io.store.store import Store

    store = Store(args.data)
    if args.index_base != "auto":
        raise ValueError("--index-base is for text; a store has its features numbered")
    if getattr(args, "missing", None) is not None:
        raise ValueError("--missing is decided when a store is written; leave it out")
    return store


def describe_data(data: Dataset | Store) -> str:
    """Source and size in a line; of a store without reading it."""
    facts, where = _facts(data), getattr(data, "path", None) or getattr(data, "source", None)
    no_qid = " (no qid)" if getattr(data, "qid", ()) is None else ""
    chunks = f" in {count(facts['chunks'], 'chunk')}" if "chunks" in facts else ""
    return (
        f"{where}: {count(facts['rows'], 'row')}, "
        f"{count(facts['queries'], 'query', 'queries')}{no_qid}, {count(facts['pairs'], 'pair')}; "
        f"{facts['storage']}, {bytes_text(facts['bytes'])}{chunks}"
    )


def data_summary(data: Dataset | Store, args: Namespace) -> dict[str, Any]:
    """What the JSON reports say of the training data."""
    limit = {"memory_limit": args.memory_limit} if hasattr(data, "n_chunks") else {}
    return {"source": args.data, **_facts(data), **limit}


def _facts(data: Dataset | Store) -> dict[str, Any]:
    from linrank.io.store.store import Store

    if isinstance(data, Store):
        kind = "CSR" if data.storage == "csr" else data.storage
        storage, n_bytes = f"{kind} {data.dtype}, {data.n_rows} × {data.n_features}", data.nbytes
        queries: Any = data
    else:
        storage, n_bytes, queries = data.rows.describe(), data.rows.nbytes, data.queries
    facts = {
        "rows": data.n_rows,
        "queries": queries.n_queries,
        "features": data.n_features,
        "pairs": queries.n_pairs,
        "storage": storage,
        "bytes": int(n_bytes),
    }
    return facts | ({"chunks": data.n_chunks} if isinstance(data, Store) else {})


def check_metrics(metrics: Sequence[str] | None, convention: str, *, selects: bool = False) -> None:
    """Raise ValueError for a misspelt metric or convention, before anything is read.

    ``selects``: the first must be one that models can be chosen by.
    """
    from linrank.metrics import convention as named_convention
    from linrank.metrics import parse, parse_scoring

    named_convention(convention)
    for place, metric in enumerate(metrics or ()):
        (parse_scoring if selects and place == 0 else parse)(metric)


def metrics_for(
    data: Dataset,
    asked: Sequence[str] | None,
    usual: Sequence[str],
    convention: str,
    console: Console,
) -> Sequence[str]:
    """The metrics asked for; else the usual ones, without NDCG where labels are negative.

    Labels -1 and +1, or those of a regression, are fine for everything else: to fail on a metric
    that nobody named would be no help.
    """
    from linrank.metrics import convention as named_convention

    lowest = float(data.labels.min())
    if asked or lowest >= 0.0 or named_convention(convention).negative_is_zero:
        return asked or usual
    console.say("note", f"ndcg is left out: a label below 0 ({lowest:g} occurs) has no gain")
    return [metric for metric in usual if "ndcg" not in metric]


def read_data(
    path: str,
    args: Namespace,
    console: Console,
    *,
    filling: Filling | None = None,
    known: Sequence[str] | None = None,
    labelled: bool = True,
    **options: Any,
) -> Dataset:
    """The dataset of a file or of a store, with the options of ``add_reading``.

    With ``filling``, that of the training data, missing values are filled in as they were there.
    Of a table, the features ``known`` by name are taken, in this order; it may lack labels unless
    it has to be ``labelled``.
    """
    from linrank.io.load import is_folder, read

    if is_model(path):
        raise ValueError(f"{path}: is JSON, like a model, not data; DATA comes first, then MODEL")
    options.setdefault("zero_based", INDEX_BASE[args.index_base])
    options.setdefault(
        "missing", "keep" if filling is not None else getattr(args, "missing", None) or "error"
    )
    columns = column_options(args, known, labelled)
    if is_folder(path):
        given = [*columns.given_names(), *(["format"] if args.format is not None else [])]
        if given:
            raise ValueError(f"{path}: is a store, which has no columns; leave out --{given[0]}")
        data = _read_store(path, args, options["zero_based"])
        if judgements := judgement_options(args):
            from linrank.io.trec import label_by_qrels

            data = label_by_qrels(data, **judgements)
        with in_options(console):
            data = data.filled(options["missing"])
    else:
        how = {"storage": "auto", "n_features": None, **options}
        with in_options(console):
            data = read(
                path,
                columns,
                note=console.note,
                format=args.format,
                sidecars=not args.no_sidecars,
                dtype=args.dtype,
                n_jobs=args.jobs,
                progress=console.reading(path),
                **judgement_options(args),
                **how,
            )
        console.clear()
        if data.index_base is None and args.index_base != "auto":
            raise ValueError(
                f"{path}: is a table, whose features have names; leave out --index-base"
            )
    return data if filling is None else filling.dataset(data)


def _read_store(path: str, args: Namespace, zero_based: Any) -> Dataset:
    """A store as a whole; what was decided when it was written can only be confirmed."""
    from linrank.io.store.store import Store

    store = Store(path)
    if args.dtype not in (None, store.dtype.name):
        raise ValueError(
            f"{path}: is a store of {store.dtype} values; leave out --dtype {args.dtype}, or "
            "convert the text again with it"
        )
    if zero_based != "auto" and store.index_base not in (None, int(not zero_based)):
        raise ValueError(
            f"{path}: is a store whose first feature has number {store.index_base}, and "
            f"{int(not zero_based)} is wanted, by --index-base or by the model; convert the text "
            f"again with --index-base {int(not zero_based)}"
        )
    return store.dataset(n_jobs=args.jobs)


def without_labels(data: Dataset) -> Dataset:
    """The same rows, all of one label: no pair comes from the labels."""
    from dataclasses import replace

    import numpy as np

    return replace(data, labels=np.zeros(data.n_rows))


def resolve_bounds(parameters: Any, data: Dataset | Store) -> None:
    """Features, as --bounds, --increasing and --decreasing name them, become columns."""
    names = ("coef_bounds", "increasing", "decreasing")
    entries, *listed = (getattr(parameters, name, None) for name in names)
    if entries is None and not any(listed):
        return
    from linrank.io.store.store import Store, columns_of

    columns = columns_of(data) if isinstance(data, Store) else data
    for name, features in zip(names[1:], listed, strict=True):
        if features:
            found = [_column(feature, columns, flag_of(name)) for feature in features]
            setattr(parameters, name, found)
    if entries is None:
        return
    bounds = dict.fromkeys(range(columns.n_features), entries.get("*", (None, None)))
    for feature, pair in entries.items():
        if feature != "*":
            bounds[_column(feature, columns, "--bounds")] = pair
    parameters.coef_bounds = bounds


def _column(feature: str, data: Dataset, option: str) -> int:
    """The column of a feature by its number in the file, or its name."""
    if data.feature_names is not None and feature in data.feature_names:
        return data.feature_names.index(feature)
    base = data.index_base or 0
    if not feature.isdecimal():
        raise ValueError(f"{option}: {feature!r} is no feature number; use numbers as in the data")
    column = int(feature) - base
    if not 0 <= column < data.n_features:
        raise ValueError(
            f"{option}: feature {feature} is not in the data, whose features are {base} to "
            f"{base + data.n_features - 1}"
        )
    return column


def check_text(path: str) -> None:
    """Fail on a table, which is no stream of lines; a pipe cannot be looked at beforehand."""
    if not os.path.isfile(path):
        return
    from linrank.io.formats import format_of, open_source

    _, name, head = open_source(path)
    found = format_of(name, head, None)
    if found != "svmlight":
        raise ValueError(f"{path}: is {found}, and --stream reads SVMlight text; leave it out")


def read_and_score(
    model: Model, path: str, args: Namespace, console: Console, *, labelled: bool = True
) -> tuple[Dataset, NDArray[np.float64]]:
    """The dataset of a file, and the scores that the model gives its rows.

    Features are counted as in the training data: a file that happens to lack feature 0 would
    otherwise be taken to start at 1, and every feature would meet its neighbour's weight. Columns
    of a table are taken by the names that the model knows, in whatever order they come.
    """
    counted = counted_from(model.training.get("index_base"), args)
    counted |= {"missing": kept_missing(args, model), "known": model.feature_names}
    data = read_data(path, args, console, labelled=labelled, **counted)
    return data, score_rows(model, data, args, console)


def counted_from(base: Any, args: Namespace) -> dict[str, Any]:
    """How features are counted: from the base that is known, unless the options say another."""
    return {} if base is None or args.index_base != "auto" else {"zero_based": base == 0}


def check_qids(data: Dataset, other: Dataset) -> None:
    """Raise ValueError where one of two files has queries, and the other has not."""
    if (data.qid is None) != (other.qid is None):
        lacking = data if data.qid is None else other
        raise ValueError(f"{lacking.source} has no qid, the other file has; give both or neither")


def kept_missing(args: Namespace, *models: Model) -> str:
    """How rows are read that models are to score: missing values stay if any model fills them.

    A --missing that is not what the models were trained with would change nothing, and is refused.
    """
    kinds = {model.missing.kind if hasattr(model, "missing") else "error" for model in models}
    missing = getattr(args, "missing", None)
    if missing is not None and kinds and kinds != {missing}:
        raise ValueError(
            f"--missing {missing}: a model does with missing values what it was trained to "
            f"do, here {' and '.join(sorted(kinds))}; leave the option out, or train again with it"
        )
    return "keep" if kinds != {"error"} else "error"


def score_rows(
    model: Model, data: Dataset, args: Namespace, console: Console
) -> NDArray[np.float64]:
    """The scores of rows that were read as those that the model was trained on.

    Features that only one of the two knows count nothing.
    """
    from linrank.models.linear import LinearModel

    if getattr(getattr(model, "kernel", None), "name", None) == "precomputed":
        return model.predict(data, n_jobs=args.jobs)  # columns are rows, none of them new
    n_features = data.n_raw_features
    if n_features > model.n_features:
        console.warn(
            f"{data.source} has features that the model has not seen: it knows "
            f"{model.n_features:,}, the file {n_features:,}; they count nothing"
        )
    if data.filling is not None:  # as the model does it, or it is refused
        return model.predict(data, n_jobs=args.jobs)
    if isinstance(model, LinearModel):
        return _resized(model, n_features).predict(data, n_jobs=args.jobs)
    return model.predict(_widened(data, model.n_features), n_jobs=args.jobs)


def _resized(model: LinearModel, n_features: int) -> LinearModel:
    """The model for rows of `n_features`: weights without a feature cut off, new features get 0.

    The rows, which may be large, stay as they were read.
    """
    if n_features == model.n_features:
        return model
    import numpy as np

    from linrank.data.missing import Missing
    from linrank.data.scaling import Scaling
    from linrank.models.linear import LinearModel

    def resized(array: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        if array is None:
            return None
        return np.pad(array[:n_features], (0, max(0, n_features - array.size)))

    missing = model.missing
    return LinearModel(
        np.pad(model.coef[:n_features], (0, max(0, n_features - model.n_features))),
        scaling=Scaling("query" if model.scaling.needs_queries else "none"),
        missing=Missing(missing.kind, resized(missing.values), resized(missing.weights)),
    )


def _widened(data: Dataset, n_features: int) -> Dataset:
    """The data with `n_features`: kernels and curves see all of a row, the zeros that the file
    leaves out and nothing beyond."""
    from dataclasses import replace

    from linrank.data.rows import resized

    rows = resized(data.rows, n_features)
    return data if rows is data.rows else replace(data, rows=rows)


def read_scores(path: str) -> NDArray[np.float64]:
    """One finite number per line, or the column ``score`` of a table; an error names the line."""
    import numpy as np

    from linrank.io.formats import table_format

    if table_format(path) is not None:
        return _score_column(path)
    name = "<stdin>" if path == STANDARD else path
    lines = read_text(path).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise ValueError(f"{name}: no scores; expected one number per line")
    scores = np.empty(len(lines))
    for row, text in enumerate(lines):
        try:
            scores[row] = float(text)
        except ValueError:
            hint = "; a model goes to --model" if text.startswith("{") else ""
            told = f"expected one score, got {text[:60]!r}{hint}"
            raise ValueError(f"{name}:{row + 1}: {told}") from None
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores)))
        told = f"the score is {lines[row].strip()}; scores must be finite"
        raise ValueError(f"{name}:{row + 1}: {told}")
    return scores


def _score_column(path: str) -> NDArray[np.float64]:
    import numpy as np

    from linrank.io.load import load

    try:
        data = load(path, label=False, qid=False, docid=False, features="score", dtype="float64")
    except ValueError as error:
        raise ValueError(f"scores of a table are its column 'score': {error}") from None
    return np.asarray(data.X, dtype=np.float64)[:, 0]


def read_scores_of(path: str, data: Dataset) -> NDArray[np.float64]:
    """The same, one for every row of the data."""
    scores = read_scores(path)
    if len(scores) != data.n_rows:
        raise ValueError(
            f"{path} has {len(scores):,} scores, {data.source} has {data.n_rows:,} rows; one score "
            "per row is needed, in the same order"
        )
    return scores
