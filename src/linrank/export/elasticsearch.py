"""Elasticsearch with the learning-to-rank plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linrank.export.ltr_plugin import write_plugin_model

if TYPE_CHECKING:
    from linrank.export.artefact import Artefact
    from linrank.export.linear_form import LinearForm

NORMALIZERS = True


def write(
    form: LinearForm, name: str, normalizers: str, *, featureset: str | None = None
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
    """
    return write_plugin_model(
        form, name, normalizers, target="elasticsearch", port=9200, featureset=featureset
    )
