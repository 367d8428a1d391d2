#include "runtime/fingerprint.h"

#include <gtest/gtest.h>

namespace coldstream {
namespace {

// The published values of FNV-1a with 128 bits.
TEST(FingerprintTest, IsFnv1a) {
  EXPECT_EQ(Fingerprint().Hex(), "6c62272e07bb014262b821756295c58d");
  Fingerprint a;
  a.Add("a");
  EXPECT_EQ(a.Hex(), "d228cb696f1a8caf78912b704e4a8964");
  Fingerprint foobar;
  foobar.Add("foobar");
  EXPECT_EQ(foobar.Hex(), "343e1662793c64bf6f0d3597ba446f18");
}

TEST(FingerprintTest, DependsOnTheBytesAndNotOnHowTheyCome) {
  Fingerprint print;
  print.Add("foo");
  print.Add("");
  print.Add("bar");
  EXPECT_EQ(print.value(), FingerprintOf("foobar"));
  EXPECT_NE(FingerprintOf("foobar"), FingerprintOf("foobas"));
}

}  // namespace
}  // namespace coldstream
