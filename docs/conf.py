"""Sphinx configuration: Markdown pages by MyST, the API from the docstrings."""

from keisei import __version__

project = "Keisei"
author = "The Keisei authors"
copyright = "2026, The Keisei authors"
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Keisei {release}"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
default_role = "py:obj"
# Short names such as `plies` are fields of several classes: a link to any of them will do.
suppress_warnings = ["ref.python"]
