#!/usr/bin/env python3
"""Tests of device_table.py on what `coldstream bench --json` wrote.

bench_streamed.json is a recorded run, of a tiny model on a device of the tests;
its rates are of no card.
"""

import copy
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # nothing into the source tree
import device_table  # noqa: E402

RECORDED = pathlib.Path(__file__).resolve().parent / "bench_streamed.json"


class DeviceTableTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.recorded = json.loads(RECORDED.read_text())

    def add(self, name, phase="check", status="0", out="", err="", seconds="3"):
        with open(self.folder / "steps.tsv", "a") as steps:
            steps.write("\t".join((name, phase, status, seconds, "45")) + "\n")
        file = self.folder / device_table.file_name(name)
        file.with_suffix(".out").write_text(out)
        file.with_suffix(".err").write_text(err)

    def add_bench(self, name, phase="generation", **changes):
        bench = copy.deepcopy(self.recorded)
        bench[phase] |= changes
        self.add(name, phase, out=json.dumps(bench))

    def steps(self):
        return device_table.load(self.folder)

    def table(self):
        return device_table.table(self.steps())

    def row(self, name):
        return next(line for line in self.table().splitlines()
                    if line.startswith(name + "  "))

    def test_a_row_has_rates_over_all_of_the_time(self):
        self.add_bench("decode")
        runs = self.recorded["generation"]["runs"]
        seconds = sum(run["run_seconds"] for run in runs)
        uploaded = sum(run["bytes_uploaded"] for run in runs) / seconds / 1e9
        read = sum(run["bytes_read"]["reader"] for run in runs) / seconds / 1e9
        touched = 2 * 4 * self.recorded["weights_bytes"] / seconds / 1e9
        share = touched / self.recorded["ceilings"]["vram_GBps"] * 100
        row = self.row("decode")
        self.assertIn(f"  {uploaded:.2f} (0 %)  ", row)
        self.assertIn(f"  {read:.2f}  ", row)
        self.assertIn(f"  {touched:.2f} ({share:.0f} %)  ", row)
        self.assertTrue(row.endswith("turns"), row)

    def test_the_phase_that_a_step_is_about_is_the_one_shown(self):
        self.add_bench("decode", "generation")
        self.add_bench("prefill", "prompt")
        for name, phase in (("decode", "generation"), ("prefill", "prompt")):
            median = self.recorded[phase]["tokens_per_second"]["median"]
            self.assertIn(f" {median:.4g} ", self.row(name))

    def test_a_link_that_nothing_went_over_has_no_figure(self):
        self.add_bench("decode", upload_GBps_over_wall_time=None,
                       disk_GBps_over_wall_time=None)
        self.assertEqual(self.row("decode").split()[4:6], ["-", "-"])

    def test_the_card_and_the_ceilings_are_named(self):
        self.add_bench("decode")
        ceiling = self.recorded["ceilings"]["upload_GBps"]
        table = self.table()
        self.assertTrue(table.startswith(self.recorded["device"]), table)
        self.assertIn(f"ceiling of uploads: {ceiling:.2f} to {ceiling:.2f}", table)
        self.assertNotIn("ceiling of disk", table)  # it was in doubt

    def test_a_step_that_failed_says_why(self):
        self.add("golden models", status="1", out="3 FAILED TESTS\n")
        self.add("decode", "generation", "1", err="coldstream: error: x\nsee --help\n")
        table = self.table()
        self.assertIn("golden models: FAILED: exit status 1: 3 FAILED TESTS", table)
        self.assertIn("decode: FAILED: exit status 1: coldstream: error: x", table)
        self.assertIn("FAILED", self.row("decode"))

    def test_a_step_that_took_too_long_failed(self):
        for status in ("124", "137"):
            self.add("racecheck" + status, status=status, err="working\n")
            self.assertIn(f"racecheck{status}: FAILED: not done after 45 s",
                          self.table())

    def test_output_that_is_not_as_expected_failed(self):
        self.add("empty", "generation")
        self.add("other phase", "prompt",
                 out=json.dumps(self.recorded | {"prompt": None}))
        self.add("older", "generation", out="{}")
        for step in self.steps():
            self.assertTrue(step.failed, step.name)
        self.table()

    def test_a_step_that_was_not_run_says_why_and_has_not_failed(self):
        self.add("batch of 32", status="-", err="bench has one sequence\n")
        self.assertIn("batch of 32: not run: bench has one sequence", self.table())
        self.assertFalse(self.steps()[0].failed)

    def test_targets_are_met_missed_or_not_measured(self):
        percent = "upload_percent_of_ceiling_over_wall_time"
        self.add_bench("decode, 75 % in VRAM, rest in RAM", **{percent: 95.0})
        self.add_bench("decode, 50 % in VRAM, rest in RAM", **{percent: 94.9})
        self.add("decode, 25 % in VRAM, rest in RAM", "generation", "1")
        table = self.table()
        said = {share: next(line for line in table.splitlines() if line.startswith(
            f"target, decode, {share} % in VRAM, rest in RAM"))
            for share in (75, 50, 25)}
        self.assertTrue(said[75].endswith("95.0 %, met"), said)
        self.assertTrue(said[50].endswith("94.9 %, MISSED"), said)
        self.assertTrue(said[25].endswith("not measured"), said)


if __name__ == "__main__":
    unittest.main()
