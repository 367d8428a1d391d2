// Runs a fuzz target without a fuzzer: over every file of the folders given,
// and over each cut short at every length and with every byte changed in a few
// ways. Deterministic, so that it can be a test.
//
//   gguf_fuzz_replay tests/fuzz/corpus/gguf
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// Past this the changes are spread out, so that the time stays in seconds.
constexpr size_t kMostChangesPerFile = 2000;

size_t runs = 0;

void Run(const std::vector<uint8_t>& input) {
  // A copy of the exact size, so that AddressSanitizer sees its end.
  const auto exact = std::make_unique<uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), exact.get());
  LLVMFuzzerTestOneInput(exact.get(), input.size());
  ++runs;
}

void RunChanged(std::vector<uint8_t> input) {
  Run(input);
  const size_t step = input.size() / kMostChangesPerFile + 1;
  for (size_t size = 0; size < input.size(); size += step) {
    Run(std::vector<uint8_t>(input.begin(),
                             input.begin() + static_cast<ptrdiff_t>(size)));
  }
  for (size_t i = 0; i < input.size(); i += step) {
    const uint8_t before = input[i];
    const uint8_t changed[] = {0, 0xFF, static_cast<uint8_t>(before ^ 0x80),
                               static_cast<uint8_t>(before + 1)};
    for (const uint8_t value : changed) {
      input[i] = value;
      Run(input);
    }
    input[i] = before;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
      paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    RunChanged({std::istreambuf_iterator<char>(file), {}});
  }
  std::printf("%zu runs over %zu files\n", runs, paths.size());
  return paths.empty() ? 1 : 0;
}
