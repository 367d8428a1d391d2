#!/usr/bin/env bash
# Checks style: tools/lint.sh [--all | FILE...]. Without arguments, the files
# that differ from the branch main. clang-format, the include check (always of
# the whole tree) and clang-tidy, two files at a time. Needs a configured
# build/release for clang-tidy's compile commands.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ${1:-} == --all ]]; then
  mapfile -t files < <(git ls-files)
elif (($#)); then
  files=("$@")
else
  mapfile -t files < <(git diff --name-only --diff-filter=d main;
                       git ls-files --others --exclude-standard)
fi

sources=()  # formatted
units=()    # compiled
for file in "${files[@]}"; do
  case $file in
    *.h | *.cc | *.cu) sources+=("$file") ;;
  esac
  case $file in
    tests/install/client/*) ;;  # built by the install test alone
    *.cc) units+=("$file") ;;
  esac
done

failed=0
echo "clang-format: ${#sources[@]} files"
if ((${#sources[@]})); then
  clang-format --dry-run -Werror "${sources[@]}" || failed=1
fi

python3 tests/include_check.py || failed=1

echo "clang-tidy: ${#units[@]} files"
if ((${#units[@]})); then
  if [[ ! -f build/release/compile_commands.json ]]; then
    echo "lint.sh: configure first: cmake --preset release" >&2
    exit 1
  fi
  printf '%s\0' "${units[@]}" |
    xargs -0 -n 1 -P 2 clang-tidy -p build/release --quiet || failed=1
fi
exit "$failed"
