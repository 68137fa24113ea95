"""`python -m hmc bench --plot FILE`: draws what `hmc bench` measured, with matplotlib.

Latency and bandwidth over size, put and get side by side, batches apart. Every measured line has
the colour of its transport, and its ceiling is a dashed line in the same colour.
"""

import argparse
import csv
import importlib
import io
import json
import os
import subprocess
import sys
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from .__main__ import PROGRAM

SUFFIXES = (".png", ".svg", ".pdf")
LATENCY, BANDWIDTH, BATCH, CONTROL = "blocking latency", "bandwidth", "batch", "control"
# Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
MARKERS = "os^Dv<>"
MOST_TICKS = 8  # of sizes, so that their names do not meet


class PlotError(Exception):
    """Why there is no picture, for the user."""


class Measurement(NamedTuple):
    """One line of `hmc bench`, as in its JSON and CSV."""

    section: str
    who: str
    what: str
    path: str
    bytes: int
    unit: str
    value: float
    ceiling: str
    ceiling_value: float


class Run(NamedTuple):
    """Where it was measured, and what."""

    header: Dict[str, str]
    measurements: List[Measurement]


def number(text: Any) -> float:
    """0 for what was not measured: no logarithmic axis shows it."""
    return float(text or 0)


def parse_json(text: str) -> Run:
    """What `hmc bench --json` printed."""
    run = json.loads(text)
    measurements = []
    for one in run["measurements"]:
        ceiling = one["ceiling"] or {"name": "", "value": 0}
        measurements.append(Measurement(
            one["section"], one["who"], one["what"], one["path"], int(one["bytes"]), one["unit"],
            number(one["value"]), ceiling["name"], number(ceiling["value"])))
    return Run(run["header"], measurements)


def parse_csv(text: str) -> Run:
    """What `hmc bench --csv` printed."""
    run = Run({}, [])
    for one in csv.DictReader(io.StringIO(text)):
        if one["record"] == "header":
            run.header[one["name"]] = one["text"]
        elif one["record"] == "measurement":
            run.measurements.append(Measurement(
                one["section"], one["who"], one["what"], one["path"], int(one["bytes"]),
                one["unit"], number(one["value"]), one["ceiling"], number(one["ceiling_value"])))
    return run


def parse(text: str, source: str) -> Run:
    """Either of the two; `source` is for the error."""
    try:
        run = parse_json(text) if text.lstrip().startswith("{") else parse_csv(text)
    except (ValueError, KeyError, TypeError) as error:
        raise PlotError("%s is not what `hmc bench --json` or `--csv` prints: %s: %s" % (
            source, type(error).__name__, error)) from None
    if not any(one.section in (LATENCY, BANDWIDTH) for one in run.measurements):
        raise PlotError("%s holds no latency and no bandwidth: draw a sweep, not --targets or "
                        "--all-paths" % source)
    return run


def size_text(size: float, _position: Any = None) -> str:
    """64 KiB"""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            break
        size /= 1024
    else:
        unit = "GiB"
    return "%g %s" % (size, unit)


def time_text(nanoseconds: float, _position: Any = None) -> str:
    """1.5 us"""
    for unit, size in (("ns", 1.0), ("us", 1e3), ("ms", 1e6)):
        if nanoseconds < 1000 * size:
            return "%.3g %s" % (nanoseconds / size, unit)
    return "%.3g s" % (nanoseconds / 1e9)


def speed_text(speed: float, _position: Any = None) -> str:
    """0.001"""
    return "%g" % speed


def reads(one: Measurement) -> bool:
    """A get, or what a competitor calls a read; everything else moves bytes the other way."""
    return one.what.startswith("get") or one.what.endswith("read")


def label_of(one: Measurement) -> str:
    """Of the measured line: "hmc, ipc"; competitors also say what they did."""
    return ", ".join([one.who] + ([one.what] if one.who != "hmc" else []) + [one.path])


def ceiling_label(one: Measurement) -> str:
    """The same ceiling is measured again beside every transport."""
    return "ceiling of %s: %s" % (one.path, one.ceiling)


class Looks:
    """A colour and a marker for each measured line, the same in every panel."""

    def __init__(self, measurements: Iterable[Measurement]) -> None:
        labels = dict.fromkeys(label_of(one) for one in measurements if one.section != CONTROL)
        self._places = {label: place for place, label in enumerate(labels)}

    def of(self, one: Measurement) -> Tuple[str, str]:
        place = self._places[label_of(one)]
        return COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]


def draw_panel(axes: Any, measurements: List[Measurement], looks: Looks) -> None:
    """The lines of one panel; both scales are logarithmic."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.grid(True, which="major", color="#e4e4e4")
    axes.set_axisbelow(True)
    lines: Dict[str, Dict[int, float]] = {}
    styles: Dict[str, Dict[str, Any]] = {}
    for one in measurements:
        colour, marker = looks.of(one)
        ours = one.who == "hmc"
        for label, value, style in (
                (ceiling_label(one), one.ceiling_value,
                 {"linestyle": "--", "linewidth": 1.2, "alpha": 0.8}),
                (label_of(one), one.value,
                 {"marker": marker, "markersize": 4, "linewidth": 1.8 if ours else 1.0,
                  "markerfacecolor": colour if ours else "white"})):
            if value > 0 and one.bytes > 0:
                lines.setdefault(label, {})[one.bytes] = value
                styles[label] = dict(style, color=colour)
    for label, points in lines.items():
        axes.plot(sorted(points), [points[size] for size in sorted(points)], label=label,
                  **styles[label])
    sizes = sorted({size for points in lines.values() for size in points})
    if sizes:
        axes.set_xticks(sizes[::1 + (len(sizes) - 1) // MOST_TICKS])
    else:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color="gray")


def control_text(measurements: List[Measurement]) -> str:
    """Tag round trips have one size, so they are words."""
    lines = ["%s, %s: %s (%s %s)" % (one.what, one.path, time_text(one.value), one.ceiling,
                                     time_text(one.ceiling_value))
             for one in measurements if one.section == CONTROL]
    return "\n".join(lines)


def draw(run: Run) -> Any:
    """The whole picture: a matplotlib Figure."""
    figure = importlib.import_module("matplotlib.figure").Figure(figsize=(11, 12),
                                                                 layout="constrained")
    function_formatter = importlib.import_module("matplotlib.ticker").FuncFormatter
    looks = Looks(run.measurements)
    figure.suptitle("HMC %s\n%s" % (run.header.get("hmc", ""), "  ·  ".join(
        run.header[name] for name in ("machine", "date") if name in run.header)), fontsize=11)
    grid = figure.subplots(3, 2)
    rows = ((LATENCY, "latency of one blocking %s", "time; lower is better"),
            (BANDWIDTH, "bandwidth of many %ss in flight", "GB/s; higher is better"))
    for row, (section, title, unit) in enumerate(rows):
        for column, what in enumerate(("put", "get")):
            axes = grid[row][column]
            draw_panel(axes, [one for one in run.measurements
                              if one.section == section and reads(one) == (what == "get")], looks)
            axes.set_title(title % what)
            axes.set_ylabel(unit)
            if column:
                axes.sharey(grid[row][0])
    batches = [one for one in run.measurements if one.section.startswith(BATCH)]
    grid[2][0].set_title(batches[0].section if batches else "batches")
    grid[2][0].set_ylabel("time of the batch; lower is better")
    draw_panel(grid[2][0], batches, looks)
    for axes in list(grid[0]) + list(grid[1]) + [grid[2][0]]:
        axes.set_xlabel("size of a block" if axes is grid[2][0] else "size of one operation")
        axes.xaxis.set_major_formatter(function_formatter(size_text))
        in_seconds = axes not in grid[1]
        axes.yaxis.set_major_formatter(function_formatter(time_text if in_seconds else speed_text))
    draw_legend(grid, run)
    return figure


def draw_legend(grid: Any, run: Run) -> None:
    """In the last cell: every label once, whichever panel has it, and what is no line."""
    handles: Dict[str, Any] = {}
    for axes in grid.flat:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    labels = sorted(handles, key=lambda label: label.startswith("ceiling"))
    cell = grid[2][1]
    cell.axis("off")
    cell.legend([handles[label] for label in labels], labels, loc="upper left", frameon=False,
                fontsize=9)
    cell.text(0.02, 0.02, control_text(run.measurements), transform=cell.transAxes, fontsize=9,
              va="bottom")


def check_can_draw(path: str) -> None:
    """Before the minutes of measuring: matplotlib, the format and the file."""
    if os.path.splitext(path)[1].lower() not in SUFFIXES:
        raise PlotError("--plot %s: the name has to end in %s" % (path, ", ".join(SUFFIXES)))
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise PlotError("--plot needs matplotlib: `apt install python3-matplotlib` or "
                        "`pip install matplotlib` (%s)" % error) from None
    existed = os.path.exists(path)
    try:
        with open(path, "ab"):
            pass
    except OSError as error:
        raise PlotError("--plot %s: %s" % (path, error.strerror)) from None
    if not existed:
        os.unlink(path)


def measure(arguments: List[str]) -> str:
    """What `hmc bench` prints, as JSON unless the arguments say CSV."""
    for wrong in ("--targets", "--bars", "--all-paths", "--listen"):
        if wrong in arguments:
            raise PlotError("--plot draws a sweep: leave out %s" % wrong)
    shown = "--json" in arguments or "--csv" in arguments
    command = [PROGRAM, "bench"] + arguments + ([] if shown else ["--json"])
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, universal_newlines=True, check=False)
    except OSError as error:
        raise PlotError("%s cannot be run: %s" % (PROGRAM, error.strerror)) from None
    if shown or done.returncode != 0:
        sys.stdout.write(done.stdout)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout


def main(arguments: List[str]) -> Optional[str]:
    """`python -m hmc bench` with --plot: measures or reads, and draws."""
    parser = argparse.ArgumentParser(
        prog="python -m hmc bench", allow_abbrev=False, usage="%(prog)s --plot FILE [options]",
        description="Draws latency, bandwidth and batches over size. All other options are those "
                    "of `hmc bench`.")
    parser.add_argument("--plot", metavar="FILE", required=True, help="%s by its name" % ", ".join(
        SUFFIXES))
    parser.add_argument("--from-json", "--from-csv", metavar="FILE", dest="source",
                        help="draw what an earlier `hmc bench --json` or `--csv` printed, and "
                             "measure nothing")
    options, others = parser.parse_known_args(arguments)
    try:
        check_can_draw(options.plot)
        if options.source is None:
            run = parse(measure(others), "what hmc bench printed")
        elif others:
            raise PlotError("%s: nothing is measured with --from-json or --from-csv" % others[0])
        else:
            with open(options.source, encoding="utf-8") as file:
                run = parse(file.read(), options.source)
        # Text stays text, which is smaller and can be searched.
        with importlib.import_module("matplotlib").rc_context({"svg.fonttype": "none"}):
            draw(run).savefig(options.plot)
    except OSError as error:
        return "hmc: %s: %s" % (error.filename, error.strerror)
    except PlotError as error:
        return "hmc: %s" % error
    print("hmc: wrote %s" % options.plot, file=sys.stderr)
    return None
