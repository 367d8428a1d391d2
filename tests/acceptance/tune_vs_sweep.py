#!/usr/bin/env python3
"""Does `tune` find the best settings there are? Its choice against every point.

Runs `coldstream tune --dry-run`, then decodes at every point of the grid of
prefetch depths, reads in flight and chunk sizes, once each in random order; the
fastest of them, the settings that are used without tuning, and the choice then
race in turns for several rounds. Prints the medians and the choice's rate over
the best one's: 0.97 or more is what tune promises. A disk that varies from
second to second is met by the turns, not by the sweep: the winner of a sweep is
partly the luckiest.

  tune_vs_sweep.py -m model.gguf --ram 350M --rounds 7
"""

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys

PREFETCH = [1, 2, 3, 4, 6, 8, 12, 16]
IO_DEPTH = [4, 8, 16, 32]
CHUNK = ["512k", "1M", "2M", "4M", "8M"]


def coldstream(args, command, *more):
    out = subprocess.run(
        [args.binary, command, "-m", args.model, "--ram", args.ram, "-t",
         str(args.threads), "-c", "128", "--json", *more],
        check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def flags_of(point):
    prefetch, depth, chunk = point
    return ["--prefetch-depth", str(prefetch), "--io-depth", str(depth),
            "--io-chunk", str(chunk)]


def decode_rate(args, point, tokens):
    """Tokens a second at a point, or 0 where the budget has no room for it."""
    try:
        report = coldstream(args, "bench", "-p", "0", "-n", str(tokens), "-r",
                            "1", "--warmup", "1", "--probe-seconds", "0",
                            *flags_of(point))
    except subprocess.CalledProcessError:
        return 0.0
    return report["generation"]["tokens_per_second"]["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--ram", required=True)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--binary", default="build/release/tools/coldstream")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--finalists", type=int, default=6)
    parser.add_argument("--sweep-tokens", type=int, default=6)
    parser.add_argument("--race-tokens", type=int, default=12)
    parser.add_argument("--seconds", type=int, default=120)
    args = parser.parse_args()

    tuned = coldstream(args, "tune", "--dry-run", "--seconds",
                       str(args.seconds))
    chosen = tuned["chosen"]
    choice = (chosen["prefetch_depth"], chosen["io_depth"], chosen["io_chunk"])
    print(f"tune chose {' '.join(flags_of(choice))}, io {chosen['io']}, "
          f"after {len(tuned['curve'])} points", flush=True)

    grid = list(itertools.product(PREFETCH, IO_DEPTH, CHUNK))
    random.Random(1).shuffle(grid)
    swept = {point: decode_rate(args, point, args.sweep_tokens)
             for point in grid}
    ranked = sorted(grid, key=swept.get, reverse=True)
    print(f"swept {len(grid)} points: {swept[ranked[-1]]:.2f} to "
          f"{swept[ranked[0]]:.2f} tok/s", flush=True)

    start = tuned["curve"][0]
    start = (start["prefetch_depth"], start["io_depth"], start["io_chunk"])
    racers = {"tune's choice": choice, "untuned": start}
    for place, point in enumerate(ranked[:args.finalists], 1):
        racers[f"sweep's no. {place}"] = point
    rates = {name: [] for name in racers}
    for _ in range(args.rounds):
        for name in random.sample(list(racers), len(racers)):
            rates[name].append(
                decode_rate(args, racers[name], args.race_tokens))
    medians = {name: statistics.median(values)
               for name, values in rates.items()}
    for name, median in sorted(medians.items(), key=lambda x: -x[1]):
        values = rates[name]
        print(f"{name:16s} {' '.join(flags_of(racers[name])):55s} "
              f"{median:7.2f} tok/s ({min(values):.2f} to {max(values):.2f})")
    ratio = medians["tune's choice"] / max(medians.values())
    print(f"choice / best: {ratio:.3f}")
    return 0 if ratio >= 0.97 else 1


if __name__ == "__main__":
    sys.exit(main())
