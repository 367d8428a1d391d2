#!/usr/bin/env python3
"""Tests of run.sh without a card: run_test.py COLDSTREAM WITH_DEVICE

COLDSTREAM: the program; WITH_DEVICE: the same with a device of the tests. The
model is a tiny one, the golden test one that says what it is told to.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "run.sh"
PROGRAMS = {}
# Four bytes a weight: little arithmetic for its size.
TINY = ("--type f32 --layers 12 --hidden 256 --heads 4 --kv-heads 1 --ffn 512 "
        "--vocab 1000")
NONE = "--preset none"


class RunTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"
        self.scratch = self.folder / "scratch"
        self.scratch.mkdir()

    def test_without_a_build_folder_a_card_is_looked_for_first(self):
        if pathlib.Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi"):
            self.skipTest("there may be a card here")
        done = subprocess.run([SCRIPT], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Arun.sh: no device to build for: .+\n\Z")

    def run_script(self, program, golden="exit 0", **environment):
        build = self.folder / "build"
        for name, text in (("tools/coldstream", f'exec {PROGRAMS[program]} "$@"'),
                           ("tests/device/golden_on_gpu_test", golden),
                           ("sanitizer", "exit 0")):
            file = build / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("#!/bin/sh\n" + text + "\n")
            file.chmod(0o755)
        return subprocess.run(
            [SCRIPT, build, self.out], capture_output=True, text=True,
            env=os.environ | {"TMPDIR": str(self.scratch),
                              "COMPUTE_SANITIZER": str(build / "sanitizer"),
                              "COLDSTREAM_DEVICE_MODEL": TINY} | environment)

    def test_a_run_has_a_row_for_each_step_and_leaves_nothing_behind(self):
        done = self.run_script("with_device")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(done.stdout, (self.out / "table.txt").read_text())
        for step in ("golden models", "synth", "decode, resident",
                     "decode, 75 % in VRAM, rest in RAM",
                     "decode, 50 % in VRAM, rest in RAM",
                     "decode, 25 % in VRAM, rest in RAM",
                     "decode, 50 % in VRAM, rest on disk",
                     "prefill 512, resident",
                     "prefill 512, 50 % in VRAM, rest in RAM",
                     "batch of 32, resident",
                     "batch of 32, 50 % in VRAM, rest in RAM",
                     "memcheck", "racecheck"):
            self.assertRegex(done.stdout, rf"(?m)^{step}  +ok ")
        self.assertEqual(list(self.scratch.iterdir()), [])
        self.check_where_weights_were()

    def check_where_weights_were(self):
        """Uploaded from RAM, and from disk through it."""
        uploaded, read = {}, {}
        with tarfile.open(self.out / "steps.tar.gz") as steps:
            for name in ("resident", "50 % in VRAM, rest in RAM",
                         "50 % in VRAM, rest on disk"):
                file = "".join(c if c.isalnum() else "_" for c in f"decode, {name}")
                bench = json.load(steps.extractfile(f"steps/{file}.out"))
                uploaded[name] = bench["vram"]["upload_bytes_per_pass"]
                read[name] = bench["pass_read_bytes"]
        self.assertEqual(list(map(bool, uploaded.values())), [False, True, True])
        self.assertEqual(list(map(bool, read.values())), [False, False, True])

    def test_no_device_is_one_line(self):
        done = self.run_script("coldstream", golden="exit 3")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Arun.sh: no device to run on: .+\n\Z")

    def test_a_failed_step_is_a_row_and_the_exit_status(self):
        done = self.run_script("with_device", golden="echo '2 FAILED TESTS'; exit 1",
                               COLDSTREAM_DEVICE_MODEL=NONE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("golden models: FAILED: exit status 1: 2 FAILED TESTS",
                      done.stdout)
        self.assertRegex(done.stdout, r"(?m)^memcheck  +ok ")

    def test_a_model_that_cannot_be_made_is_a_row(self):
        done = self.run_script("with_device",
                               COLDSTREAM_DEVICE_MODEL=NONE)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^synth: FAILED: exit status 2: .*none")

    def test_steps_without_time_fail(self):
        done = self.run_script("with_device", COLDSTREAM_DEVICE_SECONDS="12")
        self.assertEqual(done.returncode, 1)
        self.assertIn("golden models: FAILED: exit status 1: no time was left",
                      done.stdout)


if __name__ == "__main__":
    PROGRAMS["with_device"] = pathlib.Path(sys.argv.pop()).resolve()
    PROGRAMS["coldstream"] = pathlib.Path(sys.argv.pop()).resolve()
    unittest.main()
