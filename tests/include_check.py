#!/usr/bin/env python3
"""Checks who includes whom: include_check.py [ROOT].

The layers and fences of the house (README.md, "Where things are"): a folder
includes only folders below it, and each outside library with a fence is seen by
the files named here only, so that it can be replaced in one place. Also: every
header of ours is included by its path from the root, exists, and has the guard
of its path; every source file (but a test's own header) is named in a
CMakeLists.txt, so that none is left out of the build.

Prints one line "file:line: what is wrong" per finding; exit status 1 if any.
"""

import pathlib
import re
import sys

# folder: the folders it may include, beside itself. tests/ may include all.
LAYERS = {
    "base": set(),
    "io": {"base"},
    "kernels": {"base"},
    "scheduler": {"base", "io"},
    "graphs": {"base", "io", "kernels", "scheduler"},
    "runtime": {"base", "io", "kernels", "scheduler", "graphs"},
    "tools": {"base", "io", "scheduler", "runtime"},
}
FOLDERS = set(LAYERS) | {"tests"}

# what, pattern of the header, pattern of the files that may include it.
FENCES = [
    ("liburing", r"liburing(\.h|/)", r"io/uring_backend\.cc"),
    ("oneTBB", r"(oneapi/)?tbb/|oneapi/tbb\.h",
     r"base/parallel\.cc|graphs/stream_graph\.cc|runtime/generate_node\.h"),
    ("intrinsics", r"\w*intrin\.h|arm_(neon|sve)\.h",
     r"kernels/cpu/(?!scalar/)\w+/.*"),
    ("CUDA", r"(cuda|cublas|curand|nv|cub/|cooperative_groups|driver_types|"
     r"vector_types|device_launch_parameters|mma\.h)",
     r"base/cuda_device\.cc|kernels/cuda/.*"),
    ("PCRE2", r"pcre2", r"runtime/.*\.cc"),
    ("CLI11", r"CLI/", r"tools/.*"),
    ("nlohmann/json", r"nlohmann/", r"runtime/profile_json\.cc|tools/.*"),
]

SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".c", ".cpp", ".hpp", ".inc"}
INCLUDE = re.compile(r"^\s*#\s*(?:include|import)\b\s*(.*)$")
NAME = re.compile(r'^(?:<([^>]+)>|"([^"]+)")')
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def strip_comments(text):
    """Comments become blanks; lines keep their numbers."""
    return COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def is_ours(header):
    return "/" in header and header.split("/")[0] in FOLDERS


def check_include(root, file, header, quoted):
    """What is wrong with `file` including `header`, as a list of messages."""
    folder = file.split("/")[0]
    wrong = []
    if is_ours(header):
        target = header.split("/")[0]
        if not quoted:
            wrong.append(f'include "{header}" in quotes: it is ours')
        if not (root / header).is_file():
            wrong.append(f"{header} does not exist")
        if folder != "tests" and target != folder and \
                target not in LAYERS[folder]:
            allowed = ", ".join(sorted(LAYERS[folder])) or "nothing of ours"
            wrong.append(f"{folder}/ may include {allowed}, not {header}")
        return wrong
    if quoted and ("/" not in header or header.startswith(".")):
        wrong.append(f'include "{header}" by its path from the root')
    if re.match(r"boost/context", header) and \
            not file.startswith("tests/simt/"):
        wrong.append(f"Boost.Context ({header}) belongs in tests/simt/ only")
    if folder != "tests":
        for what, pattern, allowed in FENCES:
            if re.match(pattern, header) and not re.fullmatch(allowed, file):
                wrong.append(f"{what} ({header}) belongs in {allowed} only")
    return wrong


def check_guard(file, text):
    if not file.endswith(".h"):
        return []
    guard = "COLDSTREAM_" + re.sub(r"\W", "_", file).upper() + "_"
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith("#ifndef"):
            if line.split()[1:] != [guard] or \
                    lines[number:number + 1] != [f"#define {guard}"]:
                return [(number, f"the include guard should be {guard}")]
            return []
    return [(1, f"no include guard {guard}")]


def check_listed(root, file):
    """A file must be named in the CMakeLists.txt of its folder or one above.

    A fuzz target is named without its suffix: coldstream_fuzz(NAME ...).
    """
    path = pathlib.PurePosixPath(file)
    suffix = "" if file.startswith("tests/fuzz/") else re.escape(path.suffix)
    for folder in path.parents:
        lists = root / folder / "CMakeLists.txt"
        if not lists.is_file():
            continue
        stem = re.escape(str(path.relative_to(folder).with_suffix("")))
        text = re.sub(r"#[^\n]*", "", lists.read_text())
        if re.search(rf"(?<![\w./-]){stem}{suffix}(?![\w/-])", text):
            return []
    return [(1, "not named in a CMakeLists.txt")]


def check_file(root, file):
    text = strip_comments((root / file).read_text(encoding="utf-8"))
    found = check_guard(file, text)
    if not re.fullmatch(r"tests/.*\.h", file):
        found += check_listed(root, file)
    for number, line in enumerate(text.split("\n"), 1):
        directive = INCLUDE.match(line)
        if not directive:
            continue
        name = NAME.match(directive.group(1))
        if not name:
            found.append((number, "an include must name its file"))
            continue
        header = name.group(1) or name.group(2)
        found += [(number, message) for message in check_include(
            root, file, header, name.group(2) is not None)]
    return [f"{file}:{number}: {message}" for number, message in found]


def check_tree(root):
    root = pathlib.Path(root)
    found = []
    for folder in sorted(FOLDERS):
        for path in sorted((root / folder).rglob("*")):
            file = path.relative_to(root).as_posix()
            # tests/install/client is somebody else's project.
            if path.suffix in SUFFIXES and path.is_file() and \
                    not file.startswith("tests/install/client/"):
                found += check_file(root, file)
    return found


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else \
        pathlib.Path(__file__).resolve().parent.parent
    if not (pathlib.Path(root) / "base").is_dir():
        sys.exit(f"{root}: not the root of the source tree (no base/)")
    found = check_tree(root)
    print("\n".join(found + [f"include check: {len(found)} findings"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
