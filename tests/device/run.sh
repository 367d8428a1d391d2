#!/usr/bin/env bash
# What only a card can show: tests/device/run.sh [BUILD [OUT]]
#
# Golden models on the GPU, llama3-8b in q4_k_m (random weights, 5 GB written to
# $TMPDIR and removed) fully resident and streamed from RAM and disk, then
# compute-sanitizer on a small golden model. Prints one table and leaves it in
# OUT/table.txt, with what every step printed in OUT/steps.tar.gz. OUT: $OUT, or
# build/device-results.
#
# BUILD: a build folder with CUDA; none: builds one for this card in
# build/device. Shared libraries in BUILD/lib are found (tests/device/pack.sh).
# Ends within COLDSTREAM_DEVICE_SECONDS (480) of the build. Exit status: 1 where
# a step failed or there is no device.
set -euo pipefail
build=${1:+$(realpath "$1")}
out=${2:-${OUT:-}}
out=${out:+$(realpath -m "$out")}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${out:-build/device-results}
# Flags of synth.
read -ra shape <<<"${COLDSTREAM_DEVICE_MODEL:---preset llama3-8b --type q4_k_m}"

fail() { printf 'run.sh: %s\n' "$*" >&2; exit 1; }
command -v python3 >/dev/null || fail "python3 is needed for the table"

if [[ -z $build ]]; then
  build=build/device
  { command -v nvidia-smi >/dev/null && nvidia-smi -L | grep -q GPU; } ||
    [[ -e /dev/nvidia0 ]] ||
    fail "no device to build for: nvidia-smi names none, no /dev/nvidia0"
  cmake --preset cuda -B "$build" -D COLDSTREAM_CUDA_ARCHITECTURES=native \
    -D COLDSTREAM_BUILD_BENCHMARKS=OFF >&2
  cmake --build "$build" --target coldstream golden_on_gpu_test >&2
fi
coldstream=$build/tools/coldstream
golden_test=$build/tests/device/golden_on_gpu_test
for program in "$coldstream" "$golden_test"; do
  [[ -x $program ]] || fail "$program is not there; build it, or give no folder"
done
export LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export COLDSTREAM_TEST_DATA=$PWD/tests  # of this tree, wherever it was built
export COLDSTREAM_NEEDS_DEVICE=1         # a test that skips itself fails
export COLDSTREAM_PROFILE=off           # nothing measured on another day

mkdir -p "$out"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/coldstream-device-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
steps=$scratch/steps
mkdir "$steps"
deadline=$((SECONDS + ${COLDSTREAM_DEVICE_SECONDS:-480} - 10))

# Both are written after each step: whoever ends this early has what there is.
failed=0
report() {
  failed=0
  python3 tests/device/device_table.py "$steps" >"$out/table.txt" || failed=1
  tar -czf "$out/steps.tar.gz" -C "$scratch" steps
}

# note NAME PHASE STATUS SECONDS LIMIT
note() {
  local IFS=$'\t'
  printf '%s\n' "$*" >>"$steps/steps.tsv"
  printf 'run.sh: %s: %s\n' "$1" "exit status $3 after $4 s" >&2
  report
}

# step NAME PHASE LIMIT COMMAND...: into files named as device_table.py expects.
step() {
  local name=$1 phase=$2 limit=$3 status=0 left begin=$SECONDS
  shift 3
  local file=$steps/${name//[^[:alnum:]]/_}
  left=$((deadline - SECONDS))
  if ((left < 5)); then
    echo "no time was left for it" >"$file.err"
    note "$name" "$phase" 1 0 "$limit"
    return 1
  fi
  ((limit <= left)) || limit=$left
  timeout -k 5 "$limit" "$@" >"$file.out" 2>"$file.err" || status=$?
  note "$name" "$phase" "$status" $((SECONDS - begin)) "$limit"
  return "$status"
}

# not_run NAME WHY
not_run() {
  echo "$2" >"$steps/${1//[^[:alnum:]]/_}.err"
  note "$1" check - 0 0
}

# bench NAME PHASE LIMIT FLAGS...
bench() {
  local name=$1 phase=$2 limit=$3
  shift 3
  step "$name" "$phase" "$limit" "$coldstream" bench -m "$model" --device cuda \
    --json --warmup 1 --probe-seconds 0.5 "$@" || true
}

small=tests/golden/llama.q2_k.gguf
if ! timeout -k 5 60 "$coldstream" bench -m "$small" --device cuda -p 1 -n 0 \
    -r 1 --probe-seconds 0 --json >/dev/null 2>"$scratch/device.err"; then
  fail "no device to run on: $(tail -n 1 "$scratch/device.err")"
fi

step "golden models" check 100 "$golden_test" || true

model=$scratch/model.gguf
if step synth check 100 "$coldstream" synth "${shape[@]}" -o "$model" \
    --json; then
  weights=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["tensor_bytes"])' \
    <"$steps/synth.out")
  share() { echo $((weights * $1 / 100)); }
  # The least that works beside half of the weights in VRAM, as the error for
  # too little says: nothing of the other half stays in RAM.
  least_ram=$("$coldstream" bench -m "$model" --device cuda \
    --vram "$(share 50)" --ram 1M -p 0 -n 4 2>&1 >/dev/null |
    grep -oE -- '--ram [0-9]+M' | head -n 1 | cut -d ' ' -f 2) || true

  bench "decode, resident" generation 45 -p 0 -n 64 -r 3
  for percent in 50 25 75; do
    bench "decode, $percent % in VRAM, rest in RAM" generation 45 \
      --vram "$(share $percent)" -p 0 -n 16 -r 2
  done
  bench "decode, 50 % in VRAM, rest on disk" generation 75 \
    --vram "$(share 50)" --ram "${least_ram:-1G}" -p 0 -n 4 -r 1
  bench "prefill 512, resident" prompt 45 -p 512 -n 0 -b 512 -r 3
  bench "prefill 512, 50 % in VRAM, rest in RAM" prompt 45 \
    --vram "$(share 50)" -p 512 -n 0 -b 512 -r 2
  bench "batch of 32, resident" generation 45 --parallel 32 -p 0 -n 16 -r 3
  bench "batch of 32, 50 % in VRAM, rest in RAM" generation 45 \
    --vram "$(share 50)" --parallel 32 -p 0 -n 8 -r 2
  rm -f "$model"
fi

for tool in memcheck racecheck; do
  if ! command -v "${COMPUTE_SANITIZER:=compute-sanitizer}" >/dev/null; then
    not_run "$tool" "$COMPUTE_SANITIZER was not found; COMPUTE_SANITIZER names it"
    continue
  fi
  step "$tool" check 70 "$COMPUTE_SANITIZER" --tool "$tool" --error-exitcode 9 \
    --print-limit 20 "$golden_test" --gtest_filter='*llama_q2_k*' || true
done

cat "$out/table.txt"
exit "$failed"
