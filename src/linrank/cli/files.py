"""The files of a command: checked before the work, read, and written whole or not at all."""

from __future__ import annotations

import os
import re
import stat
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linrank.cli.console import Console, write_standard
from linrank.cli.main import UsageError
from linrank.cli.options import INDEX_BASE, NONE, ROLES, STANDARD, UNJUDGED, flag
from linrank.errors import DataFormatError
from linrank.io.blocks import open_blocks, standard_input
from linrank.system import Scratch, bytes_text, check_place, count, naming, recover

# NumPy, and what needs it, loads inside the functions: `linrank COMMAND --help` answers at once.
if TYPE_CHECKING:
    from linrank.data import Array, Dataset, Filling
    from linrank.io.store.store import Store
    from linrank.models.linear import Model

# ---- before the work ----------------------------------------------------------------------------


def check_files(inputs: Sequence[str | None], *outputs: str | None) -> None:
    """Fail now on files that could not be read or written later; None stands for none.

    Training may take an hour: a misspelled folder must not be found out after it.
    """
    if inputs.count(STANDARD) > 1:
        raise UsageError("only one of the files can be standard input (-)")
    for output in outputs:
        if output not in (None, STANDARD):
            check_place(output)
            check_apart(output, inputs)
    for path in inputs:
        if path not in (None, STANDARD):
            recover(path)
            if not stat.S_ISFIFO(os.stat(path).st_mode):  # whose writer would be gone with us
                os.close(os.open(path, os.O_RDONLY))


def check_apart(output: str, inputs: Sequence[str | None]) -> None:
    """Raise ValueError if writing a file would destroy one of those that are read."""
    for path in inputs if os.path.isfile(output) else ():
        if path not in (None, STANDARD) and os.path.exists(path) and os.path.samefile(path, output):
            raise ValueError(f"{output}: is read and would be overwritten; name another output")


def check_metrics(metrics: Sequence[str] | None, convention: str, *, selects: bool = False) -> None:
    """Raise ValueError for a misspelled metric or convention, before anything is read.

    ``selects``: the first must be one that models can be chosen by.
    """
    from linrank.metrics import convention as named_convention
    from linrank.metrics import parse, parse_scoring

    named_convention(convention)
    for place, metric in enumerate(metrics or ()):
        (parse_scoring if selects and place == 0 else parse)(metric)


# ---- texts and models ---------------------------------------------------------------------------


def read_text(path: str) -> str:
    """The whole text of a small file or of standard input."""
    found, content = open_blocks(path), bytearray()
    for block, _ in found.blocks:
        content += block
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{found.name}: byte {error.start} is not UTF-8; give a text file"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_lines(path: str, blocks: Iterable[str]) -> None:
    """Write blocks of whole lines to a file (atomically) or, for ``-``, to standard output.

    A file is compressed where its name ends in .gz, .bz2, .xz or .zst.

    Each block is passed on before the next one is asked for: a pipe may lead to who wants it first.
    """
    if path == STANDARD:
        for block in blocks:
            write_standard(block)
        return
    from linrank.io.write import open_output

    with open_output(path) as file:
        for block in blocks:
            file.write(block.encode())
            file.flush()


VALIDATED = "valid "  # begins the names of the measures on --valid, in the summary of the training


def is_model(path: str) -> bool:
    """Whether a file starts like the JSON of a model; no line of data begins with a brace."""
    if path == STANDARD or not os.path.isfile(path):
        return False
    with naming(path), open(path, "rb") as file:
        return file.read(64).lstrip().startswith(b"{")


def check_data(path: str) -> None:
    """Raise ValueError for a model in the place of data."""
    if is_model(path):
        raise ValueError(f"{path}: is JSON, like a model, not data; DATA comes first")


def check_text(path: str) -> None:
    """Raise ValueError for what is no stream of lines; a pipe cannot be looked at beforehand."""
    from linrank.io.formats import format_of, open_source

    check_data(path)
    found = "a folder" if os.path.isdir(path) else "svmlight"
    if os.path.isfile(path):
        _, name, head = open_source(path)
        found = format_of(name, head, None)
    if found != "svmlight":
        raise ValueError(f"{path}: is {found}, and --stream reads SVMlight text; leave it out")


def read_model(path: str) -> Model:
    """The model of a file or of standard input."""
    from linrank.models.linear import load_model

    if path != STANDARD:
        return load_model(path)
    from linrank.models.file import most_bytes

    with Scratch() as scratch:
        copy = os.path.join(scratch.path, "standard input")
        source, n_left = standard_input(), most_bytes() + 1
        with open(copy, "wb") as file:
            while n_left > 0 and (block := source.read(min(n_left, 1 << 20))):
                file.write(block)
                n_left -= len(block)
        return load_model(copy)


def write_model(model: Model, path: str, console: Console) -> None:
    """Save the model to a file or to standard output, and say so."""
    if path == STANDARD:
        write_standard(model.to_json().decode())
    else:
        model.save(path)
    console.say("saved", "standard output" if path == STANDARD else path)


# ---- data ---------------------------------------------------------------------------------------

# How the library's arguments are spelled on the command line.
_SPELT = {
    "sidecars=False": "--no-sidecars",
    "zero_based=True": "--index-base 0",
    "zero_based=False": "--index-base 1",
    "n_features=": "--n-features ",
    "leave zero_based out": "leave --index-base out",
    "leave dtype out": "leave --dtype out",
}
_FLAGS = "|".join((*ROLES, "features", "format", "missing", "dtype", "unjudged"))
_TOLD = re.compile(rf"(?<![\w-])({_FLAGS})=(?:(False)|('[^']*'(?:, '[^']*')*(?: or '[^']*')?))?")


def name_options(message: str) -> str:
    """A message with options instead of arguments.

    Examples
    --------
    >>> name_options("choose with label='rel', or label=False; see features=")
    'choose with --label rel, or --label none; see --features'
    >>> name_options("say missing='zero', 'mean' or 'indicator'")
    'say --missing zero, mean or indicator'
    """

    def option(match: re.Match[str]) -> str:
        value = NONE if match[2] else match[3] and match[3].replace("'", "")
        return f"--{match[1]}" + (f" {value}" if value is not None else "")

    for argument, flag_text in _SPELT.items():
        message = message.replace(argument, flag_text)
    return _TOLD.sub(option, message)


@contextmanager
def in_options(
    console: Console, name_options: Callable[[str], str] = name_options
) -> Iterator[None]:
    """Let errors and warnings of reading speak of options instead of arguments."""
    try:
        with console.warnings(name_options):
            yield
    except ValueError as error:
        if type(error) not in (ValueError, DataFormatError):  # others are made of more than words
            raise
        raise type(error)(name_options(str(error))) from error


def read_data(
    path: str,
    args: Namespace,
    console: Console,
    *,
    filling: Filling | None = None,
    known: Sequence[str] | None = None,
    labeled: bool = True,
    **options: Any,
) -> Dataset:
    """The dataset of a file or of a store, with the options of ``add_common``.

    With ``filling``, that of the training data, missing values are filled in as they were there.
    Of a table, the features ``known`` by name are taken, in this order; it may lack labels unless
    it has to be ``labeled``.
    """
    from linrank.io.load import read
    from linrank.io.roles import IF_PRESENT, TableOptions

    check_data(path)
    missing = "keep" if filling is not None else getattr(args, "missing", None) or "error"
    columns = column_options(args)
    if columns["label"] is None and not (labeled and not getattr(args, "no_labels", False)):
        columns["label"] = IF_PRESENT
    how = {
        "storage": "auto",
        "n_features": None,
        "missing": missing,
        "zero_based": INDEX_BASE[args.index_base],
        **options,
    }
    with in_options(console):
        data = read(
            path,
            TableOptions(**columns, features=args.features, known=known),
            note=console.note,
            format=args.format,
            sidecars=not args.no_sidecars,
            dtype=args.dtype,
            n_jobs=args.jobs,
            progress=console.reading_progress(path),
            **judgment_options(args),
            **how,
        )
    console.clear()
    if data.index_base is None and args.index_base != "auto" and not os.path.isdir(path):
        raise ValueError(f"{path}: is a table, whose features have names; leave out --index-base")
    return data if filling is None else filling.dataset(data)


def column_options(args: Namespace) -> dict[str, Any]:
    """The columns of roles as given: a name, False for none, None by convention."""
    given = {role: getattr(args, role) for role in ROLES}
    return {role: False if value == NONE else value for role, value in given.items()}


def judgment_options(args: Namespace) -> dict[str, Any]:
    """The options as `linrank.load` takes them; a command may lack them."""
    qrels, unjudged = getattr(args, "qrels", None), getattr(args, "unjudged", None)
    if qrels is None and unjudged is not None:
        raise ValueError(f"--unjudged {unjudged} says what to do with --qrels, which is not given")
    return {} if qrels is None else {"qrels": qrels, "unjudged": unjudged or UNJUDGED[0]}


def like_data(data: Dataset, args: Namespace) -> dict[str, Any]:
    """How to read rows whose features are to be counted, named and filled in as those of others."""
    known = {"known": data.raw_feature_names, "filling": data.filling}
    return known | index_options(data.index_base, args)


def like_training(model: Model, args: Namespace) -> dict[str, Any]:
    """How to read rows that a model is to score: features are counted as in the training data.

    A file that happens to lack feature 0 would otherwise be taken to start at 1, and every feature
    would meet its neighbor's weight. Columns of a table are taken by the names that the model
    knows, in whatever order they come.
    """
    known = {"known": model.feature_names, "missing": missing_for([model], args)}
    return known | index_options(model.training.get("index_base"), args)


def check_qids(data: Dataset, other: Dataset) -> None:
    """Raise ValueError where one of two files has queries, and the other has not."""
    if (data.qid is None) != (other.qid is None):
        lacking = data if data.qid is None else other
        raise ValueError(f"{lacking.source} has no qid, the other file has; give both or neither")


def index_options(base: Any, args: Namespace) -> dict[str, Any]:
    """How features are counted: from the base that is known, unless the options say another."""
    return {} if base is None or args.index_base != "auto" else {"zero_based": base == 0}


def missing_for(models: Sequence[Model], args: Namespace) -> str:
    """How to read rows that models are to score: missing values stay if any model fills them in.

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


def read_and_score(
    model: Model, path: str, args: Namespace, console: Console, *, labeled: bool = True
) -> tuple[Dataset, Array]:
    """The dataset of a file, and the scores that the model gives its rows."""
    data = read_data(path, args, console, labeled=labeled, **like_training(model, args))
    return data, score_rows(model, data, args, console)


def score_rows(model: Model, data: Dataset, args: Namespace, console: Console) -> Array:
    """The scores of rows that were read as those that the model was trained on.

    Features that only one of the two knows count nothing.
    """
    from dataclasses import replace

    from linrank.data.rows import resized

    is_precomputed = getattr(getattr(model, "kernel", None), "name", None) == "precomputed"
    if is_precomputed or data.n_raw_features == model.n_features:
        return model.predict(data, n_jobs=args.jobs)
    if data.n_raw_features > model.n_features:
        console.warn(
            f"{data.source} has features that the model has not seen: it knows "
            f"{model.n_features:,}, the file {data.n_raw_features:,}; they count nothing"
        )
    if data.filling is None:  # else the model fills in as the data are, or refuses them
        rows = resized(data.rows, model.n_features)
        data = replace(data, rows=rows, feature_names=None)
    return model.predict(data, n_jobs=args.jobs)


def read_scores(path: str) -> Array:
    """One finite number per line, or the column ``score`` of a table; an error names the line."""
    from linrank.io.formats import table_format
    from linrank.io.sidecars import parse_numbers

    if table_format(path) is not None:
        return _score_column(path)
    name = "<stdin>" if path == STANDARD else path
    text = read_text(path)
    if not text.strip():
        raise ValueError(f"{name}: no scores; expected one number per line")
    hint = "; a model goes to --model" if text.startswith("{") else ""
    return parse_numbers(text, name, "finite score", hint)


def _score_column(path: str) -> Array:
    import numpy as np

    from linrank.io.load import load

    try:
        data = load(path, label=False, qid=False, docid=False, features="score", dtype="float64")
    except ValueError as error:
        raise ValueError(f"scores of a table are its column 'score': {error}") from None
    return np.asarray(data.X, dtype=np.float64)[:, 0]


def read_scores_of(path: str, data: Dataset) -> Array:
    """The same, one for every row of the data."""
    scores = read_scores(path)
    if len(scores) != data.n_rows:
        raise ValueError(
            f"{path} has {len(scores):,} scores, {data.source} has {data.n_rows:,} rows; one score "
            "per row is needed, in the same order"
        )
    return scores


# ---- what commands say of data ------------------------------------------------------------------


def describe_data(data: Dataset | Store) -> str:
    """Source and size in a line; of a store without reading it."""
    facts, where = _facts(data), getattr(data, "path", None) or getattr(data, "source", None)
    rows, pairs = count(facts["rows"], "row"), count(facts["pairs"], "pair")
    queries = count(facts["queries"], "query", "queries")
    no_qid = " (no qid)" if getattr(data, "qid", ()) is None else ""
    size = f"{facts['storage']}, {bytes_text(facts['bytes'])}"
    chunks = f" in {count(facts['chunks'], 'chunk')}" if "chunks" in facts else ""
    return f"{where}: {rows}, {queries}{no_qid}, {pairs}; {size}{chunks}"


def data_summary(data: Dataset | Store, args: Namespace) -> dict[str, Any]:
    """What the JSON reports say of the training data."""
    limit = {"memory_limit": args.memory_limit} if hasattr(data, "n_chunks") else {}
    return {"source": args.data, **_facts(data), **limit}


def _facts(data: Any) -> dict[str, Any]:
    if hasattr(data, "n_chunks"):
        kind = "CSR" if data.storage == "csr" else data.storage
        storage, n_bytes = f"{kind} {data.dtype}, {data.n_rows} × {data.n_features}", data.nbytes
        queries, more = data, {"chunks": data.n_chunks}
    else:
        storage, n_bytes = data.rows.describe(), data.rows.nbytes
        queries, more = data.queries, {}
    facts = {"rows": data.n_rows, "queries": queries.n_queries, "features": data.n_features}
    facts |= {"pairs": queries.n_pairs, "storage": storage, "bytes": int(n_bytes)}
    return facts | more


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


def without_labels(data: Dataset) -> Dataset:
    """The same rows, all of one label: no pair comes from the labels."""
    from dataclasses import replace

    import numpy as np

    return replace(data, labels=np.zeros(data.n_rows))


def resolve_bounds(parameters: Any, data: Dataset | Store) -> None:
    """Features, as --bounds, --increasing and --decreasing name them, become columns."""
    names = ("coef_bounds", "increasing", "decreasing")
    entries, *directions = (getattr(parameters, name, None) for name in names)
    if entries is None and not any(directions):
        return
    from linrank.io.store.store import Store, columns_of

    columns = columns_of(data) if isinstance(data, Store) else data
    for name, features in zip(names[1:], directions, strict=True):
        if features:
            setattr(parameters, name, [_column(f, columns, flag(name)) for f in features])
    if entries is not None:
        bounds = dict.fromkeys(range(columns.n_features), entries.get("*", (None, None)))
        own = {feature: pair for feature, pair in entries.items() if feature != "*"}
        bounds |= {_column(f, columns, "--bounds"): pair for f, pair in own.items()}
        parameters.coef_bounds = bounds


def _column(feature: str, data: Dataset, option: str) -> int:
    """The column of a feature by its name, or its number in the file."""
    names, base = data.feature_names or (), data.index_base or 0
    if feature in names:
        return names.index(feature)
    column = int(feature) - base if feature.isdecimal() else -1
    if not 0 <= column < data.n_features:
        raise ValueError(
            f"{option}: feature {feature} is not in the data, whose features are {base} to "
            f"{base + data.n_features - 1}"
        )
    return column
