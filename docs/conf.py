"""Configuration of the documentation (Sphinx); `make docs` builds it."""

import re

import linrank

project = "linrank"
author = "The linrank developers"
copyright = "The linrank developers"
version = release = linrank.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}  # autosummary writes .rst
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc docstrings say the types in words
numpydoc_show_class_members = False
# numpydoc reads "Attributes" of a class as cross references; ours are described where they stand.
numpydoc_attributes_as_param_list = True

html_theme = "pydata_sphinx_theme"
html_title = f"linrank {version}"
html_theme_options = {"show_prev_next": True, "navigation_with_keys": False}
html_show_sourcelink = False


# What scikit-learn adds to every estimator refers to labels of its own documentation.
FOREIGN = re.compile(r"(set_\w+_request|get_metadata_routing|[gs]et_params|set_output)")


def skip_foreign(app, what, name, obj, skip, options):
    """Leave members out that scikit-learn documents."""
    return True if FOREIGN.fullmatch(name) else skip


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", skip_foreign)
