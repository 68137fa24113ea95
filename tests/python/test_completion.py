"""What shells complete of the hmc command, its manual page, and help that fits the terminal."""

import fcntl
import functools
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import time

import pytest

import hmc

PROGRAM = os.path.join(os.path.dirname(hmc.__file__), "bin", "hmc")
COMMANDS = {"demo", "bench", "litmus", "info", "doctor", "explain", "store", "pool", "completion"}
SHELLS = ("bash", "zsh", "fish")
ALL = [""] + sorted(COMMANDS) + ["bench pool", "pool run"]
PATIENCE = 120


def run(*arguments, **more):
    return subprocess.run([PROGRAM] + list(arguments), stdout=subprocess.PIPE, timeout=PATIENCE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False, **more)


@functools.lru_cache(maxsize=None)
def help_of(command, columns=80):
    done = run(*command.split(), "--help", env=dict(os.environ, COLUMNS=str(columns)))
    assert done.returncode == 0, done.stdout
    return done.stdout


def options_of(command):
    """The long options that help lists at the beginning of a line."""
    return set(re.findall(r"^  (?:-\w, ?)?(--[\w-]+)", help_of(command), re.M))


def by_bash(line, folder):
    """What bash offers for the last word of a command line."""
    words = line.split(" ")
    script = 'eval "$("$1" completion bash)"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' \
             '_hmc; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", PROGRAM] + words, cwd=str(folder),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                          timeout=PATIENCE, check=True)
    assert done.stderr == "", done.stderr
    return set(done.stdout.split())


def by_fish(line, folder):
    script = "%s completion fish | source; complete -C %s" % (PROGRAM, "'%s'" % line)
    done = subprocess.run(["fish", "--no-config", "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=PATIENCE,
                          cwd=str(folder), check=True)
    assert done.stderr == "", done.stderr
    return {one.split("\t")[0] for one in done.stdout.splitlines()}


def by_zsh(line, folder):
    """zsh completes only on a terminal: it gets one, and a widget that tells what it would insert."""
    script = """
setopt extendedglob
PROMPT= RPROMPT= PS2=; unset zle_bracketed_paste; unsetopt prompt_cr prompt_sp
autoload -U compinit && compinit -D -u
eval "$(%s completion zsh)"
compadd() {
  local -a found
  local word
  for word in "$@"; do  # those that only look, and add nothing
    [[ $word == (-|--) ]] && break
    [[ $word == -[^-]#[ODA]* ]] && { builtin compadd "$@"; return }
  done
  builtin compadd -O found "$@"
  local before=$IPREFIX
  for one in $found; do print -r -- "<$before$one>"; done
  builtin compadd "$@"
}
tell() { zle complete-word; print -r -- "<END>" }
zle -C complete-word .complete-word _main_complete
zle -N tell; bindkey '^T' tell
print -r -- "<READY>"
""" % PROGRAM
    (folder / ".zshrc").write_text(script)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(str(folder))
        os.execvpe("zsh", ["zsh", "-i"], dict(os.environ, ZDOTDIR=str(folder), TERM="dumb"))
    try:
        read_until(terminal, b"<READY>")
        os.write(terminal, line.encode() + b"\x14")
        seen = read_until(terminal, b"<END>").decode("utf-8", "replace")
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    return set(re.findall(r"<([^<>\r\n]+)>", seen)) - {"READY", "END"}


def read_until(terminal, mark):
    seen = b""
    end = time.monotonic() + PATIENCE
    while mark + b"\r\n" not in seen:
        ready = select.select([terminal], [], [], end - time.monotonic())[0]
        assert ready, seen
        seen += os.read(terminal, 4096)
    return seen


@pytest.fixture(name="offered", params=SHELLS)
def offered_by_a_shell(request, tmp_path):
    """A function: what the shell offers for the end of a line."""
    if shutil.which(request.param) is None:
        pytest.skip("there is no " + request.param)
    work = tmp_path / "work"
    work.mkdir()
    (work / "times.txt").write_text("")
    (work / "tidy").mkdir()
    shell = {"bash": by_bash, "zsh": by_zsh, "fish": by_fish}[request.param]
    return lambda line: shell(line, work)


def test_commands_are_offered_and_those_of_commands(offered):
    assert offered("hmc ") >= COMMANDS
    assert not any(word.endswith("-server") for word in offered("hmc ")), "nobody types those"
    assert offered("hmc be") == {"bench"}
    assert "pool" in offered("hmc bench p")
    assert offered("hmc pool r") == {"run"}


def test_values_are_offered_where_they_are_known(offered):
    assert offered("hmc bench --transport i") == {"ipc"}
    assert offered("hmc bench --transport ipc,t") == {"ipc,tcp"}
    assert offered("hmc completion z") == {"zsh"}
    assert {word.rstrip("/") for word in offered("hmc bench --save t")} == {"times.txt", "tidy"}
    assert {word.rstrip("/") for word in offered("hmc store --data t")} == {"tidy"}
    assert not offered("hmc bench --seconds t"), "no file is a number of seconds"
    assert offered("hmc bench --seconds 1 --fr") == {"--from"}, "the value is no command"


def test_every_option_that_help_lists_is_offered(tmp_path):
    for command in ALL:
        listed = options_of(command)
        assert "--help" in listed, command
        line = " ".join(["hmc"] + command.split() + ["--"])
        assert by_bash(line, tmp_path) == listed, command


def test_no_shell_complains_about_its_script(tmp_path):
    for shell, check in (("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["--no-execute"])):
        script = tmp_path / shell
        done = run("completion", shell)
        assert done.returncode == 0, done.stdout
        script.write_text(done.stdout)
        if shutil.which(shell):
            subprocess.run([shell] + check + [str(script)], check=True, timeout=PATIENCE)
    assert run("completion", "tcsh").returncode == 2


def test_the_manual_page_has_every_command_and_option(tmp_path):
    done = run("help-files", str(tmp_path))
    assert done.returncode == 0, done.stdout
    page = tmp_path / "man" / "man1" / "hmc.1"
    text = page.read_text().replace("\\-", "-")
    for command in ALL[1:]:
        assert ".SS hmc %s\n" % command in text
        for option in options_of(command):
            assert option in text, (command, option)
    for section in ("NAME", "SYNOPSIS", "EXIT STATUS", "EXAMPLES"):
        assert ".SH " + section in text
    if shutil.which("groff"):
        shown = subprocess.run(["groff", "-man", "-Tascii", "-ww", str(page)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True,
                               universal_newlines=True, timeout=PATIENCE)
        assert shown.stderr == "" and "hmc bench" in shown.stdout, shown.stderr


@pytest.mark.parametrize("columns", [60, 100])
def test_help_is_as_wide_as_it_is_told(columns):
    longest = 0
    for command in ALL:
        before_examples = help_of(command, columns).split("Examples:")[0]
        for line in before_examples.splitlines():
            assert len(line) <= columns or " " not in line.strip(), (command, line)
            longest = max(longest, len(line))
    assert longest > columns - 20, "the width is used"


def test_help_asks_the_terminal_how_wide_it_is():
    terminal, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 50, 0, 0))
    process = subprocess.Popen([PROGRAM, "bench", "--help"], stdout=theirs,
                               env=dict(os.environ, COLUMNS="200"))
    os.close(theirs)
    seen = b""
    try:
        while True:
            seen += os.read(terminal, 4096)
    except OSError:
        pass  # the way that a terminal says that nobody has it open any more
    finally:
        os.close(terminal)
    assert process.wait(PATIENCE) == 0
    lines = seen.decode().split("Examples:")[0].splitlines()
    assert 40 < max(map(len, lines)) <= 50, max(lines, key=len)
