#!/usr/bin/env python3
"""Side by side with a peer that maps the model: tokens a second under a limit.

Both run in a memory control group of the same size, caches dropped first, on
the same file, for the same number of tokens. The peer is any program that takes
`-m MODEL -n TOKENS -t THREADS` (and what follows --) and prints its rate as
"... X tok/s" on its last such line. Needs root.

  against_mmap.py -m model.gguf --peer PATH --shares 25,50,75,90 \\
      --read-ahead 128,8192,65536 -- --no-repack
"""

import argparse
import json
import os
import pathlib
import re
import subprocess

from memory_cgroup import MemoryCgroup, drop_caches

MIB = 1 << 20


def read_ahead_file(path):
    """The queue setting of the disk that holds `path`."""
    device = os.stat(path).st_dev
    folder = pathlib.Path(
        f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    if not (folder / "queue").is_dir():
        folder = folder.parent  # a partition
    return folder / "queue" / "read_ahead_kb"


def ours(args, limit):
    drop_caches()
    command = [args.binary, "run", "-m", args.model, "--ram",
               str(limit - 32 * MIB), "-t", str(args.threads), "-p", "The", "-n",
               str(args.tokens + 1), "--temp", "0", "--ignore-eos", "--json"]
    with MemoryCgroup(limit) as group:
        done = group.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"exit {done.returncode}: {done.stderr}")
        if group.oom_kills():
            raise SystemExit("OOM kill")
    return json.loads(done.stdout)["tokens_per_second"]


def theirs(args, limit):
    drop_caches()
    command = [args.peer, "-m", args.model, "-n", str(args.peer_tokens + 1),
               "-t", str(args.threads), *args.extra]
    with MemoryCgroup(limit) as group:
        done = group.run(command, capture_output=True, text=True)
    rates = re.findall(r"([0-9.]+) tok/s", done.stdout)
    return float(rates[-1]) if done.returncode == 0 and rates else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default="build/release/tools/coldstream")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--shares", default="25,50,75,90")
    parser.add_argument("--read-ahead", default="8192", help="KiB, several")
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--peer-tokens", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("extra", nargs="*", help="for the peer, after --")
    args = parser.parse_args()

    size = os.stat(args.model).st_size
    setting = read_ahead_file(args.model)
    before = setting.read_text()
    try:
        for share in (int(s) for s in args.shares.split(",")):
            limit = size * share // 100
            mine = ours(args, limit)
            for read_ahead in args.read_ahead.split(","):
                setting.write_text(read_ahead)
                peer = theirs(args, limit)
                setting.write_text(before)
                told = "failed" if peer is None else (
                    f"{peer:.3f} tok/s, factor {mine / peer:.2f}")
                print(f"{share:3d} % of {size / 1e9:.2f} GB: ours {mine:.3f} "
                      f"tok/s; peer at read-ahead {read_ahead} KiB: {told}",
                      flush=True)
    finally:
        setting.write_text(before)


if __name__ == "__main__":
    main()
