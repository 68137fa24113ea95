"""Every Python block of README.md and docs/ runs.

The blocks of a page are one program, in their order. Blocks that begin with a file's name are
programs of their own: the first prints its address, and the next one gets it as an argument.
"""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

import documents

PAGES = [documents.ROOT / "README.md"] + sorted((documents.ROOT / "docs").glob("*.md"))
FILE = re.compile(r"# (\w+\.py)\n")


def in_files(page):
    """Pairs of programs."""
    named = [text for _, text in documents.blocks(page.read_text(), "python") if FILE.match(text)]
    assert len(named) % 2 == 0, "a program without its peer in {}".format(page)
    return list(zip(named[::2], named[1::2]))


def in_order(page):
    """One program, each line at its place in the page, so that an error names the page's line."""
    lines = []
    for number, text in documents.blocks(page.read_text(), "python"):
        if FILE.match(text) or not importable(text):
            continue
        lines += [""] * (number - 1 - len(lines)) + text.splitlines()
    return "\n".join(lines) + "\n" if lines else None


def importable(text):
    wanted = re.findall(r"^import (torch)$", text, re.M)
    return all(importlib.util.find_spec(name) for name in wanted)


def environment():
    return dict(os.environ, HMC_LOG="error")


TOURS = [page for page in PAGES if in_order(page)]
PAIRS = [(page, pair) for page in PAGES for pair in in_files(page)]


def test_there_are_blocks_to_run():
    assert "python.md" in [page.name for page in TOURS]
    assert "README.md" in [page.name for page, _ in PAIRS]


@pytest.mark.parametrize("page", TOURS, ids=lambda page: page.name)
def test_a_page_runs_from_top_to_bottom(page, tmp_path):
    program = tmp_path / page.name
    program.write_text(in_order(page))
    done = subprocess.run([sys.executable, str(program)], stdout=subprocess.PIPE, timeout=240,
                          stderr=subprocess.STDOUT, text=True, cwd=str(tmp_path), env=environment())
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page, pair", PAIRS, ids=lambda value: getattr(value, "name", ""))
def test_two_programs_of_a_page_meet(page, pair, tmp_path):
    for text in pair:
        (tmp_path / FILE.match(text)[1]).write_text(text)
    first, second = [[sys.executable, FILE.match(text)[1]] for text in pair]
    with subprocess.Popen(first, stdout=subprocess.PIPE, text=True, cwd=str(tmp_path),
                          env=environment()) as receiver:
        try:
            address = receiver.stdout.readline().strip()
            subprocess.run(second + [address], check=True, timeout=120, cwd=str(tmp_path),
                           env=environment())
            heard, _ = receiver.communicate(timeout=120)
            assert receiver.returncode == 0
        finally:
            receiver.kill()
    promised = re.search(r"prints `([^`]+)`", page.read_text().split(pair[1])[1])
    assert promised and heard.strip() == promised[1]
