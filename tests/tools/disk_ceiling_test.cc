#include "tools/disk_ceiling.h"

#include "gtest/gtest.h"

namespace coldstream {
namespace {

DiskProbe Probe(double rate, const char* doubt = "") {
  DiskProbe probe;
  probe.bytes_per_second = rate;
  probe.doubt = doubt;
  return probe;
}

TEST(DiskCeilingTest, TheBetterProbeIsTheCeiling) {
  EXPECT_EQ((DiskCeiling{Probe(3), Probe(4)}.best()), 4);
  EXPECT_EQ((DiskCeiling{Probe(3), Probe(2)}.best()), 3);
  EXPECT_EQ((DiskCeiling{Probe(3), {}}.best()), 3);
}

TEST(DiskCeilingTest, AProbeInDoubtIsNone) {
  EXPECT_EQ((DiskCeiling{Probe(9, "too small"), Probe(4)}.best()), 4);
  EXPECT_FALSE((DiskCeiling{Probe(9, "too small"), {}}.best()));
  EXPECT_FALSE(DiskCeiling().best());
}

}  // namespace
}  // namespace coldstream
