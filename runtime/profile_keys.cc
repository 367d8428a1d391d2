#include "runtime/profile_keys.h"

#include <cstdint>
#include <fstream>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "io/printable.h"

namespace coldstream {
namespace {

constexpr size_t kMaxName = 120;

// FNV-1a, 64 bits: the same on every machine, and for a key that is enough.
class Hash {
 public:
  void Add(std::string_view bytes) {
    for (const char byte : bytes) {
      value_ ^= static_cast<uint8_t>(byte);
      value_ *= 0x100000001b3;
    }
    AddNumber(bytes.size());
  }
  void AddNumber(uint64_t number) {
    for (int i = 0; i < 8; ++i, number >>= 8) {
      value_ ^= number & 0xff;
      value_ *= 0x100000001b3;
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

// "model name : ..." of x86; others call it otherwise or say nothing.
std::string CpuName(const SystemPaths& paths) {
  std::ifstream info(absl::StrCat(paths.proc, "/cpuinfo"));
  std::string line;
  while (std::getline(info, line)) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !absl::StartsWith(line, "model name"))
      continue;
    std::string name = line.substr(colon + 1);
    absl::StripAsciiWhitespace(&name);
    return Printable(name, kMaxName);
  }
  return "unknown CPU";
}

}  // namespace

std::string ModelKey(const Checkpoint& checkpoint) {
  Hash hash;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    hash.Add(tensor.name);
    hash.AddNumber(static_cast<uint64_t>(tensor.type));
    hash.AddNumber(tensor.shape.size());
    for (const uint64_t size : tensor.shape) hash.AddNumber(size);
  }
  return absl::StrFormat("%d tensors, %d bytes, %016x",
                         checkpoint.tensors().size(), checkpoint.tensor_bytes(),
                         hash.value());
}

std::string ComputeKey(const std::string& isa_name, int threads,
                       const SystemPaths& paths) {
  return absl::StrFormat("%s, %s, %d threads", CpuName(paths), isa_name,
                         threads);
}

TunedKey TunedKeyOf(const std::string& disk, const Checkpoint& checkpoint,
                    const EngineOptions& options) {
  TunedKey key;
  key.disk = disk;
  key.model = ModelKey(checkpoint);
  key.ram_bytes = options.ram_bytes;
  key.threads = options.threads;
  if (options.gpu != nullptr) {
    key.device = options.gpu->device->name();
    key.vram_bytes = options.vram_bytes;
    key.cpu_layers = options.cpu_layers.value_or(0);
  }
  return key;
}

}  // namespace coldstream
