"""`python -m hmc bench --plot`: what is drawn, and what is refused before anything is measured."""

import json
import os
import subprocess
import sys

import pytest

from hmc import plot

COMMAND = [sys.executable, "-m", "hmc", "bench"]
SIZES = (8, 4096, 1 << 20)


def run(*arguments, **environment):
    return subprocess.run(COMMAND + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=240,
                          env=dict(os.environ, HMC_LOG="error", **environment))


def sweep(section, what, path, unit="ns", factor=1.0, ceiling="memcpy", who="hmc"):
    """One line over all sizes: `factor` times the size, its ceiling half of that."""
    return [{"section": section, "who": who, "what": what, "path": path, "bytes": size,
             "unit": unit, "value": factor * size,
             "ceiling": {"name": ceiling, "value": factor * size / 2} if ceiling else None}
            for size in SIZES]


def sample():
    """ipc and tcp with everything, and a competitor."""
    measurements = []
    for path, ceiling, factor in (("ipc", "memcpy", 1.0), ("tcp", "raw socket", 1e-4)):
        for what in ("put", "get"):
            measurements += sweep("blocking latency", what, path, "ns", 1 / factor, ceiling)
            measurements += sweep("bandwidth", what, path, "GB/s", factor * 1e-3, ceiling)
        measurements += sweep("batch of 256 blocks in one put", "put", path, "ns", 7, ceiling)
    measurements += sweep("blocking latency", "put, streamed", "shm", who="UCX 1.13.1",
                          ceiling=None)
    measurements += sweep("control", "tag round trip", "tcp", ceiling="raw socket")[:1]
    return {"header": {"machine": "a box", "date": "2026-01-31", "hmc": "0.1.0"},
            "measurements": measurements, "targets": [], "paths": [], "notes": []}


@pytest.fixture(name="panels")
def drawn_panels():
    """The axes by title."""
    pytest.importorskip("matplotlib")
    figure = plot.draw(plot.parse(json.dumps(sample()), "the sample"))
    return {axes.get_title(): axes for axes in figure.axes}


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_put_and_get_have_panels_of_their_own(panels):
    assert list(panels)[:5] == [
        "latency of one blocking put", "latency of one blocking get",
        "bandwidth of many puts in flight", "bandwidth of many gets in flight",
        "batch of 256 blocks in one put"]
    competitor = "UCX 1.13.1, put, streamed, shm"
    assert competitor in lines(panels["latency of one blocking put"])
    assert competitor not in lines(panels["latency of one blocking get"])


def test_every_scale_is_logarithmic_and_shows_all_points(panels):
    for title in list(panels)[:5]:
        axes = panels[title]
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log"), title
        low, high = axes.get_ylim()
        for line in axes.get_lines():
            assert list(line.get_xdata()) == list(SIZES), line.get_label()
            assert low < min(line.get_ydata()) <= max(line.get_ydata()) < high, line.get_label()


def test_each_ceiling_is_a_dashed_line_in_the_colour_of_its_transport(panels):
    for title in list(panels)[:5]:
        found = lines(panels[title])
        for path, ceiling in (("ipc", "memcpy"), ("tcp", "raw socket")):
            ours, limit = found["hmc, " + path], found["ceiling of %s: %s" % (path, ceiling)]
            assert (ours.get_linestyle(), limit.get_linestyle()) == ("-", "--")
            assert ours.get_color() == limit.get_color()
            assert list(limit.get_ydata()) == [value / 2 for value in ours.get_ydata()]
    assert found["hmc, ipc"].get_color() != found["hmc, tcp"].get_color()


def test_batches_and_tags_are_not_on_the_axis_of_single_operations(panels):
    batch = lines(panels["batch of 256 blocks in one put"])["hmc, ipc"]
    assert list(batch.get_ydata()) == [7 * size for size in SIZES]
    single = lines(panels["latency of one blocking put"])["hmc, ipc"]
    assert list(single.get_ydata()) == list(SIZES)
    assert "tag round trip, tcp: 8 ns (raw socket 4 ns)" in panels[""].texts[0].get_text()


def test_axes_and_lines_are_named(panels):
    latency = panels["latency of one blocking put"]
    assert latency.get_xlabel() == "size of one operation"
    assert [tick.get_text() for tick in latency.get_xticklabels()] == ["8 B", "4 KiB", "1 MiB"]
    assert latency.yaxis.get_major_formatter()(1500, 0) == "1.5 us"
    assert panels["bandwidth of many puts in flight"].get_ylabel().startswith("GB/s")
    legend = {text.get_text() for text in panels[""].get_legend().get_texts()}
    assert legend == {label for axes in panels.values() for label in lines(axes)}


def test_what_was_not_measured_is_left_out():
    pytest.importorskip("matplotlib")
    broken = sample()
    for one in broken["measurements"]:
        one["value"] = None if one["bytes"] == 8 else one["value"]
    latency = plot.draw(plot.parse(json.dumps(broken), "it")).axes[0]
    assert list(lines(latency)["hmc, ipc"].get_xdata()) == list(SIZES[1:])


@pytest.mark.parametrize("suffix, magic", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_draws_a_saved_sweep_in_the_format_of_the_name(tmp_path, suffix, magic):
    pytest.importorskip("matplotlib")
    saved, picture = tmp_path / "sweep.json", tmp_path / ("sweep." + suffix)
    saved.write_text(json.dumps(sample()))
    done = run("--from-json", str(saved), "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(magic)


def test_measures_draws_and_prints_what_it_measured(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "out.svg"
    options = ("--transport", "ipc", "--to", "64", "--seconds", "0.001")
    measured = {}
    for form in ("--json", "--csv"):
        done = run("--plot=" + str(picture), form, *options)
        assert done.returncode == 0, done.stderr
        assert picture.read_bytes().startswith(b"<?xml")
        picture.unlink()
        found = plot.parse(done.stdout, form)
        assert found.header["hmc"]
        assert all(one.value > 0 and one.ceiling_value > 0 for one in found.measurements)
        measured[form] = [one._replace(value=0, ceiling_value=0) for one in found.measurements]
    assert measured["--json"] == measured["--csv"]


# That it would have measured shows in the complaint about the transport.
@pytest.mark.parametrize("name, sentence, status", [
    ("out.jpg", "has to end in .png, .svg, .pdf", 2), ("out", "has to end in", 2),
    ("no/such/folder/out.png", "No such file or directory", 1)])
def test_refuses_a_file_that_it_cannot_write_before_measuring(tmp_path, name, sentence, status):
    pytest.importorskip("matplotlib")
    done = run("--plot", str(tmp_path / name), "--transport", "carrier-pigeon")
    assert done.returncode == status
    assert sentence in done.stderr and "pigeon" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_says_how_to_install_matplotlib_before_measuring(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')")
    done = run("--plot", str(tmp_path / "out.png"), "--transport", "carrier-pigeon",
               PYTHONPATH="%s:%s" % (tmp_path, os.environ.get("PYTHONPATH", "")))
    assert done.returncode == 1
    assert "apt install python3-matplotlib" in done.stderr
    assert "pip install matplotlib" in done.stderr and "pigeon" not in done.stderr


def test_says_what_cannot_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    picture = str(tmp_path / "out.png")
    for option in ("--targets", "--all-paths"):
        assert "leave out " + option in run("--plot", picture, option).stderr
    for text, sentence in (("{}", "is not what `hmc bench --json`"), ("a,b\n1,2\n", "is not what"),
                           ('{"header": {}, "measurements": []}', "no latency and no bandwidth")):
        (tmp_path / "saved").write_text(text)
        done = run("--from-csv", str(tmp_path / "saved"), "--plot", picture)
        assert done.returncode == 1 and sentence in done.stderr, done.stderr
    missing = run("--from-json", str(tmp_path / "none"), "--plot", picture)
    assert missing.returncode == 1 and "No such file" in missing.stderr
    assert run("--from-json", "x", "--plot", picture, "--to", "64").returncode == 2
    assert run("--from-json", "x").returncode == 2


def test_a_benchmark_that_fails_ends_with_its_status_and_no_picture(tmp_path):
    pytest.importorskip("matplotlib")
    done = run("--plot", str(tmp_path / "out.png"), "--transport", "carrier-pigeon")
    assert done.returncode == 2 and "carrier-pigeon" in done.stderr
    assert not list(tmp_path.iterdir())
