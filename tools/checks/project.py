"""What the checks share: which files the project has, and how a check reports."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE_FOLDERS = ("src", "include", "tests", "tools", "apps", "bench", "examples", "python")


def files(root=ROOT):
    """The project's files as paths relative to `root`: what git tracks or would track; without git,
    everything but build and hidden folders."""
    git = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"]
    if pathlib.Path(root, ".git").exists():
        names = subprocess.run(git, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\0")
        return sorted(pathlib.Path(name) for name in names if name and pathlib.Path(root, name).is_file())
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith((".", "build"))]
        found += [pathlib.Path(folder, name).relative_to(root) for name in names]
    return sorted(found)


def lines(path, root=ROOT):
    """(number, text) of each line of a text file."""
    text = pathlib.Path(root, path).read_text(encoding="utf-8", errors="replace")
    return list(enumerate(text.splitlines(), start=1))


def report(name, complaints):
    """Prints the complaints and ends the program: status 1 when there are any."""
    for complaint in complaints:
        print(complaint)
    print(f"{name}: {len(complaints) or 'no'} complaints")
    sys.exit(1 if complaints else 0)
