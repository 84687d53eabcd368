"""Outline: what the parts of a data set have in common, known before the first row is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linrank.data.dataset import Dataset

__all__ = ["ROLES", "Outline", "ids_of"]

Array = NDArray[Any]
ROLES = ("label", "qid", "docid", "weight", "position")


@dataclass(frozen=True)
class Outline:
    """How rows are written.

    Attributes
    ----------
    n_features : int
    dtype : float32 or float64
        Of the values.
    is_sparse : bool
        Whether only entries are written, or all values.
    names : tuple of str or None
        Of the features.
    base : int
        The number of the first feature where it has no name, 0 or 1.
    id_type : dtype or None
        Integers, floats, or object for strings; None without query ids.
    has_weight, has_docids : bool
    position_type : dtype or None
    """

    n_features: int
    dtype: np.dtype[Any]
    is_sparse: bool
    names: tuple[str, ...] | None
    base: int
    id_type: np.dtype[Any] | None
    has_weight: bool
    has_docids: bool
    position_type: np.dtype[Any] | None

    @classmethod
    def of(cls, data: Dataset, storage: str = "auto") -> Outline:
        """The outline of a dataset; ``storage`` "dense" or "csr" overrides how it is stored."""
        if storage not in ("auto", "dense", "csr"):
            raise ValueError(f"storage must be 'auto', 'dense' or 'csr', got {storage!r}")
        position = getattr(data, "position", None)
        return cls(
            data.n_features,
            data.rows.dtype,
            data.rows.is_sparse if storage == "auto" else storage == "csr",
            data.feature_names,
            _base(data),
            None if data.qid is None else ids_of(data.qid).dtype,
            data.weight is not None,
            data.comments is not None,
            None if position is None else position.dtype,
        )

    def check(self, data: Dataset) -> None:
        """Raise ValueError where another part is not like the first."""
        own = replace(Outline.of(data), is_sparse=self.is_sparse, base=self.base)
        if own != self:
            for name, value in vars(self).items():
                if getattr(own, name) != value:
                    raise ValueError(
                        f"{data.source}: {name} is {getattr(own, name)}, but {value} in the parts "
                        "before; all parts must be alike"
                    )

    def column_names(self) -> list[str]:
        """A name for each feature, none twice, none that another column has."""
        if self.names is None:
            return [f"f{j}" for j in range(self.base, self.base + self.n_features)]
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise ValueError(
                    f"two features are called {name!r}; the columns of a table need different "
                    "names: rename one, or write SVMlight text, which has numbers only"
                )
            if name in ROLES:
                raise ValueError(
                    f"a feature is called {name!r}, as the column of that name will be; rename it"
                )
            seen.add(name)
        return list(self.names)


def _base(data: Dataset) -> int:
    """The number of the first feature: that of the file, or by names that are numbers; else 1."""
    if data.index_base is not None:
        return data.index_base
    names = data.feature_names
    if names is None or any(name != f"f{j}" for j, name in enumerate(names)):
        return 1
    return 0


def ids_of(qid: Array) -> Array:
    """Query ids as integers, floats or an object array of strings; TypeError for others.

    Examples
    --------
    >>> ids_of(np.array(["a", "b"])).dtype, ids_of(np.array([3, 4], dtype=object)).dtype
    (dtype('O'), dtype('int64'))
    """
    if qid.dtype.kind in "b":
        return qid.astype(np.int64)
    if qid.dtype.kind in "iuf":
        return qid
    if qid.dtype.kind == "U":
        return qid.astype(object)
    kinds = {type(item) for item in qid.tolist()}
    if kinds <= {str}:
        return qid.astype(object)
    if kinds <= {int} or kinds <= {int, bool}:
        return np.array(qid.tolist(), np.int64)
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise TypeError(
        f"query ids are of type {names}; files hold all strings or all numbers: convert them, as "
        "in qid.astype(str)"
    )
