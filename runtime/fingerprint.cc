#include "runtime/fingerprint.h"

#include "absl/strings/str_format.h"

namespace coldstream {

void Fingerprint::Add(std::string_view bytes) {
  constexpr Wide kPrime = (Wide{1} << 88) | 0x13b;
  for (const char c : bytes)
    hash_ = (hash_ ^ static_cast<unsigned char>(c)) * kPrime;
}

Fingerprint::Value Fingerprint::value() const {
  return {static_cast<uint64_t>(hash_ >> 64), static_cast<uint64_t>(hash_)};
}

std::string Fingerprint::Hex() const {
  const auto [high, low] = value();
  return absl::StrFormat("%016x%016x", high, low);
}

Fingerprint::Value FingerprintOf(std::string_view bytes) {
  Fingerprint print;
  print.Add(bytes);
  return print.value();
}

}  // namespace coldstream
