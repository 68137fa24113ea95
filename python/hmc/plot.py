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
from typing import Any, Dict, List, NamedTuple, Tuple, Union

from .__main__ import PROGRAM

USAGE_ERROR = 2  # the command's
SUFFIXES = (".png", ".svg", ".pdf")
LATENCY, BANDWIDTH, BATCH, CONTROL = "blocking latency", "bandwidth", "batch", "control"
# Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#4D4D4D")
MARKERS = "os^Dv<>"
MOST_TICKS = 8  # of sizes, so that their names do not meet


class PlotError(Exception):
    """Why there is no picture, for the user."""


class WrongOptions(PlotError):
    """What the command line says cannot be done."""


class Measurement(NamedTuple):
    """One line of `hmc bench`, as in its CSV."""

    section: str
    who: str
    what: str
    path: str
    bytes: int
    unit: str
    value: float  # 0 for what was not measured: no logarithmic axis shows it
    ceiling: str
    ceiling_value: float

    def label(self) -> str:
        """Of the measured line: "hmc, ipc"; competitors also say what they did."""
        return ", ".join([self.who] + ([self.what] if self.who != "hmc" else []) + [self.path])

    def reads(self) -> bool:
        """A get, or what a competitor calls a read; everything else moves bytes the other way."""
        return self.what.startswith("get") or self.what.endswith("read")


class Run(NamedTuple):
    """Where it was measured, and what."""

    header: Dict[str, str]
    measurements: List[Measurement]


def parse(text: str, source: str) -> Run:
    """What `hmc bench --json` or `--csv` printed; `source` is for the error."""
    try:
        if text.lstrip().startswith("{"):
            header, rows = (json.loads(text)[name] for name in ("header", "measurements"))
            for row in rows:
                ceiling = row["ceiling"] or {"name": "", "value": 0}
                row.update(ceiling=ceiling["name"], ceiling_value=ceiling["value"])
        else:
            records = list(csv.DictReader(io.StringIO(text)))
            header = {one["name"]: one["text"] for one in records if one["record"] == "header"}
            rows = [one for one in records if one["record"] == "measurement"]
        kinds = Measurement.__annotations__
        run = Run(header, [Measurement(**{name: kind(row[name] or kind())
                                          for name, kind in kinds.items()}) for row in rows])
    except (ValueError, KeyError, TypeError) as error:
        raise PlotError("%s is not what `hmc bench --json` or `--csv` prints: %s: %s" % (
            source, type(error).__name__, error)) from None
    if not any(one.section in (LATENCY, BANDWIDTH) for one in run.measurements):
        raise PlotError("%s holds no latency and no bandwidth: draw a sweep, not --targets or "
                        "--all-paths" % source)
    return run


def in_unit(value: float, units: Tuple[str, ...], step: int) -> str:
    """The value in the first unit that keeps it below `step`, or in the last one."""
    for unit in units[:-1]:
        if value < step:
            return "%.4g %s" % (value, unit)
        value /= step
    return "%.4g %s" % (value, units[-1])


def size_text(size: float, _position: Any = None) -> str:
    """64 KiB"""
    return in_unit(size, ("B", "KiB", "MiB", "GiB"), 1024)


def time_text(nanoseconds: float, _position: Any = None) -> str:
    """1.5 us"""
    return in_unit(float("%.3g" % nanoseconds), ("ns", "us", "ms", "s"), 1000)


def draw_panel(axes: Any, measurements: List[Measurement], places: Dict[str, int]) -> None:
    """The lines of one panel; both scales are logarithmic."""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.grid(True, which="major", color="#e4e4e4")
    axes.set_axisbelow(True)
    lines: Dict[str, Dict[int, float]] = {}
    styles: Dict[str, Dict[str, Any]] = {}
    for one in measurements:
        place = places[one.label()]
        colour, ours = COLOURS[place % len(COLOURS)], one.who == "hmc"
        # The same ceiling is measured again beside every transport.
        for label, value, style in (
                ("ceiling of %s: %s" % (one.path, one.ceiling), one.ceiling_value,
                 {"linestyle": "--", "linewidth": 1.2, "alpha": 0.8}),
                (one.label(), one.value,
                 {"marker": MARKERS[place % len(MARKERS)], "markersize": 4,
                  "linewidth": 1.8 if ours else 1.0,
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


def draw(run: Run) -> Any:
    """The whole picture: a matplotlib Figure."""
    figure = importlib.import_module("matplotlib.figure").Figure(figsize=(11, 12),
                                                                 layout="constrained")
    formatter = importlib.import_module("matplotlib.ticker").FuncFormatter
    # A colour and a marker for each measured line, the same in every panel.
    labels = dict.fromkeys(one.label() for one in run.measurements if one.section != CONTROL)
    places = {label: place for place, label in enumerate(labels)}
    figure.suptitle("HMC %s\n%s" % (run.header.get("hmc", ""), "  ·  ".join(
        run.header[name] for name in ("machine", "date") if name in run.header)), fontsize=11)
    grid = figure.subplots(3, 2)
    batches = [one for one in run.measurements if one.section.startswith(BATCH)]
    panels: List[Any] = [(grid[2][0], batches[0].section if batches else "batches",
                          "time of the batch; lower is better", "size of a block", time_text,
                          batches)]
    for row, section, title, unit, text in (
            (0, LATENCY, "latency of one blocking %s", "time; lower is better", time_text),
            (1, BANDWIDTH, "bandwidth of many %ss in flight", "GB/s; higher is better",
             lambda speed, _: "%g" % speed)):
        for column, what in enumerate(("put", "get")):
            panels.append((grid[row][column], title % what, unit, "size of one operation", text,
                           [one for one in run.measurements
                            if one.section == section and one.reads() == (what == "get")]))
    for axes, title, unit, size, text, measurements in panels:
        draw_panel(axes, measurements, places)
        axes.set_title(title)
        axes.set_ylabel(unit)
        axes.set_xlabel(size)
        axes.xaxis.set_major_formatter(formatter(size_text))
        axes.yaxis.set_major_formatter(formatter(text))
    for puts, gets in grid[:2]:
        gets.sharey(puts)
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
    # Tag round trips have one size, so they are words.
    tags = ["%s, %s: %s (%s %s)" % (one.what, one.path, time_text(one.value), one.ceiling,
                                    time_text(one.ceiling_value))
            for one in run.measurements if one.section == CONTROL]
    cell.text(0.02, 0.02, "\n".join(tags), transform=cell.transAxes, fontsize=9, va="bottom")


def check_can_draw(path: str) -> None:
    """Before the minutes of measuring: matplotlib, the format and the file."""
    if os.path.splitext(path)[1].lower() not in SUFFIXES:
        raise WrongOptions("--plot %s: the name has to end in %s" % (path, ", ".join(SUFFIXES)))
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise PlotError("--plot needs matplotlib: `apt install python3-matplotlib` or "
                        "`pip install matplotlib` (%s)" % error) from None
    existed = os.path.exists(path)
    with open(path, "ab"):
        pass
    if not existed:
        os.unlink(path)


def measure(arguments: List[str]) -> str:
    """What `hmc bench` prints, as JSON unless the arguments say CSV."""
    for wrong in ("--targets", "--bars", "--all-paths", "--listen"):
        if wrong in arguments:
            raise WrongOptions("--plot draws a sweep: leave out %s" % wrong)
    shown = "--json" in arguments or "--csv" in arguments
    command = [PROGRAM, "bench"] + arguments + ([] if shown else ["--json"])
    done = subprocess.run(command, stdout=subprocess.PIPE, universal_newlines=True, check=False)
    if shown or done.returncode != 0:
        sys.stdout.write(done.stdout)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout


def main(arguments: List[str]) -> Union[int, str]:
    """`python -m hmc bench` with --plot: measures or reads, and draws; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m hmc bench", allow_abbrev=False, usage="%(prog)s --plot FILE [options]",
        description="Draws latency, bandwidth and batches over size. All other options are those "
                    "of `hmc bench`.")
    parser.add_argument("--plot", metavar="FILE", required=True,
                        help="%s by its name" % ", ".join(SUFFIXES))
    parser.add_argument("--from-json", "--from-csv", metavar="FILE", dest="source",
                        help="draw what an earlier `hmc bench --json` or `--csv` printed, and "
                             "measure nothing")
    options, others = parser.parse_known_args(arguments)
    try:
        check_can_draw(options.plot)
        if options.source is None:
            run = parse(measure(others), "what hmc bench printed")
        elif others:
            raise WrongOptions("%s: nothing is measured with --from-json or --from-csv" % others[0])
        else:
            with open(options.source, encoding="utf-8") as file:
                run = parse(file.read(), options.source)
        # Text stays text, which is smaller and can be searched.
        with importlib.import_module("matplotlib").rc_context({"svg.fonttype": "none"}):
            draw(run).savefig(options.plot)
    except OSError as error:
        return "hmc: %s: %s" % (error.filename, error.strerror)
    except PlotError as error:
        print("hmc: %s" % error, file=sys.stderr)
        return USAGE_ERROR if isinstance(error, WrongOptions) else 1
    print("hmc: wrote %s" % options.plot, file=sys.stderr)
    return 0
