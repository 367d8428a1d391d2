#include "kernels/ops.h"

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "tests/kernels/available_rows.h"

namespace coldstream {
namespace {

// Sets COLDSTREAM_ISA for a test, and puts back what was there.
class IsaVariable {
 public:
  explicit IsaVariable(const char* value) {
    if (const char* before = std::getenv(kName)) before_ = before;
    setenv(kName, value, 1);
  }
  ~IsaVariable() {
    if (before_.empty())
      unsetenv(kName);
    else
      setenv(kName, before_.c_str(), 1);
  }
  IsaVariable(const IsaVariable&) = delete;
  IsaVariable& operator=(const IsaVariable&) = delete;

 private:
  static constexpr const char* kName = "COLDSTREAM_ISA";
  std::string before_;
};

TEST(OpsTest, EveryRowHasEveryOperation) {
  for (const Ops* ops : AvailableRows()) {
    EXPECT_NE(ops->rms_norm, nullptr) << ops->name;
    EXPECT_NE(ops->layer_norm, nullptr) << ops->name;
    EXPECT_NE(ops->rope, nullptr) << ops->name;
    EXPECT_NE(ops->attention, nullptr) << ops->name;
    EXPECT_NE(ops->swiglu, nullptr) << ops->name;
    EXPECT_NE(ops->add, nullptr) << ops->name;
    EXPECT_NE(ops->scale, nullptr) << ops->name;
    EXPECT_NE(ops->to_f16, nullptr) << ops->name;
    EXPECT_NE(ops->all_finite, nullptr) << ops->name;
    for (const auto& quantize : ops->quantize)
      EXPECT_NE(quantize, nullptr) << ops->name;
    for (const DTypeInfo& info : AllDTypes()) {
      EXPECT_NE(ops->MatmulFor(info.type).rows, nullptr)
          << ops->name << ", " << info.name;
      EXPECT_NE(ops->MatmulFor(info.type).dequantize, nullptr)
          << ops->name << ", " << info.name;
    }
  }
}

TEST(OpsTest, AnIsaRowOverridesTheScalarOne) {
  const Ops& scalar = *AvailableRows().front();
  for (const Ops* ops : AvailableRows()) {
    if (ops->isa == Isa::kScalar) continue;
    EXPECT_NE(ops->attention, scalar.attention) << ops->name;
    EXPECT_NE(ops->rms_norm, scalar.rms_norm) << ops->name;
    for (const DTypeInfo& info : AllDTypes())
      EXPECT_NE(ops->MatmulFor(info.type).rows,
                scalar.MatmulFor(info.type).rows)
          << ops->name << ", " << info.name;
  }
}

TEST(OpsTest, TheBestRowOfTheCpuIsTheDefault) {
  const IsaVariable variable("");
  const StatusOr<const Ops*> ops = SelectOps();
  ASSERT_TRUE(ops.ok()) << ops.status();
  EXPECT_EQ((*ops)->isa, BestIsa(DetectCpu()));
}

TEST(OpsTest, TheEnvironmentForcesARow) {
  for (const Ops* row : AvailableRows()) {
    const IsaVariable variable(IsaName(row->isa));
    const StatusOr<const Ops*> ops = SelectOps();
    ASSERT_TRUE(ops.ok()) << ops.status();
    EXPECT_EQ(*ops, row);
  }
}

TEST(OpsTest, AnUnknownRowIsAnErrorThatNamesTheChoices) {
  const IsaVariable variable("sse9");
  const Status status = SelectOps().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(status),
            "COLDSTREAM_ISA=sse9: expected scalar, avx2 or avx512");
}

TEST(OpsTest, ARowTheCpuCannotRunIsUnavailableNotACrash) {
  const Isa best = BestIsa(DetectCpu());
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    const StatusOr<const Ops*> ops = OpsFor(isa);
    if (isa <= best)
      EXPECT_TRUE(ops.ok()) << ops.status();
    else
      EXPECT_EQ(ops.status().code(), absl::StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace coldstream
