"""tools/ray_batch.py on a local Ray cluster of two machines of one CPU each."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("ray.data")
from ray.cluster_utils import Cluster  # pylint: disable=wrong-import-position

SCRIPT = pathlib.Path(__file__).parents[2] / "tools" / "ray_batch.py"
MODEL = os.environ["COLDSTREAM_TEST_MODEL"]
COLDSTREAM = os.environ["COLDSTREAM_TEST_COMMAND"]
SECONDS = 120
ENGINE = ["-m", MODEL, "--device", "cpu", "--ram", "256M", "-np", "4"]


@pytest.fixture(scope="module", name="cluster")
def two_machines():
    cluster = Cluster(initialize_head=True,
                      head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()


def request(number, max_tokens, **options):
    prompt = [(7 * number + 3 * i) % 500 for i in range(1 + number % 13)]
    body = {"prompt": prompt, "max_tokens": max_tokens, **options}
    return json.dumps({"custom_id": f"req_{number}", "method": "POST",
                       "url": "/v1/completions", "body": body})


def write_requests(path, count, max_tokens):
    lines = [request(i, max_tokens, temperature=0.7 * (i % 2))
             for i in range(count)]
    lines[5] = "no JSON"
    lines[7] = ""
    lines[9] = request(2, 3)  # an id that is there already
    lines[11] = request(11, 3, best_of=4)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def command(cluster, tmp_path, *options, engine=None):
    return [
        sys.executable, SCRIPT, "-i", tmp_path / "in.jsonl", "-o",
        tmp_path / "out.jsonl", "--address", cluster.address, "--coldstream",
        COLDSTREAM, "--lines", "8", *options, "--", *(engine or ENGINE)
    ]


def start(*args, **keywords):
    return subprocess.Popen([str(word) for word in command(*args, **keywords)],
                            stderr=subprocess.PIPE, text=True)


def end(job):
    _, words = job.communicate(timeout=SECONDS)
    return job.returncode, words


def run(*args, **keywords):
    return end(start(*args, **keywords))


def alone(tmp_path, *options):
    """The records that one `coldstream batch` writes."""
    out = tmp_path / "alone.jsonl"
    subprocess.run([COLDSTREAM, "batch", *ENGINE, "-i", tmp_path / "in.jsonl",
                    "-o", out, *options], check=False, timeout=SECONDS,
                   stderr=subprocess.DEVNULL)
    return out.read_bytes().splitlines()


def records(tmp_path):
    return (tmp_path / "out.jsonl").read_bytes().splitlines()


def wait_for_records(tmp_path, count):
    out = tmp_path / "out.jsonl"
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        if out.exists() and out.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{out} has not got {count} records")


def engines():
    """Process ids of the engines: {engine: actor}."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
        except (OSError, IndexError):
            continue
        if words[:2] == [COLDSTREAM.encode(), b"batch"] and b"-" in words:
            found[int(entry.name)] = int(parent)
    return found


def test_the_records_are_those_of_one_engine(cluster, tmp_path):
    write_requests(tmp_path / "in.jsonl", count=60, max_tokens=5)
    status, words = run(cluster, tmp_path, "--order", "input")
    assert status == 1, words  # some requests are wrong
    assert "59 requests done, 3 failed in all, 0 were done before" in words
    expected = alone(tmp_path, "--order", "input")
    assert len(expected) == 59
    # The second of two lines with one id is written first.
    assert sorted(records(tmp_path)) == sorted(expected)


def test_each_machine_has_an_engine(cluster, tmp_path):
    write_requests(tmp_path / "in.jsonl", count=100, max_tokens=200)
    job = start(cluster, tmp_path)
    most = 0
    while job.poll() is None:
        most = max(most, len(engines()))
        time.sleep(0.05)
    assert most == 2, end(job)


@pytest.mark.parametrize("victim", ["engine", "actor"])
def test_what_dies_is_made_up_for(cluster, tmp_path, victim):
    write_requests(tmp_path / "in.jsonl", count=160, max_tokens=300)
    job = start(cluster, tmp_path)
    wait_for_records(tmp_path, 20)
    running = engines()
    assert running
    engine, actor = next(iter(running.items()))
    os.kill(engine if victim == "engine" else actor, signal.SIGKILL)
    status, words = end(job)
    assert status == 1, words
    assert "159 requests done" in words
    assert engine not in engines()
    assert sorted(records(tmp_path)) == sorted(alone(tmp_path))


def test_a_lost_machine_is_made_up_for(cluster, tmp_path):
    write_requests(tmp_path / "in.jsonl", count=160, max_tokens=300)
    machine = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    job = start(cluster, tmp_path)
    wait_for_records(tmp_path, 20)
    cluster.remove_node(machine, allow_graceful=False)
    status, words = end(job)
    assert status == 1, words
    assert sorted(records(tmp_path)) == sorted(alone(tmp_path))


def test_a_killed_job_goes_on(cluster, tmp_path):
    write_requests(tmp_path / "in.jsonl", count=160, max_tokens=300)
    job = start(cluster, tmp_path)
    wait_for_records(tmp_path, 20)
    job.kill()
    job.communicate()
    with open(tmp_path / "out.jsonl", "ab") as out:
        out.write(b'{"id":"batch_req_9')  # what a kill could have left
    before = len(records(tmp_path)) - 1
    status, words = run(cluster, tmp_path)
    assert status == 1, words
    assert f"{before} were done before" in words
    assert f"{159 - before} requests done" in words
    assert sorted(records(tmp_path)) == sorted(alone(tmp_path))


def test_a_job_goes_on_only_with_what_it_was_begun_with(cluster, tmp_path):
    write_requests(tmp_path / "in.jsonl", count=20, max_tokens=2)
    assert run(cluster, tmp_path)[0] == 1
    whole = records(tmp_path)
    status, words = run(cluster, tmp_path, engine=[*ENGINE, "--seed", "7"])
    assert status == 1
    assert "was begun with options" in words
    write_requests(tmp_path / "in.jsonl", count=20, max_tokens=3)
    assert "was begun with input" in run(cluster, tmp_path)[1]
    assert records(tmp_path) == whole


def test_an_engine_that_cannot_start_ends_the_job_with_its_reason(
        cluster, tmp_path):
    write_requests(tmp_path / "in.jsonl", count=20, max_tokens=2)
    status, words = run(cluster, tmp_path, engine=["-m", "/nowhere.gguf"])
    assert status == 1
    said = [w for w in words.splitlines() if w.startswith("ray_batch: ")]
    assert len(said) == 1 and "/nowhere.gguf: No such file" in said[0], words
    assert len(records(tmp_path)) == 1  # the id that is there twice


@pytest.mark.parametrize(
    "options, engine, expected",
    [
        (["--lines", "0"], ENGINE, "--lines: expected 1 or more, got 0"),
        ([], [*ENGINE, "-o", "x"], "-o: not for the engines"),
        ([], ["--ram", "1G"], "expected -- -m MODEL"),
        (["--engines", "9"], ENGINE, "9 engines of 1 CPUs do not fit"),
        (["-i", "/nowhere"], ENGINE, "/nowhere"),
    ],
)
def test_a_wrong_flag_is_one_line(cluster, tmp_path, options, engine, expected):
    write_requests(tmp_path / "in.jsonl", count=20, max_tokens=2)
    status, words = run(cluster, tmp_path, *options, engine=engine)
    assert status != 0
    assert any(expected in word for word in words.splitlines()), words
    assert "Traceback" not in words
