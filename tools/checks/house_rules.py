#!/usr/bin/env python3
"""Rules about the text of files: none too long, nothing left for later, no sleep, no exit."""

import re

import project

LONGEST = 400
SOURCES = {".h", ".cc", ".c", ".py", ".sh", ".cmake"}

# Before the name of a function: a call, not a member's or a declaration's name.
CALLED = r"(?<![\w.>])(?<!void )(?<!bool )(?<!Status )"

# What is said about a match, the pattern, the folders it holds for. The words that are banned
# everywhere are put together here so that this file does not contain them.
BANNED = [
    ("finish it, or write it down in docs/", r"\b(" + "TO" + r"DO|FIX" + r"ME|X" + r"XX)\b", None),
    ("that name belongs to another project on the public index: say `pip install .`",
     r"\bpip3?\s+install\b[^`#;|&]*?(?<![\w./*-])hmc(?![\w/*-])(?!\.\w)", None),
    ("wait for the event, not for time to pass",
     r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|" + CALLED + r"(time\.|::)?sleep\s*\(",
     ("src", "tests")),
    ("a library does not end its user's process",
     CALLED + r"(::|std::)?(exit|_exit|quick_exit|abort|atexit|terminate)\s*\(", ("src",)),
    ("a library leaves signals to its user", CALLED + r"(::|std::)?(signal|sigaction|raise)\s*\(\s*SIG",
     ("src",)),
    ("a library does not write to standard output",
     r"\bstd::cout\b|" + CALLED + r"(::|std::)?(printf|puts|putchar)\s*\(|\bfmt::print\s*\(\s*\"",
     ("src",)),
]


def is_source(path):
    return path.suffix in SOURCES or path.name in ("CMakeLists.txt", "Makefile")


def without_comment(text):
    return re.sub(r"//.*", "", text)


def line_complaints(path, number, text):
    for advice, pattern, folders in BANNED:
        if folders is not None and path.parts[0] not in folders:
            continue
        match = re.search(pattern, text if folders is None else without_comment(text))
        if match:
            yield f"{path}:{number}: {match[0].strip()}: {advice}"


def complaints(root=project.ROOT):
    found = []
    for path in project.files(root):
        if not is_source(path) and path.suffix != ".md":
            continue
        lines = project.lines(path, root)
        if is_source(path) and len(lines) > LONGEST:
            found.append(f"{path}: {len(lines)} lines, {LONGEST} are the most; split it by concept")
        for number, text in lines:
            found += line_complaints(path, number, text)
    return found


if __name__ == "__main__":
    project.report("house_rules", complaints())
