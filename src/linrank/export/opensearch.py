"""OpenSearch with the learning-to-rank plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linrank.export.ltr_plugin import write_plugin_model

if TYPE_CHECKING:
    from linrank.export.artefact import Artefact
    from linrank.export.linear_form import LinearForm

NORMALIZERS = True
CURVES = True


def write(
    form: LinearForm,
    name: str,
    normalizers: str,
    *,
    featureset: str | None = None,
    tolerance: Any = None,
    steps: Any = None,
) -> Artefact:
    """The body of ``POST _ltr/_featureset/FEATURESET/_createmodel``.

    Parameters
    ----------
    form : LinearForm
        The model.
    name : str
        What the model is to be called.
    normalizers : {"folded", "engine"}
        Whether the plugin scales the features.
    featureset : str or None
        The feature set that the model belongs to; that of the model's name by default.
    tolerance, steps : float or None, int or None
        Of curves, which are written as steps: how far these may be from a curve, or how many there
        may be in all (default: 1000).
    """
    return write_plugin_model(
        form,
        name,
        normalizers,
        target="opensearch",
        port=9200,
        featureset=featureset,
        tolerance=tolerance,
        steps=steps,
    )
