"""What the wheel's build shows on the terminal, while pip keeps its output to itself."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios

import pytest

import documents
from peers import PATIENCE

# As ninja prints it, then as make does.
STEPS = ("[  3/120] Building CXX object a.o", "a warning of the compiler",
         "[120/120] Linking CXX executable hmc", "[ 28%] Building CXX object b.o")
COMPILER = "import sys; print({!r}); sys.exit(3)".format("\n".join(STEPS))
BUILD = """
import sys
from build_backend import progress
print(progress.run([sys.executable, "-c", {!r}])[0])
""".format(COMPILER)


@pytest.fixture
def terminal():
    """(our end, the program's end) of a terminal."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def build(terminal, stdout=subprocess.PIPE, controlling=True, background=False, **variables):
    """What a build prints, and what its terminal shows meanwhile."""
    ours, theirs = terminal

    def enter():
        os.setsid()
        if controlling:
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
        if background:
            # The shell's group keeps the terminal; writing to it would stop us.
            child = os.fork()
            if child:
                status = os.waitpid(child, os.WUNTRACED)[1]
                if os.WIFSTOPPED(status):
                    os.kill(child, signal.SIGKILL)
                os._exit(0 if status == 0 else 1)
            os.setpgid(0, 0)

    settings = termios.tcgetattr(theirs)
    settings[3] |= termios.TOSTOP
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    process = subprocess.Popen(
        [sys.executable, "-c", BUILD], stdout=stdout, stderr=subprocess.STDOUT, text=True,
        preexec_fn=enter, cwd=str(documents.ROOT / "python"),
        env=dict({"PATH": os.environ["PATH"], "TERM": "xterm"}, **variables))
    try:
        printed = process.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 0
    os.set_blocking(ours, False)
    try:
        return printed, os.read(ours, 1 << 16).decode()
    except OSError:  # nothing to read, or the terminal hung up with its last process
        return printed, ""


def lines(shown):
    """What stands on the line, each time that it is written."""
    return [text.strip() for text in shown.replace("\033[K", "").split("\r") if text.strip()]


def test_the_terminal_shows_one_line_with_the_steps(terminal):
    printed, shown = build(terminal)
    assert lines(shown) == ["[  3/120] compiling", "[120/120] linking", "[28%] compiling"]
    assert shown.count("\n") == 1 and shown.endswith("\r\033[K")  # and leaves nothing behind


def test_everything_is_printed_as_well_and_the_status_kept(terminal):
    printed, _ = build(terminal)
    assert printed.splitlines()[-5:] == [*STEPS, "3"]


def test_says_nothing_when_it_shall_not(terminal):
    assert build(terminal, HMC_BUILD_PROGRESS="0")[1] == ""
    assert build(terminal, TERM="dumb")[1] == ""


def test_says_nothing_where_there_is_no_terminal(terminal):
    printed, shown = build(terminal, controlling=False)
    assert printed.splitlines()[-1] == "3" and shown == ""


def test_a_build_in_the_background_is_not_stopped(terminal):
    printed, shown = build(terminal, background=True)
    assert printed.splitlines()[-1] == "3" and shown == ""


def test_output_that_is_seen_anyway_has_no_second_line(terminal):
    _, shown = build(terminal, stdout=terminal[1])
    assert STEPS[0] in shown and "compiling" not in shown
