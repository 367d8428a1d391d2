#!/usr/bin/env python3
"""The table of tests/device/run.sh: device_table.py FOLDER

FOLDER/steps.tsv has a line for each step: name, phase (check, prompt or
generation), exit status or - for a step that was not run, seconds taken, time
limit in seconds. What a step printed is in FOLDER/NAME.out and NAME.err; the
output of a step with a phase of its own is an object of `coldstream bench
--json`. Why a step failed is the last line of NAME.err that speaks of an error,
or else the last of NAME.err or NAME.out.

Rates are bytes over all of a phase's time, not only the time that the link was
busy, and their percentages are of the ceiling measured in the same run of
bench. Exit status: 1 if a step failed.
"""

import json
import pathlib
import sys

# Of what a link or memory delivers where it is what limits: step, column, percent.
TARGETS = (
    ("decode, resident", "memory", 60),
    ("decode, 75 % in VRAM, rest in RAM", "upload", 95),
    ("decode, 50 % in VRAM, rest in RAM", "upload", 95),
    ("decode, 25 % in VRAM, rest in RAM", "upload", 95),
    ("decode, 50 % in VRAM, rest on disk", "disk", 95),
)
TIMED_OUT = (124, 137)
HEADERS = ("step", "result", "seconds", "tok/s", "upload GB/s", "disk GB/s",
           "memory GB/s", "limited by")


class Step:
    """One line of steps.tsv and what its step left."""

    def __init__(self, folder, line):
        self.name, self.phase, status, self.seconds, self.limit = line.split("\t")
        self.status = None if status == "-" else int(status)
        self.file = file_name(self.name)
        self.bench = None
        self.why = ""
        if self.status is None:
            self.why = last_line(folder / f"{self.file}.err")
        elif self.status in TIMED_OUT:
            self.why = f"not done after {self.limit} s"
        elif self.status != 0:
            said = (last_line(folder / f"{self.file}.err", "error:") or
                    last_line(folder / f"{self.file}.err") or
                    last_line(folder / f"{self.file}.out") or "it printed nothing")
            self.why = f"exit status {self.status}: {said}"
        elif self.phase != "check":
            self.read_bench(folder)

    def read_bench(self, folder):
        try:
            bench = json.loads((folder / f"{self.file}.out").read_text())
            if bench[self.phase] is None:
                raise KeyError(self.phase)
            self.bench = bench
        except (OSError, ValueError, KeyError) as error:
            self.why = f"its JSON is not as expected: {error!r}"

    @property
    def failed(self):
        return self.status is not None and bool(self.why)

    @property
    def result(self):
        if self.status is None:
            return "not run"
        return "FAILED" if self.failed else "ok"

    def rates(self):
        """Column to (GB/s, percent of its ceiling), either None."""
        if self.bench is None:
            return {}
        return {
            "upload": (self.figure("upload_GBps_over_wall_time"),
                       self.figure("upload_percent_of_ceiling_over_wall_time")),
            "disk": (self.figure("disk_GBps_over_wall_time"),
                     self.figure("disk_percent_of_ceiling_over_wall_time")),
            "memory": self.memory(),
        }

    def figure(self, key):
        return self.bench[self.phase].get(key)

    def memory(self):
        """Weights that the passes touched, by all of the time."""
        phase = self.bench[self.phase]
        seconds = sum(run["run_seconds"] for run in phase["runs"])
        passes = sum(run["passes"] for run in phase["runs"])
        if seconds <= 0:
            return None, None
        rate = passes * self.bench["weights_bytes"] / seconds / 1e9
        ceiling = self.bench["ceilings"].get("vram_GBps")
        return rate, rate / ceiling * 100 if ceiling else None

    def row(self):
        cells = [self.name, self.result, self.seconds]
        if self.bench is None:
            return cells + [""] * 5
        phase = self.bench[self.phase]
        cells.append(f"{phase['tokens_per_second']['median']:.4g}")
        cells += [rate_text(*pair) for pair in self.rates().values()]
        return cells + [phase.get("limited_by") or ""]


def file_name(step):
    """As run.sh names a step's files."""
    return "".join(c if c.isalnum() else "_" for c in step)


def last_line(path, having=""):
    lines = path.read_text(errors="replace").split("\n") if path.exists() else []
    return next((line.strip() for line in reversed(lines)
                 if line.strip() and having in line), "")


def rate_text(rate, percent):
    if rate is None:
        return "-"
    share = "" if percent is None else f" ({percent:.0f} %)"
    return f"{rate:.2f}{share}"


def columns(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


def setting_lines(steps):
    """The card, the model and the ceilings, as the runs of bench had them."""
    benches = [step.bench for step in steps if step.bench]
    if not benches:
        return []
    first = benches[0]
    lines = [f"{first['device']}; {first['model']}, "
             f"{first['weights_bytes'] / 1e9:.2f} GB of weights a pass"]
    for key, what in (("upload_GBps", "uploads"), ("vram_GBps", "device memory"),
                      ("disk_GBps", "disk")):
        seen = sorted(c for b in benches if (c := b["ceilings"].get(key)))
        if seen:
            lines.append(f"ceiling of {what}: {seen[0]:.2f} to {seen[-1]:.2f} "
                         f"GB/s in {len(seen)} runs")
    return lines


def target_lines(steps):
    by_name = {step.name: step for step in steps}
    for name, column, target in TARGETS:
        step = by_name.get(name)
        percent = step.rates().get(column, (None, None))[1] if step else None
        if percent is None:
            said = "not measured"
        else:
            said = f"{percent:.1f} %, {'met' if percent >= target else 'MISSED'}"
        yield f"target, {name}: {column} at {target} % of its ceiling: {said}"


def table(steps):
    lines = setting_lines(steps)
    lines += columns([HEADERS] + [step.row() for step in steps])
    lines += [f"{step.name}: {step.result}: {step.why}"
              for step in steps if step.why]
    return "\n".join([*lines, *target_lines(steps)]) + "\n"


def load(folder):
    lines = (folder / "steps.tsv").read_text().splitlines()
    return [Step(folder, line) for line in lines]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    steps = load(pathlib.Path(sys.argv[1]))
    sys.stdout.write(table(steps))
    return 1 if any(step.failed for step in steps) else 0


if __name__ == "__main__":
    sys.exit(main())
