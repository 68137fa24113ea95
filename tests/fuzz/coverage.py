#!/usr/bin/env python3
"""What the fuzz targets reach of the library, by file, in functions and in edges of its control flow. The
sanitizers' own checks are edges, too, most of which no input reaches: compare a file with itself.

    coverage.py BUILD

BUILD is a build with libFuzzer (build/asan, where Clang is installed) whose fuzz targets are built. Runs the
corpora and what earlier runs have found, once, and prints a table in Markdown.
"""

import collections
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FUNCTION = re.compile(r"^(?:UN)?COVERED_FUNC: hits: \d+ edges: (\d+)/(\d+) (.*) (\S+?):(\d+)$")


def reached(program, name):
    """The (reached, all) edges of each function of src/, by file and line."""
    found = program.parent / "found" / name
    folders = [str(folder) for folder in (HERE / "corpus" / name, found) if folder.is_dir()]
    done = subprocess.run([str(program), "-runs=0", "-print_coverage=1", *folders], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, errors="replace", check=True)
    functions = {}
    for line in done.stdout.splitlines():
        match = FUNCTION.match(line)
        if not match:
            continue
        hit, edges, _, file, at = match.groups()
        if not file.startswith(str(ROOT / "src")):
            continue
        file = file[len(str(ROOT)) + 1:]
        best = functions.get((file, at), (0, 0))
        functions[file, at] = max(best, (int(hit), int(edges)))
    return functions


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    programs = sorted(pathlib.Path(sys.argv[1]).resolve().glob("tests/fuzz/*_fuzz"))
    if not programs:
        sys.exit("{} has no fuzz targets: they need Clang's address sanitizer".format(sys.argv[1]))
    functions, targets = {}, collections.defaultdict(set)
    for program in programs:
        name = program.name[:-len("_fuzz")]
        for key, edges in reached(program, name).items():
            functions[key] = max(functions.get(key, (0, 0)), edges)
            if edges[0] > 0:
                targets[key[0]].add(name)
    files = collections.defaultdict(lambda: [0, 0, 0, 0])
    for (file, _), (hit, edges) in functions.items():
        files[file] = [old + new for old, new in zip(files[file], (hit > 0, 1, hit, edges))]
    print("| file | functions reached | edges | by |\n|---|---|---|---|")
    for file in sorted(targets):
        print("| {} | {} of {} | {} of {} | {} |".format(file, *files[file], ", ".join(sorted(targets[file]))))


main()
