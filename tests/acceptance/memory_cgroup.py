"""A memory control group for one command, v1 or v2, and what it saw."""

import os
import pathlib
import subprocess


class MemoryCgroup:
    """Use as a context manager; run() starts commands inside the group."""

    def __init__(self, limit_bytes: int, root: str = "/sys/fs/cgroup"):
        self.limit_bytes = limit_bytes
        base = pathlib.Path(root)
        self.v1 = (base / "memory").is_dir()
        parent = base / "memory" if self.v1 else base
        self.path = parent / f"coldstream.{os.getpid()}"

    def __enter__(self):
        self.path.mkdir()
        limit = "memory.limit_in_bytes" if self.v1 else "memory.max"
        (self.path / limit).write_text(str(self.limit_bytes))
        if not self.v1:
            (self.path / "memory.swap.max").write_text("0")
        return self

    def __exit__(self, *_):
        if self.v1:
            (self.path / "memory.force_empty").write_text("0")
        self.path.rmdir()

    def run(self, command, **options):
        def enter():
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

        return subprocess.run(command, preexec_fn=enter, **options)

    def oom_kills(self) -> int:
        name = "memory.oom_control" if self.v1 else "memory.events"
        for line in (self.path / name).read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == "oom_kill":
                return int(value)
        raise RuntimeError(f"{self.path / name} has no oom_kill line")

    def peak_bytes(self) -> int:
        name = "memory.max_usage_in_bytes" if self.v1 else "memory.peak"
        return int((self.path / name).read_text())


def drop_caches():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
