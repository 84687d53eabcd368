"""Configuration of the documentation (Sphinx); `make docs` builds it."""

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
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
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
