// 128 bits that tell texts apart: FNV-1a.
//
//   Fingerprint print;
//   print.Add("some"); print.Add("text");
//   print.Hex();   // 32 digits
//
// Two different texts share a fingerprint by accident with a probability that
// need not be thought of; on purpose it can be done.
// Source: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm" (IETF
// draft-eastlake-fnv), 128-bit constants.
#ifndef COLDSTREAM_RUNTIME_FINGERPRINT_H_
#define COLDSTREAM_RUNTIME_FINGERPRINT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace coldstream {

class Fingerprint {
 public:
  using Value = std::pair<uint64_t, uint64_t>;  // high, low

  void Add(std::string_view bytes);
  Value value() const;
  std::string Hex() const;

 private:
  using Wide = unsigned __int128;
  Wide hash_ = (Wide{0x6c62272e07bb0142u} << 64) | Wide{0x62b821756295c58du};
};

Fingerprint::Value FingerprintOf(std::string_view bytes);

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_FINGERPRINT_H_
