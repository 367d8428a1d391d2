#!/usr/bin/env python3
"""Streams a model larger than its memory, beside fio on the same file.

Runs fio and `coldstream run` in turn, caches dropped before each, the run in a
memory control group, and prints for every pair: the rates, their ratio, the
peak RSS against the cap and the bytes of a pass against the plan. Needs root
and fio.

  stream_vs_fio.py --binary build/release/tools/coldstream -m model.gguf \\
      --ram 1536 --limit 2048 --tokens 16 --rounds 3
"""

import argparse
import json
import statistics
import subprocess

from memory_cgroup import MemoryCgroup, drop_caches

MIB = 1 << 20


def fio_rate(path: str) -> float:
    """Bytes a second of a direct sequential read of the whole file."""
    drop_caches()
    out = subprocess.run(
        ["fio", "--name=read", f"--filename={path}", "--rw=read", "--direct=1",
         "--ioengine=io_uring", "--fixedbufs=1", "--bs=1M", "--iodepth=16",
         "--readonly", "--output-format=json"],
        check=True, capture_output=True, text=True).stdout
    return json.loads(out)["jobs"][0]["read"]["bw_bytes"]


def stream(args) -> dict:
    drop_caches()
    command = [args.binary, "run", "-m", args.model, "--ram", f"{args.ram}M",
               "-p", "The quick brown fox", "-n", str(args.tokens), "--temp",
               "0", "--ignore-eos", "--json"] + args.extra
    with MemoryCgroup(args.limit * MIB) as group:
        done = group.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"exit {done.returncode}: {done.stderr}")
        report = json.loads(done.stdout)
        report["oom_kills"] = group.oom_kills()
        report["cgroup_peak"] = group.peak_bytes()
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="build/release/tools/coldstream")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--ram", type=int, default=1536, help="MiB")
    parser.add_argument("--limit", type=int, default=2048, help="MiB")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("extra", nargs="*", help="more flags, after --")
    args = parser.parse_args()

    ratios = []
    for number in range(args.rounds):
        fio = fio_rate(args.model)
        report = stream(args)
        steady = report["passes"] - 1
        planned = (report["first_pass_read_bytes"] +
                   steady * report["pass_read_bytes"])
        rate = (steady * report["pass_read_bytes"] /
                report["generation_seconds"])
        ratios.append(rate / fio)
        print(f"round {number + 1}: fio {fio / 1e9:.3f} GB/s, decode "
              f"{rate / 1e9:.3f} GB/s from disk, ratio {rate / fio:.3f}; "
              f"{report['tokens_per_second']:.3f} tok/s; bytes read / planned "
              f"{report['bytes_from_disk'] / planned:.4f}; peak RSS "
              f"{report['peak_rss_bytes'] / MIB:.1f} MiB = cap "
              f"{(report['peak_rss_bytes'] / MIB) - args.ram:+.1f}; cgroup peak "
              f"{report['cgroup_peak'] / MIB:.0f} MiB, OOM kills "
              f"{report['oom_kills']}; {report['io_backend']}, direct "
              f"{report['direct_io']}, depth {report['prefetch_depth']}",
              flush=True)
    print(f"median ratio {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
