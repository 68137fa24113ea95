#!/usr/bin/env python3
"""kernels.py [--write]: does every *.ptx.inc of src/ still say what its *.cu says?

clang makes them, without a toolkit of the vendor's; --write makes them anew. Other versions of clang than
the one below write other text, so there the check is left out, and says so.
"""

import pathlib
import subprocess
import sys

import project

VERSION = "14"
COMPILER = f"clang-{VERSION}"
FLAGS = ["-x", "cuda", "-nocudainc", "-nocudalib", "--cuda-device-only", "--cuda-gpu-arch=sm_70", "-std=c++17",
         "-O3", "-Wno-unknown-cuda-version", "-S", "-o", "-"]


def compiled(source):
    """What the file that is kept beside a kernel should hold."""
    ptx = subprocess.run([COMPILER, *FLAGS, source.name], cwd=source.parent, check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return (f"// Made of {source.name} by tools/checks/kernels.py --write: edit that.\n"
            f'R"ptx({ptx.strip()}\n)ptx"\n')


def main():
    try:
        subprocess.run([COMPILER, "--version"], check=True, stdout=subprocess.DEVNULL)
    except OSError:
        print(f"kernels: NOT CHECKED: {COMPILER} is not installed")
        return
    complaints = []
    for path in project.files():
        if path.suffix != ".cu" or path.parts[0] != "src":
            continue
        source = project.ROOT / path
        kept = source.with_suffix(".ptx.inc")
        text = compiled(source)
        if "--write" in sys.argv:
            kept.write_text(text)
        elif not kept.exists() or kept.read_text() != text:
            complaints.append(f"{path}: {kept.name} is not what {COMPILER} makes of it: run {pathlib.Path(__file__).name} --write")
    project.report("kernels", complaints)


if __name__ == "__main__":
    main()
