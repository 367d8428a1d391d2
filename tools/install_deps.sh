#!/usr/bin/env bash
# Installs the Debian packages that Coldstream is built and tested with, and any
# named as arguments: tools/install_deps.sh [PACKAGE...]. Debian 12 and Ubuntu
# 24.04. Silent, and needs no rights, where all are there already.
set -euo pipefail

packages=(
  ca-certificates cmake g++ ninja-build pkg-config python3
  libabsl-dev libbenchmark-dev libboost-context-dev libcli11-dev libgmock-dev libgtest-dev
  libpcre2-dev libtbb-dev liburing-dev nlohmann-json3-dev
  "$@"
)

if ! command -v dpkg-query >/dev/null; then
  echo "install_deps.sh: not a Debian system; install by hand:" \
       "${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ $status == "install ok installed" ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install_deps.sh: needs root or sudo to install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    echo "install_deps.sh: failed: $*" >&2
    exit 1
  fi
}

echo "installing ${missing[*]}" >&2
quietly "${as_root[@]}" apt-get update -q
quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}"
