// A ReadBackend that puts flaws into another one's answers.
//
// Faults are data: each read drawn from a seeded table of kinds and weights, so
// a run can be repeated. Every flaw is one that a kernel may legally show:
//
//   short      fewer bytes than asked for, at least 1; what lies behind them in
//              the destination is poisoned
//   again      -EAGAIN or -EINTR, nothing read
//   io_error   -EIO
//   late       delivered only after `late_results` others, or when nothing else
//              is on its way
//   reordered  the results at hand are delivered in a random order
//   zero       0 bytes, as at the end of the file
//
// Thread-safety: as ReadBackend; counts() is for after the reader is gone or
// idle.
#ifndef COLDSTREAM_TESTS_SUPPORT_FAULTY_BACKEND_H_
#define COLDSTREAM_TESTS_SUPPORT_FAULTY_BACKEND_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "io/read_backend.h"

namespace coldstream {

enum class Fault { kOk, kShort, kAgain, kIoError, kLate, kReordered, kZero };
inline constexpr size_t kFaultKinds = 7;

struct FaultTable {
  uint64_t seed = 1;
  // How often each kind is drawn, in parts of their sum; by Fault.
  std::array<uint32_t, kFaultKinds> weights = {1, 0, 0, 0, 0, 0, 0};
  int late_results = 5;
  // Direct reads get -EINVAL, as from a file system that accepts O_DIRECT at
  // open only.
  bool refuse_direct = false;
  // Before results are handed over: a slow disk.
  std::chrono::microseconds delay{0};

  FaultTable& With(Fault fault, uint32_t weight) {
    weights[static_cast<size_t>(fault)] = weight;
    return *this;
  }

  // All that must not change a single byte.
  static FaultTable Harmless(uint64_t seed);
};

class FaultyBackend final : public ReadBackend {
 public:
  FaultyBackend(std::unique_ptr<ReadBackend> inner, const FaultTable& table);

  Status Start() override { return inner_->Start(); }
  int capacity() const override { return inner_->capacity(); }
  void Push(const RawRead& read) override;
  Status Wait(std::vector<RawResult>* results) override;
  void Wake() override { inner_->Wake(); }
  StatusOr<uint64_t> RegisterBuffers(
      std::span<const std::span<std::byte>> buffers) override {
    return inner_->RegisterBuffers(buffers);
  }
  const char* name() const override { return inner_->name(); }

 private:
  struct Pending {
    RawRead read;
    Fault fault = Fault::kOk;
  };
  struct Held {
    RawResult result;
    int others_left = 0;
  };

  Fault Draw();
  // Applies the read's fault to its result; to `ready_`, or to `held_`.
  void Take(const RawResult& result);

  const std::unique_ptr<ReadBackend> inner_;
  const FaultTable table_;
  std::mt19937_64 random_;
  std::unordered_map<uint64_t, Pending>
      inside_;  // in the inner backend, by tag
  std::vector<RawResult> ready_;
  std::vector<Held> held_;
  bool shuffle_ = false;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_FAULTY_BACKEND_H_
