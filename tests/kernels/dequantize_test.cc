#include <bit>
#include <fstream>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/kernels/available_rows.h"
#include "tests/kernels/weight_rows.h"

namespace coldstream {
namespace {

nlohmann::json GoldenBlocks() {
  std::ifstream file(COLDSTREAM_TEST_DATA "/golden/quant_blocks.json");
  return nlohmann::json::parse(file);
}

std::vector<std::byte> BytesOfHex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(std::byte(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

TEST(DequantizeTest, EveryGoldenBlockIsExact) {
  const nlohmann::json golden = GoldenBlocks();
  ASSERT_EQ(golden.size(), 15u);
  for (const auto& [name, entry] : golden.items()) {
    const std::optional<DType> type = DTypeFromName(name);
    ASSERT_TRUE(type.has_value()) << name;
    EXPECT_EQ(DTypeFromId(entry["id"]), type) << name;
    const std::vector<std::byte> bytes = BytesOfHex(entry["hex"]);
    const std::vector<float> expected = entry["values"];
    ASSERT_EQ(RowBytes(*type, expected.size()), bytes.size()) << name;
    for (const Ops* ops : AvailableRows()) {
      std::vector<float> values(expected.size());
      ops->MatmulFor(*type).dequantize(
          bytes.data(), static_cast<int64_t>(values.size()), values.data());
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], expected[i])
            << name << " value " << i << ", row " << ops->name;
      }
    }
  }
}

TEST(DequantizeTest, EveryTypeHasAProductAndADequantiserInEveryRow) {
  for (const Ops* ops : AvailableRows()) {
    for (const DTypeInfo& info : AllDTypes()) {
      EXPECT_NE(ops->MatmulFor(info.type).rows, nullptr) << info.name;
      EXPECT_NE(ops->MatmulFor(info.type).dequantize, nullptr) << info.name;
    }
  }
}

TEST(DequantizeTest, APartOfARowEqualsThatPartOfTheWhole) {
  for (const DTypeInfo& info : AllDTypes()) {
    WeightRows weights(info.type, 1, 1024, 5, /*shift=*/1);
    const std::vector<float> whole = weights.Values();
    for (const Ops* ops : AvailableRows()) {
      std::vector<float> part(256);
      ops->MatmulFor(info.type).dequantize(
          weights.data() + RowBytes(info.type, 512), 256, part.data());
      for (size_t i = 0; i < part.size(); ++i)
        ASSERT_EQ(part[i], whole[512 + i]) << info.name << " value " << i;
    }
  }
}

TEST(DequantizeTest, Mxfp4ScalesReachTheSubnormals) {
  const Ops& scalar = **OpsFor(Isa::kScalar);
  std::byte block[17] = {};
  block[1] = std::byte{2};  // value 0 is twice 1.0 / 2
  for (const auto& [e, expected] : {std::pair{0, 0x1p-127f},
                                    {1, 0x1p-126f},
                                    {2, 0x1p-125f},
                                    {127, 1.0f},
                                    {254, 0x1p127f}}) {
    block[0] = static_cast<std::byte>(e);
    float out[32];
    scalar.MatmulFor(DType::kMXFP4).dequantize(block, 32, out);
    EXPECT_EQ(out[0], expected) << "exponent " << e;
  }
}

}  // namespace
}  // namespace coldstream
