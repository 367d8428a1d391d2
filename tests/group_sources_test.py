#!/usr/bin/env python3
"""Tests of cmake/group_sources.py: which files are compiled as one."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # nothing into the source tree
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cmake"))
import group_sources  # noqa: E402


def source(body):
    return f'#include "own.h"\n\nnamespace coldstream {{\n{body}\n}}\n'


class GroupSourcesTest(unittest.TestCase):

    def groups(self, *bodies, most=10):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for i, body in enumerate(bodies):
                files.append(pathlib.Path(folder) / f"{i}.cc")
                files[-1].write_text(source(body))
            return [[int(pathlib.Path(file).stem) for file in members]
                    for members in group_sources.groups(most, files)]

    def test_files_without_a_common_name_are_one_group(self):
        self.assertEqual(self.groups("int A() {", "int B() {"), [[0, 1]])

    def test_a_group_has_no_more_than_asked_for(self):
        self.assertEqual(self.groups("", "", "", most=2), [[0, 1], [2]])

    def test_a_file_joins_the_first_group_that_takes_it(self):
        self.assertEqual(self.groups("int A() {", "int A() {", "int B() {"),
                         [[0, 2], [1]])

    def test_the_same_name_keeps_files_apart_whatever_it_is(self):
        definitions = ("constexpr int64_t kName = 1;",
                       "constexpr std::string_view kName =\n    \"x\";",
                       "constexpr int kName[] = {1};", "constexpr int kName{1};",
                       "class kName final : public Base {", "struct kName {",
                       "enum class kName { kA };", "using kName = int;",
                       "#define kName(x) x", "Status kName(int a) {",
                       "std::function<void()> kName(int a) {",
                       "template <typename T>\nvoid kName(T a) {",
                       "StatusOr<std::vector<int>>\nkName(int a) {")
        for one in definitions:
            for other in definitions:
                if one != other or not one.startswith("using"):
                    self.assertEqual(self.groups(one, other), [[0], [1]],
                                     (one, other))

    def test_a_file_that_hides_a_name_of_a_header_is_on_its_own(self):
        hides = "namespace {\nvoid Read(int a) {\n}\n}  // namespace"
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "io").mkdir()
            (root / "io" / "reader.h").write_text(source("struct Read {\n};"))
            in_headers = group_sources.header_names(root)
            for name, body in (("a", ""), ("b", hides), ("c", ""),
                               ("defines", "void Read::Close() {\n}")):
                (root / name).write_text(source(body))
            made = group_sources.groups(10, sorted(
                str(root / name) for name in ("a", "b", "c", "defines")), in_headers)
            self.assertEqual([[pathlib.Path(file).name for file in members]
                              for members in made], [["a", "c", "defines"], ["b"]])

    def test_what_may_be_there_twice_keeps_nothing_apart(self):
        for line in ("using ::testing::IsEmpty;", "namespace fs = std::filesystem;",
                     "using Clock = std::chrono::steady_clock;",
                     "  int indented = 0;", "// A comment (of one);"):
            self.assertEqual(self.groups(line, line), [[0, 1]], line)


if __name__ == "__main__":
    unittest.main()
