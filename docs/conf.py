"""Configuration of the documentation (Sphinx); `make docs` builds it."""

import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import linrank

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "reproduce" / "results"
# MathJax as one file, which draws formulas as SVG: pages need neither a network nor fonts.
MATHJAX = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax/tex-svg-full.js"

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
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}  # autosummary writes .rst
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc docstrings say the types in words
numpydoc_show_class_members = False
# numpydoc reads "Attributes" of a class as cross references; ours are described where they stand.
numpydoc_attributes_as_param_list = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",  # all are run, those without a picture too
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "reset_modules": ("matplotlib",),
    "capture_repr": (),  # what an example prints, it prints
}

html_theme = "pydata_sphinx_theme"
html_title = f"linrank {version}"
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}  # light or dark as the reader has it
html_static_path = ["_static", str(MATHJAX)]
html_css_files = ["site.css"]
html_show_sourcelink = False
mathjax_path = MATHJAX.name


# What scikit-learn adds to every estimator refers to labels of scikit-learn's documentation.
FOREIGN = re.compile(r"(set_\w+_request|get_metadata_routing|[gs]et_params|set_output)")


def skip_foreign(app, what, name, obj, skip, options):
    """Leave members out that scikit-learn documents."""
    return True if FOREIGN.fullmatch(name) else skip


def copy_results(app):
    """The pages of reproduced tables, with their figures, become pages of the site."""
    target = DOCS / "reproduced"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(RESULTS, target)


def adapt_results(app, docname, source):
    """Link the tables of the overview to their pages, where an optimum F* is no emphasis."""
    if docname.startswith("reproduced/"):
        source[0] = source[0].replace("F*", "F\\*")
    if docname == "reproduction":
        source[0] = re.sub(
            r"^\| `([\w-]+)` ",
            lambda m: (
                f"| [`{m[1]}`](reproduced/{m[1]}.md) "
                if (RESULTS / f"{m[1]}.md").exists()
                else m[0]
            ),
            source[0],
            flags=re.MULTILINE,
        )


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("builder-inited", copy_results)
    app.connect("source-read", adapt_results)
