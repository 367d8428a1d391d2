#!/usr/bin/env python3
"""Makes a Chrome trace like one of a run: synthetic_trace.py > run.trace.json

Passes over units whose weights are read two at a time from a disk a little
slower than the computation, which therefore waits for some of them.
"""

import json
import random
import sys

PASSES = 3
UNITS = 40
SLOTS = 3
DISK, DISK_2, EMBEDDING, ATTENTION, FFN, HEAD, SAMPLER, STALL = (
    100, 101, 300, 400, 500, 600, 700, 800)
NAMES = {DISK: "disk", DISK_2: "disk 2", EMBEDDING: "embedding",
         ATTENTION: "attention", FFN: "ffn", HEAD: "output head",
         SAMPLER: "sampler", STALL: "stall"}


class Trace:
    def __init__(self):
        self.events = [{"ph": "M", "pid": 1, "tid": thread,
                        "name": "thread_name", "args": {"name": name}}
                       for thread, name in NAMES.items()]
        self.events += [{"ph": "M", "pid": 1, "tid": thread,
                         "name": "thread_sort_index",
                         "args": {"sort_index": thread}} for thread in NAMES]

    def span(self, thread, name, begin, end, run_pass, size=0):
        """Times in microseconds."""
        args = {"pass": run_pass}
        if size:
            args["bytes"] = size
        self.events.append({
            "ph": "X", "pid": 1, "tid": thread, "cat": NAMES[thread],
            "name": name, "ts": round(begin, 3), "dur": round(end - begin, 3),
            "args": args})

    def count(self, name, at, value):
        self.events.append({"ph": "C", "pid": 1, "name": name,
                            "ts": round(at, 3), "args": {"value": value}})

    def stalls(self):
        return [e for e in self.events if e.get("tid") == STALL and
                e["ph"] == "X"]


def unit_name(unit):
    if unit == UNITS - 1:
        return "output"
    return f"blk.{unit // 2}.{'ffn' if unit % 2 else 'attn'}"


def make_trace(passes=PASSES, seed=1):
    rng = random.Random(seed)
    trace = Trace()
    read_free = [0.0, 0.0]  # when each of the two reads in flight is done
    computed = [0.0]  # when unit i of all passes was done
    now = 0.0
    counts = []
    for step in range(passes * UNITS):
        run_pass, unit = divmod(step, UNITS)
        if unit == 0:
            trace.span(EMBEDDING, "embedding", now, now + 60, run_pass)
            now += 60
        head = unit == UNITS - 1
        size = 105_000_000 if head else 68_000_000 if unit % 2 else 34_000_000
        row = 0 if read_free[0] <= read_free[1] else 1
        slot_free = computed[max(0, step - SLOTS)]
        begin = max(read_free[row], slot_free)
        slow = 3.5 if rng.random() < 0.05 else 1
        ready = begin + size / 3100 * rng.uniform(0.9, 1.15) * slow
        read_free[row] = ready
        trace.span(DISK + row, unit_name(unit), begin, ready, run_pass, size)
        counts += [(begin, -1, size), (ready, 0, -size)]
        if ready > now:
            trace.span(STALL, f"waits for disk: {unit_name(unit)}", now, ready,
                       run_pass, size)
            now = ready
        thread = HEAD if head else FFN if unit % 2 else ATTENTION
        end = now + size / 5200 * rng.uniform(0.95, 1.1)
        if step % 17 == 5:
            trace.span(STALL, f"waits for upload: {unit_name(unit)}", now,
                       now + 2000, run_pass)
            now, end = now + 2000, end + 2000
        trace.span(thread, unit_name(unit), now, end, run_pass, size)
        now = end
        computed.append(now)
        counts.append((now, 1, 0))
        if head:
            trace.span(SAMPLER, "sample", now, now + 400, run_pass)
            now += 400
    slots, in_flight = SLOTS, 0
    for at, slot, size in sorted(counts):
        slots += slot
        in_flight += size
        if slot:
            trace.count("free slots", at, slots)
        if size:
            trace.count("bytes in flight", at, in_flight)
    return trace


def main():
    json.dump({"traceEvents": make_trace().events, "displayTimeUnit": "ms"},
              sys.stdout)


if __name__ == "__main__":
    main()
