#!/usr/bin/env python3
"""What the documentation points at exists: relative links, their anchors, and `paths` in the text."""

import pathlib
import re

import project

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
CODE_SPAN = re.compile(r"`([^`]+)`")
PATH = re.compile(r"[\w.\-]+(/[\w.\-*]*)+")
# `src/transport/NAME/NAME.h` is advice, not a place.
PLACEHOLDER = re.compile(r"(^|/)[A-Z]{3,}(\.(h|cc))?(/|$)")
HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*$")


def is_document(path):
    return path.suffix == ".md" and (len(path.parts) == 1 or path.parts[0] == "docs")


def prose(path, root):
    """The lines outside fenced blocks."""
    fenced = False
    for number, text in project.lines(path, root):
        if text.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, text


def anchors(path, root):
    """The fragments that GitHub makes of a page's headings."""
    found = set()
    for _, text in prose(path, root):
        heading = HEADING.match(text)
        if heading:
            words = re.sub(r"[^\w\- ]", "", heading[1].lower())
            found.add(words.replace(" ", "-"))
    return found


def link_complaint(path, target, root):
    if re.match(r"[a-z]+:", target):
        return None
    name, _, fragment = target.partition("#")
    page = (root / path).parent / name if name else root / path
    if not page.exists():
        return f"the link {target} leads nowhere"
    if fragment and page.suffix == ".md" and fragment not in anchors(page, root):
        return f"{name or path} has no heading for #{fragment}"
    return None


def bases(path, root):
    """Where a path in the text may start."""
    return [root, root / "src", root / "include", (root / path).parent]


def path_complaint(path, span, root, tops):
    """Only what starts with one of the project's folders is taken for a path."""
    if not PATH.fullmatch(span) or span.split("/")[0] not in tops or PLACEHOLDER.search(span):
        return None
    for base in bases(path, root):
        if "*" in span and any(base.glob(span)):
            return None
        # `memory/copy` may stand for the header and its source.
        if "*" not in span and ((base / span).exists() or (base / f"{span}.h").exists()):
            return None
    return f"`{span}` does not exist"


def folders(files):
    """Top folders of the project and, since includes start there, of src/ and include/."""
    tops = {path.parts[0] for path in files if len(path.parts) > 1}
    return tops | {path.parts[1] for path in files
                   if path.parts[0] in ("src", "include") and len(path.parts) > 2}


def complaints(root=project.ROOT):
    root = pathlib.Path(root)
    files = project.files(root)
    tops = folders(files)
    found = []
    for path in filter(is_document, files):
        for number, text in prose(path, root):
            reasons = [link_complaint(path, target, root) for target in LINK.findall(text)]
            reasons += [path_complaint(path, span, root, tops) for span in CODE_SPAN.findall(text)]
            found += [f"{path}:{number}: {reason}" for reason in reasons if reason]
    return found


if __name__ == "__main__":
    project.report("doc_links", complaints())
