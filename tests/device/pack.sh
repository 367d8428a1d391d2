#!/usr/bin/env bash
# Copies what tests/device/run.sh runs, and the shared libraries it needs but
# those of the C library and the driver, from one machine to another:
#
#   tests/device/pack.sh build/device FOLDER
#   tests/device/run.sh FOLDER          # on the other
set -euo pipefail
(($# == 2)) || { echo "usage: pack.sh BUILD FOLDER" >&2; exit 2; }
build=$1 folder=$2

mkdir -p "$folder"/{tools,tests/device,lib}
for program in tools/coldstream tests/device/golden_on_gpu_test; do
  cp "$build/$program" "$folder/$program"
  strip "$folder/$program"
  ldd "$build/$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*|libcuda)\.so' |
    xargs -r cp -L -t "$folder/lib"
done
du -sh "$folder" >&2
