"""`python -m hmc` is the hmc command."""

import contextlib
import importlib.util
import json
import os
import pty
import signal
import subprocess
import sys

import pytest

import hmc
from hmc import bench
from peers import need
from places import fake_driver

COMMAND = [sys.executable, "-m", "hmc"]


def run(*arguments, **more):
    return subprocess.run(COMMAND + list(arguments), stdout=subprocess.PIPE, text=True, timeout=240,
                          stderr=subprocess.STDOUT, **more)


def missed(targets):
    """The exit status that goes with them."""
    return 0 if all(one["met"] for one in targets) else 1


def test_has_the_version_of_the_package():
    assert run("--version").stdout == "hmc {}\n".format(hmc.__version__)


def test_takes_the_same_words():
    assert run("info").returncode == 0
    for command in ("bench", "doctor", "demo", "explain"):
        done = run(command, "--help")
        assert done.returncode == 0 and command in done.stdout, done.stdout


def test_a_usage_error_ends_with_its_status():
    done = run("juggle")
    assert done.returncode == 2
    assert "juggle" in done.stdout


def test_its_demo_moves_memory(tmp_path):
    done = run("demo", env=dict(os.environ, HMC_LOG="error"))
    assert done.returncode == 0, done.stdout
    assert "ipc" in done.stdout


def test_a_closed_pipe_ends_it_as_it_ends_any_program():
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = subprocess.run(COMMAND + ["info"], stdout=theirs, stderr=subprocess.PIPE, timeout=60)
    finally:
        os.close(theirs)
    assert done.returncode == -signal.SIGPIPE, done.stderr


def test_shows_its_progress_on_a_terminal():
    terminal, theirs = pty.openpty()
    command = COMMAND + ["bench", "--transport", "ipc", "--to", "16", "--seconds", "0.001"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs,
                               env=dict(os.environ, HMC_LOG="error"))
    os.close(theirs)
    seen = b""
    try:
        while True:
            piece = os.read(terminal, 4096)
            if not piece:
                break
            seen += piece
    except OSError:
        pass  # the way that a terminal says that nobody has it open any more
    finally:
        os.close(terminal)
    assert process.wait(timeout=240) == 0
    assert b"\r" in seen and b"put" in seen, seen


def test_measures_what_python_adds():
    done = run("bench", "--python", "--seconds", "0.01", "--json",
               env=dict(os.environ, HMC_LOG="error"))
    targets = json.loads(done.stdout)
    assert done.returncode == missed(targets), done.stdout
    libraries = sum(importlib.util.find_spec(name) is not None for name in ("numpy", "torch"))
    assert len(targets) == 11 + 2 * libraries  # for each, a put and a get of what is not registered
    assert all(one["value"] == one["value"] and one["limit"] for one in targets), targets


def test_measures_collectives_beside_gloo():
    need("torch")
    done = run("bench", "--collectives", "--ranks", "2", "--largest", "1024", "--json",
               env=dict(os.environ, HMC_LOG="error"))
    assert done.returncode in (0, 1), done.stdout
    targets = json.JSONDecoder().raw_decode(done.stdout)[0]
    assert [one["what"].split()[2] for one in targets] == [
        "barrier", "allreduce", "broadcast", "allgather", "alltoall", "reduce_scatter"]
    assert all(one["value"] > 0 and one["limit"] == "<= 1 x" for one in targets), targets
    assert done.returncode == (0 if all(one["met"] for one in targets) else 1)


def test_measures_what_python_adds_on_a_device():
    done = run("bench", "--python", "--seconds", "0.01", "--json", "--memory", "cuda:0",
               env=dict(os.environ, HMC_LOG="error", LD_LIBRARY_PATH=fake_driver()))
    targets = json.loads(done.stdout)
    assert done.returncode == missed(targets), done.stdout
    assert [one["limit"] for one in targets] == ["<= 3 us more"] + 3 * [">= 0.98 x"]
    assert all("a region on cuda:0" in one["what"] for one in targets), targets


def test_a_device_that_is_not_there_is_said_so():
    done = run("bench", "--python", "--memory", "cuda:7",
               env=dict(os.environ, LD_LIBRARY_PATH=fake_driver()))
    assert done.returncode == 1
    assert "cuda:7" in done.stdout and "Traceback" not in done.stdout, done.stdout


@pytest.mark.parametrize("met", [True, False])
def test_ends_with_1_when_a_target_of_python_is_missed(monkeypatch, capsys, met):
    fixed = bench.target("put", "1 us", "nothing", 1, 2 if met else 0.5)
    monkeypatch.setattr(bench, "other_process", contextlib.nullcontext)
    for part in ("small_puts", "large_puts", "many_blocks", "awaited", "imports"):
        monkeypatch.setattr(bench, part, lambda server, seconds: [fixed])
    assert bench.main(["--json"]) == (0 if met else 1)
    assert [one["met"] for one in json.loads(capsys.readouterr().out)] == 5 * [met]
