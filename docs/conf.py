"""Settings of Sphinx. It and what it needs come with: pip install "ranktune[docs]"."""

from __future__ import annotations

import warnings
from importlib.metadata import version as version_of
from importlib.util import find_spec

import matplotlib.pyplot as plt
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx_gallery.sorting import ExplicitOrder, FileNameSortKey

from ranktune.docs.benchmark_pages import write_benchmark_pages, write_summaries
from ranktune.docs.generated import write_pages
from ranktune.docs.live_report import write_live_report
from ranktune.docs.pages import FOLDER

project = "RankTune"
author = "The RankTune developers"
copyright = "2026, The RankTune developers. Licence: Apache-2.0"
release = version = version_of("ranktune")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "gallery", "benchmarks/about"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings give types in words
autodoc_mock_imports = [name for name in ("dask", "distributed", "ray") if find_spec(name) is None]
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"
smartquotes = False  # quotes of docstrings are those of Python


html_theme = "pydata_sphinx_theme"
html_title = "RankTune"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars: dict[str, list[str]] = {
    "tutorial/index": [],
    "coming_from/index": [],
    "whats_new": [],
}  # the only pages of their sections
html_theme_options = {
    "show_prev_next": True,
    "navbar_align": "left",
    "navbar_persistent": [],
    "navbar_end": ["search-button", "theme-switcher"],
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": [],
}
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True


def _style(settings: object, script: object) -> None:
    """Give all figures of the gallery one look. Settings of a script do not reach the next one."""
    plt.rcParams.update(
        {
            "font.size": 11,
            "axes.titlesize": 12,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "0.9",
            "legend.frameon": False,
        }
    )


SECTIONS = ("data", "solvers", "tuning", "evaluating", "serving")
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"plot_",
    "subsection_order": ExplicitOrder([f"gallery/{name}" for name in SECTIONS]),
    "within_subsection_order": FileNameSortKey,
    "reset_modules": ("matplotlib", _style),
    "image_srcset": ["2x"],
    "thumbnail_size": (490, 285),
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 0,
    "capture_repr": ("_repr_html_", "__repr__"),
    "copyfile_regex": r".*\.csv",
}
suppress_warnings = ["config.cache"]
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

nitpick_ignore_regex = [("py:.*", r".*")]  # types in numpydoc are words: "array-like of shape (n,)"


def _inline(writer, node) -> None:  # type: ignore[no-untyped-def]
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _display(writer, node) -> None:  # type: ignore[no-untyped-def]
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def _without_addresses(app: Sphinx, document: nodes.document) -> None:
    """Leave ndcg@10 a text: docutils takes it for an address of electronic mail."""
    for link in list(document.findall(nodes.reference)):
        if str(link.get("refuri", "")) == f"mailto:{link.astext()}":
            link.replace_self(nodes.Text(link.astext()))


def _live_report(app: Sphinx) -> None:
    path = FOLDER / "_static" / "live" / "report.html"
    if app.config.plot_gallery is True or not path.exists():
        write_live_report(path)


def setup(app: Sphinx) -> None:
    """Write equations as MathML, which browsers draw without a script and without a network; and a report, which is shown."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    app.connect("builder-inited", _live_report)
    app.connect("doctree-read", _without_addresses)


html_math_renderer = "mathml"
write_pages()
write_benchmark_pages()
write_summaries()
