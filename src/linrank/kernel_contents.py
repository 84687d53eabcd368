"""A kernel model as what its file holds, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linrank.checks import check_one_of
from linrank.data.rows import CsrRows, DenseRows
from linrank.kernels.functions import Kernel
from linrank.options import KERNELS
from linrank.scaling import Scaling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linrank.data.rows import Rows
    from linrank.model_file import KernelContents

__all__ = ["contents_of", "parts_of"]


def contents_of(model: Any) -> KernelContents:
    """What the file of a `KernelModel` is to hold."""
    from linrank.model_file import KernelContents

    kernel, rows = model.kernel, model.rows
    if kernel.name == "callable":
        raise ValueError(
            "a model whose kernel is a Python function cannot be saved, since a model file "
            "holds no code; train with kernel='precomputed' on the matrix of that function"
        )
    arrays: dict[str, NDArray[Any] | None] = {
        **{name: getattr(model, name) for name in ("coef", "phases", "support")},
        "factors": model.scaling.factors,
    }
    if isinstance(rows, DenseRows):
        arrays["rows"] = rows.values
    elif rows is not None:
        arrays |= {"values": rows.values, "columns": rows.columns, "offsets": rows.offsets}
    return KernelContents(
        {name: getattr(kernel, name) for name in ("name", "gamma", "degree", "coef0")},
        model.n_features,
        model.n_support,
        model.n_train,
        {key: array for key, array in arrays.items() if array is not None},
        model.feature_names,
        model.scaling.kind,
        model.training,
        model.linrank_version,
    )


def parts_of(contents: KernelContents) -> dict[str, Any]:
    """The fields of the `KernelModel` that a file holds, of which the model checks the rest."""
    check_one_of("kernel.name", contents.kernel["name"], (*KERNELS, "fourier"))
    arrays = contents.arrays
    rows: Rows | None = None
    if "rows" in arrays:
        rows = DenseRows(arrays["rows"])
    elif "values" in arrays:
        offsets = arrays["offsets"].astype(np.int64, copy=False)
        rows = CsrRows(arrays["values"], arrays["columns"], offsets, contents.n_features)
    return {
        "rows": rows,
        "coef": arrays["coef"],
        "kernel": Kernel(**contents.kernel),  # type: ignore[arg-type]
        "support": arrays.get("support"),
        "n_train": contents.n_train,
        "phases": arrays.get("phases"),
        "feature_names": contents.feature_names,
        "scaling": Scaling(contents.scaling, arrays.get("factors")),
        "training": contents.training,
        "linrank_version": contents.linrank_version,
    }
