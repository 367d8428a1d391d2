#!/usr/bin/env python3
"""Which source files can be compiled as one: group_sources.py ROOT MOST FILE...

Prints groups of at most MOST files as a list of CMake's: semicolons between
groups, bars between the files of one. Files that define the same name outside
all headers (in an anonymous namespace, as a macro) are never in one group, so
that nobody has to invent names that differ from those of the file next door. A
file is on its own where a name in its anonymous namespace is also one of a
header below ROOT, which a neighbour may include. Larger than it need be, the set of names costs a group; too small, it would be a
compiler error: so every name that could be one of a definition at the beginning
of a line counts.
"""

import pathlib
import re
import sys

FOLDERS = ("base", "io", "kernels", "scheduler", "graphs", "runtime", "tools",
           "tests")
MACRO = re.compile(r"^#define\s+(\w+)", re.M)
TYPE = re.compile(r"^(?:class|struct|enum(?: class)?|union)\s+(\w+)")
ALIAS = re.compile(r"^using\s+(\w+)\s*=.*")
# What is defined before an initialiser: a function, an array, a variable.
NAMED = re.compile(r"(\w+)(?:\[\w*\])*\s*(?:[({;]|$)")
KEYWORDS = {"bool", "const", "decltype", "double", "float", "int", "noexcept",
            "override", "void"}
# What may be there twice, and what closes a block.
HARMLESS = re.compile(r"^(?:#|//|\}|namespace|using\s+(?:::|namespace)|TEST|"
                      r"INSTANTIATE|MATCHER|static_assert)")


def names(text):
    """What a file defines for itself: name to its alias, or to None."""
    found = dict.fromkeys(MACRO.findall(text))
    for line in text.splitlines():
        if not line or line[0].isspace() or HARMLESS.match(line):
            continue
        if alias := ALIAS.match(line):
            found[alias[1]] = alias[0]
        elif kind := TYPE.match(line):
            found[kind[1]] = None
        else:
            before = line.split(" = ")[0].removesuffix(" =")
            found.update(dict.fromkeys(NAMED.findall(before)))
    return {name: what for name, what in found.items() if name not in KEYWORDS}


def hidden(text):
    """The lines in anonymous namespaces."""
    return "\n".join(re.findall(r"^namespace \{$(.*?)^\}  // namespace$", text,
                                re.M | re.S))


def header_names(root):
    """Of types and functions that the headers below `root` declare."""
    found = set()
    for folder in FOLDERS:
        for header in sorted((root / folder).rglob("*.h")):
            found.update(names(header.read_text()))
    return found


def apart(mine, others):
    """Whether a name of one is another thing in the other; the same alias twice
    is allowed."""
    return any(mine[name] is None or mine[name] != others[name]
               for name in mine.keys() & others.keys())


def groups(most, files, in_headers=frozenset()):
    made = []  # (files, names)
    alone = []
    for file in files:
        text = pathlib.Path(file).read_text()
        if names(hidden(text)).keys() & in_headers:
            alone.append([file])
            continue
        mine = names(text)
        for members, taken in made:
            if len(members) < most and not apart(mine, taken):
                members.append(file)
                taken |= mine
                break
        else:
            made.append(([file], mine))
    return [members for members, _ in made] + alone


def main():
    made = groups(int(sys.argv[2]), sys.argv[3:],
                  header_names(pathlib.Path(sys.argv[1])))
    print(";".join("|".join(members) for members in made))


if __name__ == "__main__":
    main()
