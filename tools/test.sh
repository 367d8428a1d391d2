#!/usr/bin/env bash
# Builds the release preset with its tests and runs them; arguments go to ctest:
# tools/test.sh -R sampler. Ends with ctest's summary and its exit status.
# COLDSTREAM_WERROR=ON makes warnings errors (.ci/run sets it; compilers newer
# than those we test with may warn of more). COLDSTREAM_CUDA_ARCHITECTURES=90
# compiles the kernels for one kind of card in place of all.
# COLDSTREAM_PYTHON=PATH, an interpreter with nanobind and pytest, builds and
# tests the Python module too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install_deps.sh
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-D CMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
if [[ -n ${COLDSTREAM_CUDA_ARCHITECTURES:-} ]]; then
  cuda=(-D COLDSTREAM_CUDA_ARCHITECTURES="$COLDSTREAM_CUDA_ARCHITECTURES")
else
  cuda=()
fi
python=()
if [[ -n ${COLDSTREAM_PYTHON:-} ]]; then
  python=(-D COLDSTREAM_BUILD_PYTHON=ON -D Python_EXECUTABLE="$COLDSTREAM_PYTHON")
fi
cmake --preset release -D COLDSTREAM_BUILD_TESTS=ON -D COLDSTREAM_TOGETHER=TESTS \
  -D COLDSTREAM_WERROR="${COLDSTREAM_WERROR:-OFF}" "${cuda[@]}" "${python[@]}" \
  "${launcher[@]}"
cmake --build build/release
exec ctest --test-dir build/release -j 2 --output-on-failure "$@"
