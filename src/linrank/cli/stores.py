"""Stores on the command line: opened, and described without reading them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from linrank.cli.console import bytes_text, count

if TYPE_CHECKING:
    from linrank.io.store.store import Store


def open_store(args: argparse.Namespace, parser: argparse.ArgumentParser) -> Store:
    """The store at ``DATA``; options that say how to read text have no place here."""
    from linrank.io.store.store import Store

    store = Store(args.data)
    if args.index_base != "auto":
        parser.error("--index-base is for text; a store has its features numbered")
    if args.missing is not None:
        parser.error("--missing is decided when a store is written; leave it out")
    return store


def describe_store(store: Store) -> str:
    """Source and size of a store in a line."""
    return (
        f"{store.path}: {count(store.n_rows, 'row')}, "
        f"{count(store.n_queries, 'query', 'queries')}, {count(store.n_pairs, 'pair')}; "
        f"{_storage(store)}, {bytes_text(_nbytes(store))} in {count(store.n_chunks, 'chunk')}"
    )


def store_summary(store: Store, args: argparse.Namespace) -> dict[str, Any]:
    """What the JSON reports say of a store."""
    return {
        "source": args.data,
        "rows": store.n_rows,
        "queries": store.n_queries,
        "features": store.n_features,
        "pairs": store.n_pairs,
        "storage": _storage(store),
        "bytes": _nbytes(store),
        "chunks": store.n_chunks,
        "memory_limit": args.memory_limit,
    }


def _storage(store: Store) -> str:
    kind = "CSR" if store.storage == "csr" else store.storage
    return f"{kind} {store.dtype}, {store.n_rows} × {store.n_features}"


def _nbytes(store: Store) -> int:
    """Of the features."""
    return sum(chunk.nbytes for chunk in store.chunks)
