#!/usr/bin/env python3
"""Is nothing of a batch lost or done twice when it is killed? 500 requests.

Completions, chats, scores and embeddings of mixed lengths and options go
through `coldstream batch` once alone, then through one that is killed with
SIGKILL at random moments and started again with the same command. Then each id
has exactly one result, all lines are valid, all answers are those of the
uninterrupted run, what was written stayed as it was, and no run computed a
request that was finished before it. Exit status 1 if anything is otherwise.

  batch_kills.py -m SmolLM2-135M-Instruct.gguf --ram 160M --kills 20
"""

import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

WORDS = ("river stone morning paper garden window letter silver engine cold "
         "stream weight layer number forest bread market simple winter").split()


def request(rng, number):
    text = " ".join(rng.choices(WORDS, k=rng.randint(1, 60)))
    kind = number % 10
    if kind == 9:
        url, body = "/v1/embeddings", {"input": [text, rng.choice(WORDS)]}
    elif kind == 8:
        url, body = "/v1/completions", {"prompt": text + " end", "echo": True,
                                        "max_tokens": 0, "logprobs": 2}
    elif kind >= 5:
        url, body = "/v1/chat/completions", {
            "messages": [{"role": "user", "content": text}],
            "max_tokens": rng.randint(1, 24)}
    else:
        url, body = "/v1/completions", {"prompt": text,
                                        "max_tokens": rng.randint(1, 40)}
    if kind < 8:
        body["temperature"] = rng.choice([0, 0, 0.9])
        if rng.random() < 0.3:
            body["stop"] = [rng.choice(WORDS)]
        if rng.random() < 0.3:
            body["seed"] = rng.randint(0, 99)
    return {"custom_id": f"request {number}", "method": "POST", "url": url,
            "body": body}


def answer(line):
    """What of a result does not depend on the run: not times."""
    body = line["response"]["body"]
    return json.dumps([line["error"], body.get("choices"), body.get("data"),
                       body["usage"]], sort_keys=True)


def results(path):
    """By id; every line has to be whole and every id alone."""
    found = {}
    for raw in path.read_bytes().splitlines():
        line = json.loads(raw)
        if line["custom_id"] in found:
            sys.exit(f"{line['custom_id']} has two results")
        found[line["custom_id"]] = line
    return found


def whole_lines(path):
    data = path.read_bytes() if path.exists() else b""
    return data[:data.rfind(b"\n") + 1]


def figures(stderr):
    """requests done, failed and done before; tokens generated."""
    done = re.search(r"(\d+) requests done, (\d+) failed, (\d+) were done",
                     stderr)
    tokens = re.search(r"passes, (\d+) generated", stderr)
    return [int(x) for x in (*done.groups(), tokens.group(1))]


def generated(lines):
    return sum(line["response"]["body"]["usage"].get("completion_tokens", 0)
               for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--ram", required=True)
    parser.add_argument("--binary", default="build/release/tools/coldstream")
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="coldstream-") as folder:
        folder = pathlib.Path(folder)
        (folder / "in.jsonl").write_text("".join(
            json.dumps(request(rng, i)) + "\n" for i in range(args.requests)))

        def command(out):
            return [args.binary, "batch", "-m", args.model, "--ram", args.ram,
                    "--device", "cpu", "-c", "512", "-np", "16", "-i",
                    folder / "in.jsonl", "-o", out]

        begin = time.monotonic()
        subprocess.run(command(folder / "alone.jsonl"), check=True,
                       capture_output=True)
        seconds = time.monotonic() - begin
        expected = results(folder / "alone.jsonl")
        print(f"alone: {len(expected)} results in {seconds:.1f} s", flush=True)

        out = folder / "killed.jsonl"
        kills = 0
        kept = b""
        while kills < args.kills:
            child = subprocess.Popen(command(out), stderr=subprocess.PIPE,
                                     text=True)
            try:
                # Of all runs together less than the one took.
                child.wait(rng.uniform(0.02, 1.5 * seconds / args.kills))
            except subprocess.TimeoutExpired:
                child.kill()
                kills += 1
            child.communicate()
            now = whole_lines(out)
            if not now.startswith(kept):
                sys.exit("a result that was written has changed")
            kept = now
            print(f"kill {kills}: {now.count(bytes([10]))} results", flush=True)
            if child.returncode == 0:
                break
        before = [json.loads(line) for line in kept.splitlines()]
        last = subprocess.run(command(out), check=True, capture_output=True,
                              text=True)
        found = results(out)
        done, failed, done_before, tokens = figures(last.stderr)
        added = [found[name] for name in found
                 if name not in {line["custom_id"] for line in before}]
        different = [name for name in expected
                     if name not in found
                     or answer(found[name]) != answer(expected[name])]
        print(f"killed {kills} times: {len(found)} results, {len(different)} "
              f"differ; the last run: {done} done, {failed} failed, "
              f"{done_before} done before of {len(before)}, {tokens} tokens "
              f"generated for {generated(added)} in its results")
        good = (kills == args.kills and len(found) == args.requests
                and not different and failed == 0 and done_before == len(before)
                and done == len(added) and tokens == generated(added))
        print("good" if good else "NOT good")
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
