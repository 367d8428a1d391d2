#!/usr/bin/env python3
"""Does `tune` find the best settings there are? Its choice against every point.

Runs `coldstream tune --dry-run`, then decodes at every point of the grid of
prefetch depths, reads in flight and chunk sizes, once each in random order; the
fastest of them, the settings that are used without tuning, and the choice then
race in turns for several rounds. A disk that varies from second to second is met
by the turns; but the winner of a sweep, and of a race, is partly the luckiest,
so that it meets the choice once more, in twice as many rounds that count alone.
Prints the medians and the choice's rate over the winner's in those rounds: 0.97
or more is what tune promises.

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
    prefetch, depth, chunk, *io = point
    flags = ["--prefetch-depth", str(prefetch), "--io-depth", str(depth),
             "--io-chunk", str(chunk)]
    return flags + (["--io", io[0]] if io else [])


def point_of(row):
    """A row of tune's curve."""
    return (row["prefetch_depth"], row["io_depth"], row["io_chunk"], row["io"])


def decode_rate(args, point, tokens):
    """Tokens a second at a point, or 0 where the budget has no room for it."""
    try:
        report = coldstream(args, "bench", "-p", "0", "-n", str(tokens), "-r",
                            "1", "--warmup", "1", "--probe-seconds", "0",
                            *flags_of(point))
    except subprocess.CalledProcessError:
        return 0.0
    return report["generation"]["tokens_per_second"]["median"]


def race(args, racers, rounds):
    """Medians by name of as many rates of each as there are rounds, in turns."""
    rates = {name: [] for name in racers}
    for _ in range(rounds):
        for name in random.sample(list(racers), len(racers)):
            rates[name].append(
                decode_rate(args, racers[name], args.race_tokens))
    medians = {name: statistics.median(values)
               for name, values in rates.items()}
    for name, median in sorted(medians.items(), key=lambda x: -x[1]):
        values = rates[name]
        print(f"{name:16s} {' '.join(flags_of(racers[name])):66s} "
              f"{median:7.2f} tok/s ({min(values):.2f} to {max(values):.2f})",
              flush=True)
    return medians


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
    choice = point_of(chosen)
    print(f"tune chose {' '.join(flags_of(choice))} after "
          f"{len(tuned['curve'])} points", flush=True)

    grid = list(itertools.product(PREFETCH, IO_DEPTH, CHUNK))
    random.Random(1).shuffle(grid)
    swept = {point: decode_rate(args, point, args.sweep_tokens)
             for point in grid}
    ranked = sorted(grid, key=swept.get, reverse=True)
    print(f"swept {len(grid)} points: {swept[ranked[-1]]:.2f} to "
          f"{swept[ranked[0]]:.2f} tok/s", flush=True)

    racers = {"tune's choice": choice, "untuned": point_of(tuned["curve"][0])}
    for place, point in enumerate(ranked[:args.finalists], 1):
        racers[f"sweep's no. {place}"] = point
    medians = race(args, racers, args.rounds)
    winner = max(medians, key=medians.get)
    if winner == "tune's choice":
        print("the choice won")
        return 0
    print("again, the two alone:")
    medians = race(args, {name: racers[name] for name in
                          ("tune's choice", winner)}, 2 * args.rounds)
    ratio = medians["tune's choice"] / medians[winner]
    print(f"choice / best: {ratio:.3f}")
    return 0 if ratio >= 0.97 else 1


if __name__ == "__main__":
    sys.exit(main())
