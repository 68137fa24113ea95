#!/usr/bin/env python3
"""tidy.py BUILD [FILE...]: clang-tidy over these files, or over all of src/, as BUILD compiles them."""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

import project

# A batch of a unity build includes the files that it compiles: they are checked like headers. The headers
# in include/smem are C.
OPTIONS = ["--quiet", "--header-filter=/(src/.*|include/(hmc/.*)?)[^/]*\\.(h|cc)$",
           "--checks=-bugprone-suspicious-include"]


def sources(build):
    """What BUILD compiles of src/: single files, and batches of a unity build."""
    entries = json.loads(pathlib.Path(build, "compile_commands.json").read_text())
    paths = {pathlib.Path(entry["directory"], entry["file"]).resolve() for entry in entries}
    return sorted(path for path in paths
                  if any(project.ROOT / "src" in source.parents for source in compiled(path)))


def compiled(path):
    """The source files that compiling this one compiles."""
    if not path.name.startswith("unity_"):
        return {path}
    return {pathlib.Path(name) for name in re.findall(r'^#include "(.*)"$', path.read_text(), re.M)}


def tidy(build, path):
    """(path, what clang-tidy found or None)"""
    command = ["clang-tidy", "-p", str(build), *OPTIONS, str(path)]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode == 0:
        return path, None
    # Standard error has counts of suppressed warnings, and the reason when it could not run at all.
    return path, done.stdout or done.stderr


def main():
    build = sys.argv[1]
    paths = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or sources(build)
    if not paths:
        sys.exit(f"tidy: {build}/compile_commands.json names no file of src/")
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, findings in pool.map(lambda path: tidy(build, path), paths):
            if findings:
                bad += 1
                print(f"-- {path.relative_to(project.ROOT) if project.ROOT in path.parents else path}")
                print(findings, flush=True)
    print(f"tidy: {bad or 'no'} complaints in {len(paths)} files")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
