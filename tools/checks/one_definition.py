#!/usr/bin/env python3
"""one_definition.py BUILD: links libhmc in BUILD so that the compiler compares every type's definitions.

Two classes of one name in two files are undefined behaviour that neither the compiler of one file nor
the ordinary linker sees; link-time optimisation does.
"""

import os
import pathlib
import subprocess
import sys

import project

# Nothing is run, so nothing is optimised.
FLAGS = ["-O0", "-flto=auto", "-Werror=odr", "-Werror=lto-type-mismatch"]


def main():
    build = pathlib.Path(sys.argv[1])
    configure = ["cmake", "-S", str(project.ROOT), "-B", str(build), "-G", "Ninja",
                 "-DCMAKE_BUILD_TYPE=Debug", f"-DCMAKE_CXX_FLAGS_DEBUG={' '.join(FLAGS)}",
                 "-DHMC_BUILD_TOOLS=OFF"]
    done = subprocess.run(configure, stdout=subprocess.DEVNULL)
    if done.returncode == 0:
        done = subprocess.run(["cmake", "--build", str(build), "-j", str(os.cpu_count()), "--target", "hmc"])
    print(f"one_definition: {'no complaints' if done.returncode == 0 else 'see above'}")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
