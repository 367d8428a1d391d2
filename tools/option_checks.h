// Checks for command-line options whose errors say what would have been right.
//
//   app.add_option("--prefetch-depth", depth, "Slots")
//       ->transform(IntegerIn(1, 64))
//       ->type_name("N");  // help shows N:1..64
//   // --prefetch-depth: expected a whole number from 1 to 64, got '0'
//
// Each returns a CLI11 validator that reports and, where text stands for a
// number (a size, a choice), rewrites it to that number. Nothing is thrown from
// here; CLI11 turns a report into its own exception, which main catches.
#ifndef COLDSTREAM_TOOLS_OPTION_CHECKS_H_
#define COLDSTREAM_TOOLS_OPTION_CHECKS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"

namespace coldstream {

// A whole number in [least, most].
CLI::Validator IntegerIn(int64_t least, int64_t most);

// A size as tools/byte_size.h reads it, in [least, most] and a multiple of
// `multiple`. The option's variable is a uint64_t.
CLI::Validator SizeIn(uint64_t least, uint64_t most, uint64_t multiple = 1);

// A finite number above zero.
CLI::Validator PositiveNumber();

// A number in [least, most].
CLI::Validator NumberIn(double least, double most);

// One of a few words. The option's variable is the enum (or an integer).
template <typename Enum>
using Choices = std::vector<std::pair<std::string, Enum>>;

CLI::Validator OneOfIntegers(const Choices<int64_t>& choices);

template <typename Enum>
CLI::Validator OneOf(const Choices<Enum>& choices) {
  Choices<int64_t> integers;
  for (const auto& [name, value] : choices)
    integers.emplace_back(name, static_cast<int64_t>(value));
  return OneOfIntegers(integers);
}

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_OPTION_CHECKS_H_
