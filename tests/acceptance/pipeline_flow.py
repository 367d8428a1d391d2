#!/usr/bin/env python3
"""Does back-pressure reach from a slow reader to the writer? 2,000 requests.

Feeds rows to the example of a flow graph (tests/install/client/csv_pipeline.cc,
built against the installed package) as fast as it takes them, reads its answers
as they come, then slowly for a while, then as they come again. Prints how far
the rows taken run ahead of the answers read, and the process's memory at each
tenth. Exit status 1 if an answer is missing or comes
twice, if rows ever run ahead by more than what is under way and in the two pipes, or if
memory grows.

  pipeline_flow.py --binary build/csv_pipeline -m model.gguf --ram 160 \\
      --rows 2000 --under-way 8
"""

import argparse
import csv
import fcntl
import subprocess
import sys
import threading
import time

PIPE_BYTES = 4096
# Of a line: the pipe and the program's read buffer then hold a dozen.
ROW_BYTES = 700
ROWS_BUFFERED = 2 * (PIPE_BYTES // ROW_BYTES + 1)


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0.0


def shrink(pipe):
    fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)


class Feeder(threading.Thread):
    """Writes rows until all are taken; `taken` counts them."""

    def __init__(self, pipe, rows):
        super().__init__(daemon=True)
        self.pipe, self.rows, self.taken = pipe, rows, 0

    def run(self):
        for row in range(self.rows):
            text = f"{row},How much is {row} and one? "
            # Spaces after the field: long for a pipe, short for the model.
            self.pipe.write(text.encode() + b"," + b"x" * (ROW_BYTES - len(text))
                            + b"\n")
            self.pipe.flush()
            self.taken = row + 1
        self.pipe.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--ram", type=int, required=True, help="MiB")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--under-way", type=int, default=8)
    parser.add_argument("--slow", type=float, default=0.5,
                        help="seconds an answer, of the slow part")
    args = parser.parse_args()

    process = subprocess.Popen(
        [args.binary, args.model, str(args.ram << 20), str(args.under_way)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    shrink(process.stdin)
    shrink(process.stdout)
    feeder = Feeder(process.stdin, args.rows)
    feeder.start()

    slow = range(args.rows // 2, args.rows // 2 + args.rows // 20)
    seen, ahead, memory, times, shortest = [], 0, [], [], PIPE_BYTES
    while line := process.stdout.readline():
        times.append(time.monotonic())
        shortest = min(shortest, len(line))
        seen.append(next(csv.reader([line.decode()]))[0])
        ahead = max(ahead, feeder.taken - len(seen))
        if len(seen) % max(1, args.rows // 10) == 0:
            memory.append(resident_mib(process.pid))
        if len(seen) in slow:
            time.sleep(args.slow)
    status = process.wait()

    # Where the engine would be if nothing held it back.
    rate = (slow.start - 1) / (times[slow.start - 1] - times[0])
    answers_buffered = PIPE_BYTES // shortest + 1
    most_ahead = args.under_way + ROWS_BUFFERED + answers_buffered
    print(f"exit {status}, {len(seen)} answers, {len(set(seen))} different")
    print(f"rows ahead of answers: at most {ahead} (allowed {most_ahead})")
    unthrottled = len(slow) * args.slow * rate
    print(f"answers/s: {rate:.2f}, the slow part takes {1 / args.slow:.2f}: "
          f"{unthrottled:.0f} rows could have been done in it")
    if unthrottled < 2 * most_ahead:
        sys.exit("too few to show anything: give a longer --slow")
    print("RSS, MiB:", " ".join(f"{mib:.1f}" for mib in memory))
    # The first tenth fills caches and pools.
    grown = max(memory[1:]) - memory[0]
    wrong = (status != 0 or len(seen) != args.rows or
             len(set(seen)) != args.rows or ahead > most_ahead or
             grown > 2)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
