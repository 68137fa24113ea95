#!/usr/bin/env python3
"""A compiler launcher that takes what another build folder has compiled already.

    borrow_objects.py BUILD COMPILER ARGUMENTS...

Tests that make a wheel, or the static library, in a copy of the project begin with the same files as
the build folder that they belong to. An object is taken from there if it was made with the same
arguments (but those about optimisation) and from files of the same content, and is not older than
these. Anything else is compiled, without optimisation: so a file that is missing in the copy, or a
flag that differs, has the same effect as without this. What was compiled is listed in the build
folder's compiled.txt.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

# How quick the code is, how it is protected, and how it can be debugged: not what it does.
IGNORED = re.compile(r"-O.*|-g\d?|-DNDEBUG|-finline-small-functions|-MM?D|--param=ggc-.*"
                     r"|-[DU]_FORTIFY_SOURCE.*")


class Tree:
    """A build folder and the sources that it was configured for."""

    def __init__(self, build):
        cache = (build / "CMakeCache.txt").read_text()
        self.build = str(build)
        self.source = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache, re.M)[1]

    def general(self, text):
        """The text without the names of these folders."""
        return text.replace(self.build, "@build").replace(self.source, "@source")

    def own(self, text):
        return text.replace("@build", self.build).replace("@source", self.source)

    def content(self, general):
        data = pathlib.Path(self.own(general)).read_bytes()
        for folder, name in ((self.build, b"@build"), (self.source, b"@source")):
            data = data.replace(folder.encode(), name)
        return data


def meaning(tree, arguments):
    """The arguments that decide what an object does, in a form that two trees share."""
    kept, words = [], iter(arguments)
    for word in words:
        if word in ("-o", "-MF", "-MT"):
            next(words)
        elif not IGNORED.fullmatch(word):
            kept.append(tree.general(word))
    return kept


def compiled_there(lender, name):
    """The arguments with which the lender compiled an object, without what it launched that with."""
    commands = json.loads((pathlib.Path(lender.build) / "compile_commands.json").read_text())
    for entry in commands:
        words = shlex.split(entry["command"])
        if "-o" in words and words[words.index("-o") + 1] == name:
            return words
    return []


def read_there(lender, name):
    """The files of the project that an object was made from, or nothing if ninja would make it anew."""
    said = subprocess.run(["ninja", "-C", lender.build, "-t", "deps", name], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    head, *lines = said.rstrip("\n").split("\n")
    if not head.endswith("(VALID)"):
        return []
    paths = [os.path.normpath(os.path.join(lender.build, line.strip())) for line in lines]
    ours = [path for path in paths if lender.general(path) != path and not path.endswith(".gch")]
    made = os.stat(os.path.join(lender.build, name)).st_mtime
    return ours if all(os.stat(path).st_mtime <= made for path in ours) else []


def borrow(lender, own, compiler, arguments):
    """Whether the object that the arguments name is there now."""
    output = os.path.abspath(arguments[arguments.index("-o") + 1])
    name = os.path.relpath(output, own.build)
    there = compiled_there(lender, name)
    if compiler not in there:
        return False
    if meaning(lender, there[there.index(compiler) + 1:]) != meaning(own, arguments):
        return False
    files = [lender.general(path) for path in read_there(lender, name)]
    if not files or any(own.content(file) != lender.content(file) for file in files):
        return False
    shutil.copyfile(os.path.join(lender.build, name), output)
    if "-MF" in arguments:
        depends = pathlib.Path(arguments[arguments.index("-MF") + 1])
        depends.write_text("{}: {}\n".format(output, arguments[-1]))
    return True


def main():
    lender, compiler, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    build = next((folder for folder in [pathlib.Path.cwd(), *pathlib.Path.cwd().parents]
                  if (folder / "CMakeCache.txt").exists()), None)
    if build and "-o" in arguments and "-c" in arguments:
        try:
            if borrow(Tree(pathlib.Path(lender)), Tree(build), compiler, arguments):
                return
        except (OSError, subprocess.CalledProcessError):
            pass  # the other folder, or this one, has no such thing
        with open(build / "compiled.txt", "a") as listed:
            listed.write(arguments[-1] + "\n")
    # What _FORTIFY_SOURCE does needs optimisation.
    os.execvp(compiler, [compiler, *arguments, "-U_FORTIFY_SOURCE", "-O0"])


if __name__ == "__main__":
    main()
