#!/usr/bin/env python3
"""Tests of include_check.py on small trees, good and bad."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import include_check

CHECKER = pathlib.Path(include_check.__file__).resolve()


def guarded(path, body=""):
    guard = "COLDSTREAM_" + path.replace("/", "_").replace(".", "_").upper()
    return f"// Banner.\n#ifndef {guard}_\n#define {guard}_\n{body}\n#endif\n"


class IncludeCheckTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("base", "io", "kernels", "scheduler", "graphs", "runtime",
                     "tools", "tests"):
            self.write(f"{name}/{name}.h", guarded(f"{name}/{name}.h"))

    def write(self, path, text, listed=True):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if listed:
            folder, rest = path.split("/", 1)
            with open(self.root / folder / "CMakeLists.txt", "a") as lists:
                lists.write(f"  {rest}\n")

    def check(self):
        return include_check.check_tree(self.root)

    def run_checker(self, *arguments):
        return subprocess.run([sys.executable, str(CHECKER), *arguments],
                              capture_output=True, text=True)

    def finds(self, path, include, *parts):
        self.write(path, f"// One.\n#include {include}\n")
        found = self.check()
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(f"{path}:2: "), found)
        for part in parts:
            self.assertIn(part, found[0])

    def allows(self, path, include):
        self.write(path, f"#include {include}\n")
        self.assertEqual(self.check(), [])

    def test_a_good_tree_has_no_findings(self):
        self.assertEqual(self.check(), [])

    def test_each_layer_may_include_those_below_it_and_no_other(self):
        below = {
            "base": "",
            "io": "base",
            "kernels": "base",
            "scheduler": "base io",
            "graphs": "base io kernels scheduler",
            "runtime": "base io kernels scheduler graphs",
            "tools": "base io scheduler runtime",
            "tests": "base io kernels scheduler graphs runtime tools",
        }
        for folder, allowed in below.items():
            for target in below:
                self.write(f"{folder}/to_{target}.cc",
                           f'#include "{target}/{target}.h"\n')
        found = {line.split(":")[0] for line in self.check()}
        expected = {
            f"{folder}/to_{target}.cc"
            for folder, allowed in below.items() for target in below
            if target != folder and target not in allowed.split()
        }
        self.assertEqual(found, expected)

    def test_liburing_is_for_one_file(self):
        self.allows("io/uring_backend.cc", "<liburing.h>")
        self.finds("io/reader.cc", "<liburing.h>", "liburing")

    def test_liburing_by_a_folder_is_seen_too(self):
        self.finds("runtime/engine.cc", "<liburing/io_uring.h>", "liburing")

    def test_onetbb_is_for_two_files(self):
        self.allows("base/parallel.cc", "<oneapi/tbb/parallel_for.h>")
        self.allows("graphs/stream_graph.cc", "<tbb/flow_graph.h>")
        self.finds("runtime/engine.cc", "<oneapi/tbb.h>", "oneTBB")

    def test_onetbb_by_its_old_name_is_seen_too(self):
        self.finds("kernels/matmul.cc", "<tbb/parallel_for.h>", "oneTBB")

    def test_intrinsics_are_for_instruction_set_folders(self):
        self.allows("kernels/cpu/avx2/matmul.cc", "<immintrin.h>")
        self.allows("kernels/cpu/neon/matmul.cc", "<arm_neon.h>")
        self.finds("kernels/cpu/scalar/matmul.cc", "<immintrin.h>",
                   "intrinsics")

    def test_intrinsics_elsewhere_in_kernels_are_seen(self):
        self.finds("kernels/ops.cc", "<x86intrin.h>", "intrinsics")

    def test_cuda_is_for_its_device_and_its_kernels(self):
        self.allows("base/cuda_device.cc", "<cuda_runtime.h>")
        self.allows("kernels/cuda/matmul.cu", "<cuda_fp16.h>")
        self.finds("runtime/engine.cc", "<cuda_runtime_api.h>", "CUDA")

    def test_cublas_is_cuda(self):
        self.finds("kernels/matmul.cc", "<cublas_v2.h>", "CUDA")

    def test_boost_context_is_for_the_simt_shim(self):
        self.allows("tests/simt/fiber.cc", "<boost/context/fiber.hpp>")
        self.finds("tests/io/reader_test.cc", "<boost/context/fiber.hpp>",
                   "Boost.Context")

    def test_libraries_of_the_command_line_stay_in_tools(self):
        self.allows("tools/run.cc", '"nlohmann/json.hpp"')
        self.allows("tools/main.cc", '"CLI/CLI.hpp"')
        self.finds("runtime/engine.cc", '"nlohmann/json.hpp"', "nlohmann")

    def test_tests_may_include_anything(self):
        self.allows("tests/io/ring_test.cc", "<liburing.h>")

    def test_a_path_that_is_not_from_the_root_is_refused(self):
        self.finds("io/reader.cc", '"io.h"', "path from the root")

    def test_a_path_that_climbs_is_refused(self):
        self.finds("io/reader.cc", '"../tools/tools.h"', "path from the root")

    def test_our_headers_in_angle_brackets_are_refused(self):
        self.finds("io/reader.cc", "<base/base.h>", "in quotes")

    def test_angle_brackets_do_not_get_round_the_layers(self):
        self.write("io/reader.cc", "#include <tools/tools.h>\n")
        self.assertTrue(any("may include" in line for line in self.check()))

    def test_a_header_that_is_not_there_is_reported(self):
        self.finds("io/reader.cc", '"base/gone.h"', "does not exist")

    def test_includes_through_a_macro_are_refused(self):
        self.finds("io/reader.cc", "HEADER", "must name its file")

    def test_odd_spacing_does_not_hide_an_include(self):
        self.write("io/reader.cc", '  #  include"tools/tools.h" // why\n')
        self.assertEqual(len(self.check()), 1)

    def test_comments_are_not_includes(self):
        self.write(
            "io/reader.cc", '// #include <liburing.h>\n/* a\n'
            '#include "tools/tools.h"\n*/\n#include "io/io.h"  // <tbb/x.h>\n')
        self.assertEqual(self.check(), [])

    def test_a_wrong_or_missing_guard_is_reported(self):
        self.write("io/a.h", guarded("io/b.h"))
        self.write("io/c.h", "#pragma once\n")
        found = self.check()
        self.assertEqual(len(found), 2, found)
        self.assertIn("COLDSTREAM_IO_A_H_", found[0])
        self.assertIn("COLDSTREAM_IO_C_H_", found[1])

    def test_a_file_that_no_cmakelists_names_is_reported(self):
        self.write("io/left_out.cc", "", listed=False)
        self.write("io/not_left_out.cc", "")
        found = self.check()
        self.assertEqual(found, ["io/left_out.cc:1: not named in a "
                                 "CMakeLists.txt"])

    def test_a_fuzz_target_is_named_without_its_suffix(self):
        self.write("tests/fuzz/gguf_fuzz.cc", "", listed=False)
        self.write("tests/fuzz/lost_fuzz.cc", "", listed=False)
        (self.root / "tests/fuzz/CMakeLists.txt").write_text(
            "coldstream_fuzz(gguf_fuzz gguf DEPS coldstream::io)\n")
        found = self.check()
        self.assertEqual(len(found), 1, found)
        self.assertIn("lost_fuzz.cc", found[0])

    def test_a_header_of_a_test_need_not_be_named(self):
        self.write("tests/io/fake.h", guarded("tests/io/fake.h"), listed=False)
        self.assertEqual(self.check(), [])

    def test_the_program_fails_on_findings_and_prints_them(self):
        self.write("io/reader.cc", '#include "tools/tools.h"\n')
        done = self.run_checker(str(self.root))
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stdout.startswith("io/reader.cc:1: "))
        self.assertTrue(done.stdout.endswith("include check: 1 findings\n"))

    def test_the_program_passes_a_good_tree(self):
        done = self.run_checker(str(self.root))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_another_root_is_an_error_not_a_pass(self):
        with tempfile.TemporaryDirectory() as empty:
            done = self.run_checker(empty)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not the root", done.stderr)


if __name__ == "__main__":
    unittest.main()
