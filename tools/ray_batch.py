#!/usr/bin/env python3
"""Spreads a batch file over the machines of a Ray cluster: an engine on each.

    ray_batch.py -i in.jsonl -o out.jsonl -- -m model.gguf --ram 20G

Reads and writes what `coldstream batch` does (OpenAI's batch format); what
follows `--` goes to `coldstream batch` on every machine. Ray Data reads the
input in tasks of some lines and gives each to an actor, which has one
`coldstream batch` running as long as it lives and feeds it through pipes, so
that a sweep of the weights serves the lines of all its tasks.

What holds whatever dies:
- OUT has whole lines, at most one for each line of the input. Started again
  with the same command the job goes on; a torn last line is cut off first.
- A task whose actor or machine is lost is done again elsewhere. A task's lines
  reach OUT together, so nothing of it is there twice.
- An engine that dies in mid-task is started anew and given what it had not
  answered; if that happens DEATHS_WITHOUT_ANSWER times with nothing answered,
  the job ends with the engine's last words.
- Answers do not depend on the machine or the other requests: they are those of
  one `coldstream batch` over the same file.

IN and the model must be readable under the same path on every machine, as for
any file that Ray Data reads. OUT is written here, where this script runs. Exit
status: 0, or 1 if the job failed or some requests did.
Needs the package ray[data].
"""

import argparse
import collections
import ctypes
import fcntl
import hashlib
import json
import logging
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings

import pyarrow
import ray
from ray.data import ActorPoolStrategy, Datasource, ReadTask
from ray.data.block import BlockMetadata

DEATHS_WITHOUT_ANSWER = 3
LAST_WORDS = 20  # lines of an engine's stderr kept for its obituary
SYNC_SECONDS = 5
# An actor works on one task while the next one's lines wait in its engine: the
# end of a task leaves no slot of the engine empty.
TASKS_OF_ACTOR = 2
READERS = 2
BLANK = b" \t\r\n\v\f"
RESULT_ID = re.compile(rb'\{"id":"batch_req_(\d+)"')
# Within a JSON string the quotes would have backslashes: this is never text.
NUMBERED = re.compile(rb'("(?:id|request_id)":"(?:batch_req_|req_|[a-z]+-))'
                      rb'(\d+)"')
OWN_FLAGS = {
    "-i", "--input", "-o", "--output", "--order", "--shard", "--json", "--trace"
}


class JobError(Exception):
    """One line for the user."""


# --- The input -------------------------------------------------------------


class Census:
    """Where the lines of a batch file are, and which ids are there twice.

    Blank lines are no requests. extents: (number, offset, size) of every other
    line; numbers count from 1 and include blank ones. duplicates: {number:
    custom_id} of lines whose id an earlier line has. fingerprint: of the whole
    file.
    """

    def __init__(self, path):
        self.extents = []
        self.duplicates = {}
        digest = hashlib.sha256()
        seen = set()
        offset = 0
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                digest.update(line)
                if line.strip(BLANK):
                    self.extents.append((number, offset, len(line)))
                    self._find_duplicate(number, line, seen)
                offset += len(line)
        self.fingerprint = digest.hexdigest()

    def _find_duplicate(self, number, line, seen):
        custom_id = custom_id_of(line)
        if custom_id is None:
            return
        key = hashlib.blake2b(custom_id.encode(), digest_size=16).digest()
        if key in seen:
            self.duplicates[number] = custom_id
        seen.add(key)


def custom_id_of(line):
    """The line's custom_id, or None where there is none to be had."""
    try:
        custom_id = json.loads(line).get("custom_id")
        custom_id.encode()
    except (ValueError, AttributeError, RecursionError):
        return None
    return custom_id


class Lines(Datasource):
    """Lines of a file as rows {line: number, text: bytes}, a task a block."""

    def __init__(self, path, extents, lines_a_task):
        super().__init__()
        self._path = path
        self._tasks = [
            extents[i:i + lines_a_task]
            for i in range(0, len(extents), lines_a_task)
        ]

    def get_name(self):
        return "BatchLines"

    def estimate_inmemory_data_size(self):
        return sum(size for task in self._tasks for _, _, size in task)

    def get_read_tasks(self, parallelism, *unused, **ignored):
        del parallelism, unused, ignored  # a task's lines stay together
        return [self._read_task(task) for task in self._tasks]

    def _read_task(self, task):
        path = self._path

        def read():
            texts = []
            with open(path, "rb") as file:
                for _, offset, size in task:
                    file.seek(offset)
                    texts.append(file.read(size))
            numbers = [number for number, _, _ in task]
            yield pyarrow.table({
                "line": pyarrow.array(numbers, pyarrow.int64()),
                "text": pyarrow.array(texts, pyarrow.large_binary()),
            })

        size = sum(size for _, _, size in task)
        return ReadTask(
            read,
            BlockMetadata(num_rows=len(task), size_bytes=size,
                          input_files=[path], exec_stats=None))


# --- The output ------------------------------------------------------------


class Output:
    """OUT and OUT.job: see the invariants above. One writer at a time.

    done: numbers of the lines that have a result; failed: how many of those are
    errors.
    """

    def __init__(self, path, job):
        self.done = set()
        self.failed = 0
        self._path = path
        self._synced = time.monotonic()
        self._file = open(path, "a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise JobError(f"{path}: another job is writing it") from error
        self._scan()
        self._check_job(job)

    def _scan(self):
        self._file.seek(0)
        whole = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break  # torn by a kill
            self._count(line, whole)
            whole += len(line)
        self._file.truncate(whole)

    def _count(self, line, offset):
        match = RESULT_ID.match(line)
        if match is None:
            raise JobError(f"{self._path}: offset {offset}: expected a result "
                           f"of a batch, got {line[:40]!r}; name another output")
        number = int(match.group(1))
        if number in self.done:
            raise JobError(f"{self._path}: offset {offset}: a second result of "
                           f"line {number}")
        self._note(number, line)

    def _note(self, number, line):
        self.done.add(number)
        self.failed += is_error(line)

    def _check_job(self, job):
        path = self._path + ".job"
        if self.done:
            try:
                with open(path, encoding="utf-8") as file:
                    begun = json.load(file)
            except (OSError, ValueError) as error:
                raise JobError(f"{path}: what {self._path} was begun with is "
                               f"not to be read ({error})") from error
            for key, value in job.items():
                if begun.get(key) != value:
                    raise JobError(
                        f"{self._path} was begun with {key} {begun.get(key)!r}, "
                        f"now it is {value!r}; go on with the former, or name "
                        "another output")
            return
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(job, file)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path)

    def append(self, lines):
        """lines: of one task, with their line ends."""
        self._file.write(b"".join(lines))
        self._file.flush()
        for line in lines:
            self._note(int(RESULT_ID.match(line).group(1)), line)
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self._sync()

    def _sync(self):
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self):
        self._sync()
        self._file.close()


def is_error(line):
    return not line.rstrip().endswith(b'"error":null}')


def duplicate_result(number, custom_id):
    """As `coldstream batch` says it, which sees all lines itself."""
    message = ("custom_id: expected one that no line before has, got "
               f'"{custom_id}" again')
    code = "duplicate_custom_id"
    text = json.dumps(
        {
            "id": f"batch_req_{number}",
            "custom_id": custom_id,
            "response": {
                "status_code": 400,
                "request_id": f"req_{number}",
                "body": {
                    "error": {
                        "message": message,
                        "type": "invalid_request_error",
                        "param": "custom_id",
                        "code": code,
                    }
                },
            },
            "error": {"code": code, "message": message},
        },
        ensure_ascii=False,
        separators=(",", ":"))
    return text.encode() + b"\n"


def renumbered(result, number):
    """The result with the line's number in the file for that in the pipe."""
    head, comma, rest = result.partition(b'"choices":')
    head = NUMBERED.sub(rb'\g<1>%d"' % number, head)
    return head + comma + rest


# --- The engine ------------------------------------------------------------


class EngineDied(Exception):
    pass


class EngineProcess:
    """One `coldstream batch` between two pipes. Any number of threads."""

    def __init__(self, command):
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, preexec_fn=die_with_parent)
        self._write = threading.Lock()
        self._sent = 0  # guarded by it
        self._answered = threading.Condition()
        self._results = {}  # this and the next two guarded by it
        self._ended = False
        self.answers = 0
        self._words = collections.deque(maxlen=LAST_WORDS)
        self._talk = threading.Thread(target=self._listen, daemon=True)
        self._talk.start()
        threading.Thread(target=self._receive, daemon=True).start()

    def _listen(self):
        for line in self._process.stderr:
            self._words.append(line.decode(errors="replace").rstrip())

    def _receive(self):
        for line in self._process.stdout:
            match = RESULT_ID.match(line)
            if match is None or not line.endswith(b"\n"):
                break
            with self._answered:
                self._results[int(match.group(1))] = line
                self.answers += 1
                self._answered.notify_all()
        self._process.kill()
        with self._answered:
            self._ended = True
            self._answered.notify_all()

    def answer(self, text):
        """Sends a line; what it returns gives the answer when called.

        Errors: EngineDied, from either.
        """
        with self._write:  # order of numbers is the order in the pipe
            self._sent += 1
            number = self._sent
            try:
                self._process.stdin.write(text.rstrip(b"\r\n") + b"\n")
                self._process.stdin.flush()
            except OSError as error:
                raise EngineDied(self._obituary()) from error

        def wait():
            with self._answered:
                while number not in self._results:
                    if self._ended:
                        raise EngineDied(self._obituary())
                    self._answered.wait()
                return self._results.pop(number)

        return wait

    def _obituary(self):
        status = self._process.wait()
        self._talk.join(timeout=1)
        words = [w for w in self._words if "error" in w] or list(self._words)
        how = (f"signal {-status}" if status < 0 else f"status {status}")
        return f"{socket.gethostname()}: {how}: {words[-1] if words else ''}"


def die_with_parent():
    """An actor that is killed leaves no engine behind, with all its memory."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Worker:
    """Ray's actor: rows in, {line, result} out. TASKS_OF_ACTOR threads."""

    def __init__(self, command):
        self._command = command
        self._lock = threading.Lock()
        self._engine = None
        self._deaths = 0

    def __call__(self, batch):
        numbers = [int(number) for number in batch["line"]]
        texts = dict(zip(numbers, (bytes(text) for text in batch["text"])))
        results = {}
        while len(results) < len(texts):
            engine = self._living()
            try:
                waits = {
                    number: engine.answer(text)
                    for number, text in texts.items() if number not in results
                }
                for number, wait in waits.items():
                    results[number] = renumbered(wait(), number)
            except EngineDied as death:
                self._bury(engine, death)
        return {"line": numbers, "result": [results[n] for n in numbers]}

    def _living(self):
        with self._lock:
            if self._engine is None:
                self._engine = EngineProcess(self._command)
            return self._engine

    def _bury(self, engine, death):
        with self._lock:
            if engine is self._engine:  # the first to notice
                self._engine = None
                self._deaths = 0 if engine.answers else self._deaths + 1
                print(f"ray_batch: the engine died: {death}", file=sys.stderr)
            if self._deaths >= DEATHS_WITHOUT_ANSWER:
                raise JobError(str(death))


# --- The job ---------------------------------------------------------------


def parse_args(argv):
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0],
        epilog="What follows -- goes to coldstream batch: -- -m model.gguf ...")
    parser.add_argument("-i", "--input", required=True, metavar="FILE")
    parser.add_argument("-o", "--output", required=True, metavar="FILE",
                        help="a file that is there is gone on with")
    parser.add_argument("--order", choices=["completion", "input"],
                        default="completion")
    parser.add_argument("--address", help="of the cluster (default: $RAY_ADDRESS,"
                        " or one of this machine alone)")
    parser.add_argument("--engines", type=int,
                        help="default: one a machine")
    parser.add_argument("--cpus", type=int,
                        help="of each engine (default: all of the smallest "
                        "machine, so that each has one engine)")
    parser.add_argument("--gpus", type=float, default=0, help="of each engine")
    parser.add_argument("--lines", type=int, default=64,
                        help="of a task: what is done again when an engine's "
                        "machine is lost (default 64)")
    parser.add_argument("--coldstream", default="coldstream",
                        help="the command on each machine")
    at = argv.index("--") if "--" in argv else len(argv)
    args = parser.parse_args(argv[:at])
    args.engine = argv[at + 1:]
    args.engine_flags = {word.split("=")[0] for word in args.engine}
    for name in ("engines", "cpus", "lines"):
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"--{name}: expected 1 or more, got {value}")
    for flag in sorted(OWN_FLAGS & args.engine_flags):
        parser.error(f"{flag}: not for the engines; ray_batch.py has its own -i,"
                     " -o and --order, and no --shard, --json, --trace")
    if not {"-m", "--model"} & args.engine_flags:
        parser.error("expected -- -m MODEL ... at the end")
    return args


def machines():
    return [
        int(node["Resources"]["CPU"])
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
    ]


def engine_command(args, cpus):
    command = [args.coldstream, "batch", *args.engine, "-i", "-", "-o", "-"]
    if not {"-t", "--threads"} & args.engine_flags:
        command += ["-t", str(cpus)]
    return command


def run(args):
    census = Census(args.input)
    output = Output(args.output, {
        "format": "coldstream-ray-batch-job",
        "version": 1,
        "options": shlex.join(args.engine),
        "input": census.fingerprint,
    })
    ahead = len(output.done)
    output.append([
        duplicate_result(number, custom_id)
        for number, custom_id in census.duplicates.items()
        if number not in output.done
    ])
    extents = [
        extent for extent in census.extents if extent[0] not in output.done
    ]
    try:
        if extents:
            work(args, extents, len(census.extents), output)
    finally:
        output.close()
    print(f"{len(output.done) - ahead} requests done, {output.failed} failed "
          f"in all, {ahead} were done before", file=sys.stderr)
    return 1 if output.failed else 0


def work(args, extents, lines, output):
    """extents: what is left of `lines` lines."""
    ray.init(address=args.address, log_to_driver=True, logging_level="warning")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*ray_remote_args.*")  # its own
    context.execution_options.preserve_order = args.order == "input"
    sizes = machines()
    cpus = args.cpus or min(sizes)
    engines = args.engines or len(sizes)
    if sum(size // cpus for size in sizes) < engines:
        raise JobError(f"{engines} engines of {cpus} CPUs do not fit on machines "
                       f"of {', '.join(map(str, sizes))}; lower --engines or "
                       "--cpus")
    results = ray.data.read_datasource(
        Lines(os.path.abspath(args.input), extents, args.lines),
        num_cpus=0,  # the engines have them all
        concurrency=READERS).map_batches(
            Worker,
            fn_constructor_args=[engine_command(args, cpus)],
            batch_size=None,
            compute=ActorPoolStrategy(
                size=engines,
                max_tasks_in_flight_per_actor=TASKS_OF_ACTOR,
                enable_true_multi_threading=True),
            num_cpus=cpus,
            num_gpus=args.gpus,
            max_concurrency=TASKS_OF_ACTOR,
            scheduling_strategy="SPREAD")
    for batch in results.iter_batches(batch_size=None, prefetch_batches=0,
                                      batch_format="pyarrow"):
        output.append([bytes(line) for line in batch["result"].to_pylist()])
        if sys.stderr.isatty():
            print(f"\r{len(output.done)} done ({output.failed} failed) of "
                  f"{lines}", end="", file=sys.stderr)


def cause_of(error):
    """The line of a JobError that Ray has wrapped in its own errors."""
    found = re.findall(r"JobError: (.*)", str(error))
    return found[-1] if found else None


def main():
    args = parse_args(sys.argv[1:])
    if shutil.which(args.coldstream) is None and os.path.sep in args.coldstream:
        print(f"ray_batch: {args.coldstream}: no such command", file=sys.stderr)
        return 1
    try:
        return run(args)
    except (JobError, OSError) as error:
        print(f"ray_batch: {error}", file=sys.stderr)
    except ray.exceptions.RayError as error:
        cause = cause_of(error)
        if cause is None:
            raise
        print(f"ray_batch: {cause}", file=sys.stderr)
    except KeyboardInterrupt:
        print("ray_batch: interrupted; the same command goes on", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
