"""The site that `make docs` builds from docs/, the package's docstrings and the public headers."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "HMC"
version = release = re.search(r'kVersion = "([^"]+)"', (ROOT / "include/hmc/version.h").read_text())[1]
copyright = "the authors of HMC"
extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
exclude_patterns = ["site"]
highlight_language = "text"
smartquotes = False
html_theme = "furo"
html_title = "HMC " + release
html_static_path = ["static"]
html_css_files = ["hmc.css"]
html_copy_source = False
html_show_sphinx = False

# Anchors are those that code hosts make, so that a link works in both places.
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}

breathe_projects = {"hmc": str(ROOT / "build/docs/doxygen/xml")}
breathe_default_project = "hmc"
breathe_show_include = False
breathe_domain_by_file_pattern = {"*/smem/*": "c", "smem*": "c"}
cpp_id_attributes = c_id_attributes = ["HMC_API", "SMEM_API"]


def escaped(line):
    """Plain text with `code` in it, as reStructuredText."""
    pieces = line.split("`")
    pieces[::2] = [re.sub(r"([*_|\\])", r"\\\1", piece) for piece in pieces[::2]]
    return "``".join(pieces)


def plain_docstring(app, what, name, obj, options, lines):
    """Our docstrings are plain text. A line `name  meaning` describes a parameter; what follows it,
    indented, belongs to it. A line that begins with `with` is code."""
    found, inside = [], False
    for line in lines:
        parameter = re.fullmatch(r"(\w+(?:, \w+)*) {2,}(\S.*)", line)
        if parameter:
            found += ["``%s``" % parameter[1], "    " + escaped(parameter[2])]
        elif inside and line.startswith(" "):
            found.append("    " + escaped(line.strip()))
        elif line.startswith("with hmc."):
            found += ["::", "", "    " + line, ""]
        else:
            found.append(escaped(line))
        inside = bool(parameter) or (inside and line.startswith(" "))
    lines[:] = found


def setup(app):
    app.connect("autodoc-process-docstring", plain_docstring)
