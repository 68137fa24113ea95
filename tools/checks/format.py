#!/usr/bin/env python3
"""format.py [FILE...]: clang-format has nothing to change in these files, or in all C and C++ files."""

import subprocess
import sys

import project


def sources():
    return [str(project.ROOT / path) for path in project.files()
            if path.parts[0] in project.CODE_FOLDERS and path.suffix in (".h", ".cc", ".c")]


if __name__ == "__main__":
    style = f"--style=file:{project.ROOT}/.clang-format"
    command = ["clang-format", "--dry-run", "-Werror", style] + (sys.argv[1:] or sources())
    status = subprocess.run(command).returncode
    if status:
        print("format: `clang-format -i` on these files puts it right")
    sys.exit(1 if status else 0)
