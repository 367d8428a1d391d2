#!/usr/bin/env python3
"""Is the tightest link the only limit? Decode at shares of a model's weights.

For each share of the weights as --ram, in turn and several rounds: fio on the
same file with two settings (the better is the ceiling), `coldstream plan
--probe`, and `coldstream run` with caches dropped. Prints per share the medians
of: disk rate over fio's, time a token over the larger of cold bytes / ceiling
and resident compute time, the plan's prediction over the measured time, and
peak RSS against the cap. Needs root and fio.

  at_the_limit.py -m model.gguf --shares 25,50,75,90,100 --rounds 5
"""

import argparse
import json
import statistics
import subprocess
import sys

from memory_cgroup import drop_caches

MIB = 1 << 20
FIO_SETTINGS = [("1M", 16), ("4M", 8)]


def fio_rate(path, seconds):
    """Bytes a second: the better of two direct sequential reads."""
    best = 0.0
    for block, depth in FIO_SETTINGS:
        out = subprocess.run(
            ["fio", "--name=read", f"--filename={path}", "--rw=read",
             "--direct=1", "--ioengine=io_uring", "--fixedbufs=1",
             f"--bs={block}", f"--iodepth={depth}", "--readonly",
             "--time_based=1", f"--runtime={seconds}", "--output-format=json"],
            check=True, capture_output=True, text=True).stdout
        best = max(best, json.loads(out)["jobs"][0]["read"]["bw_bytes"])
    return best


def coldstream(args, command, ram, *more):
    out = subprocess.run(
        [args.binary, command, "-m", args.model, "--ram", str(ram), "-t",
         str(args.threads), "--json", *more],
        check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def run(args, ram):
    drop_caches()
    return coldstream(args, "run", ram, "-p", "The quick brown fox", "-n",
                      str(args.tokens), "--temp", "0", "--ignore-eos")


def plan(args, ram, context):
    planned = coldstream(args, "plan", ram, "-c", str(context), "-b", "8",
                         "--probe")
    return planned["budgets"][0]


def measure(args, ram):
    """One round at one budget, as ratios."""
    fio = fio_rate(args.model, args.fio_seconds)
    planned = plan(args, ram, args.tokens + 8)
    report = run(args, ram)
    passes = report["generated_tokens"] - 1
    token = report["generation_seconds"] / passes
    cold = report["pass_read_bytes"]
    compute = args.resident_seconds
    return {
        "fio": fio / 1e9,
        "disk": cold / token / 1e9,
        "disk/fio": cold / token / fio,
        "token": token,
        "token/limit": token / max(cold / fio, compute),
        "plan/token": planned["decode"]["seconds"] / token,
        "rss-cap": (report["peak_rss_bytes"] - report["ram_bytes"]) / MIB,
        "tok/s": 1 / token,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="build/release/tools/coldstream")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--shares", default="25,50,75,90,100")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fio-seconds", type=int, default=2)
    args = parser.parse_args()

    report = run(args, 1 << 40)
    weights = report["weights_bytes"]
    print(f"weights {weights / 1e9:.3f} GB", flush=True)
    shares = [int(share) for share in args.shares.split(",")]
    results = {share: [] for share in shares}
    for number in range(args.rounds):
        # The resident token beside the others, in the same minutes.
        resident = run(args, 1 << 40)
        args.resident_seconds = (resident["generation_seconds"] /
                                 (resident["generated_tokens"] - 1))
        print(f"round {number + 1}: resident {args.resident_seconds:.3f} s",
              flush=True)
        for share in shares:
            # All of it resident takes what is not weights besides.
            ram = weights * share // 100 if share < 100 else 1 << 40
            result = measure(args, ram)
            results[share].append(result)
            print(f"  {share:3d} %: " + ", ".join(
                f"{key} {value:.3f}" for key, value in result.items()),
                flush=True)
    print("medians")
    for share in shares:
        rows = results[share]
        print(f"  {share:3d} %: " + ", ".join(
            f"{key} {statistics.median(row[key] for row in rows):.3f}"
            for key in rows[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
