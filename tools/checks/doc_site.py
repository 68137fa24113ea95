#!/usr/bin/env python3
"""The site that `make docs` builds leaves nothing out: pages, public headers, the package's names.

Sphinx checks the rest, and is not installed everywhere.
"""

import ast
import pathlib
import re

import project

# What is not for users, or described elsewhere: `hmc.errors` is shown as a whole.
NOT_SHOWN = {"__version__", "status_t"}


def text(root, name):
    path = root / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def pages(root):
    index = text(root, "docs/index.md").split()
    for page in sorted((root / "docs").glob("*.md")):
        if page.stem != "index" and page.stem not in index:
            yield f"docs/index.md: docs/{page.name} is in no toctree"


def headers(root):
    for folder, page in ("hmc", "cpp"), ("smem/host", "c"):
        shown = set(re.findall(r"\{doxygenfile\} (\S+)", text(root, f"docs/reference/{page}.md")))
        there = {f"{folder}/{path.name}" for path in (root / "include" / folder).glob("*.h")
                 if folder != "hmc" or "namespace hmc" in path.read_text(encoding="utf-8")}
        for name in sorted(shown ^ there):
            what = "is not shown" if name in there else "does not exist"
            yield f"docs/reference/{page}.md: include/{name} {what}"


def names(root):
    shown = set(re.findall(r"^\.\. auto(?:class|function):: (\w+)", text(root, "docs/reference/python.md"), re.M))
    there = set()
    for node in ast.walk(ast.parse(text(root, "python/hmc/__init__.py"))):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            there |= set(ast.literal_eval(node.value)) - NOT_SHOWN
    for node in ast.parse(text(root, "python/hmc/__init__.py")).body:
        if isinstance(node, ast.ImportFrom) and node.module == "errors":
            there -= {alias.name for alias in node.names}
    for name in sorted(shown ^ there):
        yield f"docs/reference/python.md: hmc.{name} {'is not shown' if name in there else 'is not in __all__'}"


def complaints(root=project.ROOT):
    root = pathlib.Path(root)
    return [*pages(root), *headers(root), *names(root)]


if __name__ == "__main__":
    project.report("doc_site", complaints())
