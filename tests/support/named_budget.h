// The budget that an engine's refusal of a smaller one asks for.
#ifndef COLDSTREAM_TESTS_SUPPORT_NAMED_BUDGET_H_
#define COLDSTREAM_TESTS_SUPPORT_NAMED_BUDGET_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/byte_units.h"
#include "base/status.h"

namespace coldstream {

// Bytes. `flag`: "--ram" or "--vram", behind which the message has MiB.
inline uint64_t NamedBudget(const Status& refusal, const std::string& flag) {
  const std::string error = refusal.ToString();
  const size_t at = error.find(flag + " ");
  EXPECT_NE(at, std::string::npos) << error;
  if (at == std::string::npos) return 0;
  return std::stoull(error.substr(at + flag.size() + 1)) * kMiB;
}

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_SUPPORT_NAMED_BUDGET_H_
