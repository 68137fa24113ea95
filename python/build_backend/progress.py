"""Shows on the terminal how far a build is, because pip keeps to itself what a backend prints."""

import os
import re
import shlex
import subprocess
import sys

# What ninja and make print before each step.
STEP = re.compile(r"\[ *(\d+/\d+|\d+%)\] (\w+)")
VERBS = {"Building": "compiling", "Linking": "linking"}


def run(command):
    """Runs a command whose output is ours. Returns its status and what it printed."""
    print("+", " ".join(map(shlex.quote, command)), flush=True)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               universal_newlines=True, errors="replace")
    printed = []
    line = Line()
    try:
        for text in process.stdout:
            printed.append(text)
            sys.stdout.write(text)
            sys.stdout.flush()
            step = STEP.match(text)
            if step:
                # Of one width, so that the words stand still: "[ 7/120]" grows to "[ 34/120]".
                done = step[1].rjust(2 * len(step[1].partition("/")[2]) + 1)
                line.show("[{}] {}".format(done, VERBS.get(step[2], "building")))
    finally:
        line.clear()
        process.stdout.close()
        status = process.wait()
    return status, "".join(printed)


class Line:
    """One line of the controlling terminal, or nothing where there is none to write to."""

    def __init__(self):
        self._terminal = _open_terminal()
        self._used = False

    def show(self, text):
        # pip's line stays above. Its spinner turns where the cursor is: left of ours.
        self._write(("" if self._used else "\n") + "\r  " + text + "\033[K\r")
        self._used = True

    def clear(self):
        if self._used:
            self._write("\r\033[K")
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None

    def _write(self, text):
        if self._terminal is None:
            return
        try:
            os.write(self._terminal, text.encode())
        except OSError:  # the terminal was closed; the build goes on
            os.close(self._terminal)
            self._terminal = None


def _open_terminal():
    """None where the build's output is seen anyway, where it is not wanted, and in the background."""
    if (os.environ.get("HMC_BUILD_PROGRESS") == "0" or os.environ.get("TERM") == "dumb" or
            os.isatty(1)):
        return None
    try:
        terminal = os.open("/dev/tty", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return None
    # The terminal may stop a job that writes to it from the background.
    if os.tcgetpgrp(terminal) != os.getpgrp():
        os.close(terminal)
        return None
    return terminal
