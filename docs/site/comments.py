#!/usr/bin/env python3
"""comments.py HEADER: prints a header as doxygen wants it, with our plain comments as documentation.

A comment above a declaration documents it, one behind it as well. The first comment of a file that
stands alone is about the file. The namespace hmc goes, because Breathe would declare
it once for each header, and so does what is private.
"""

import re
import sys

ALONE = re.compile(r"(\s*)//(?!/)(.*)")
BEHIND = re.compile(r"(\s*[^\s}#].*\S\s+)//(?![/<])(?! NOLINT)(.*)")
PRIVATE = re.compile(r"^( *) private:\n.*?(?=^\1\};)", re.M | re.S)
NAMESPACE = re.compile(r"^(namespace hmc \{|\}  // namespace hmc)$", re.M)
C_COMMENT = re.compile(r"^([ \t]*)/\*(?![*!])", re.M)
C_BEHIND = re.compile(r"(\S[ \t]*)/\*(?![*!])([^\n]*\*/)$", re.M)


def without_tags(comment):
    """<id> is no HTML."""
    return re.sub(r"<(?=[a-z])", r"\\<", comment)


def marked(lines):
    """C++'s comments. Those that go on below the one behind a declaration stand in its column."""
    column = None
    for line in lines:
        alone, behind = ALONE.fullmatch(line), BEHIND.fullmatch(line)
        if alone:
            mark = "///<" if len(alone[1]) == column else "///"
            yield alone[1] + mark + without_tags(alone[2])
            continue
        column = len(behind[1]) if behind else None
        yield behind[1] + "///<" + without_tags(behind[2]) if behind else re.sub(r"\s*// NOLINT.*", "", line)


def about_the_file(text):
    """The first comment, where an empty line follows it."""
    cpp = re.compile(r"\A(#pragma once\n\n)((?:///.*\n)+)(?=\n)")
    c = re.compile(r"\A(#ifndef .*\n#define .*\n\n)/\*\*(.*?\*/\n)(?=\n)", re.S)
    text = cpp.sub(lambda found: found[1] + "/// \\file\n" + found[2], text)
    return c.sub(lambda found: found[1] + "/** \\file\n" + found[2], text)


def documented(text):
    text = PRIVATE.sub("", NAMESPACE.sub("", text))
    text = C_BEHIND.sub(r"\1/**<\2", C_COMMENT.sub(r"\1/**", text))
    return about_the_file("\n".join(marked(text.split("\n"))))


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        sys.stdout.write(documented(header.read()))
