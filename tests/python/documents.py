"""Where the documents lie, and the blocks of code in them."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def seeds(number):
    """The pages of the original documentation, where they lie beside this checkout."""
    return sorted((ROOT.parent / "shared" / "seeds").glob(number + "_*.txt"))


def blocks(text, language):
    """(line number, text) of every fenced block of that language."""
    found = []
    for match in re.finditer(r"^```" + language + r"\n(.*?)^```", text, re.S | re.M):
        found.append((text.count("\n", 0, match.start()) + 2, match[1]))
    return found
