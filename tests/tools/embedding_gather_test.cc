#include "tools/embedding_gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::ElementsAre;

RequestResult Result(Status status, std::vector<float> vector, int64_t tokens) {
  RequestResult result;
  result.status = std::move(status);
  result.embedding = std::move(vector);
  result.prompt_tokens = tokens;
  return result;
}

// What comes of results that are taken in this order.
GatheredEmbeddings Gather(const std::vector<RequestResult>& results,
                          const std::vector<size_t>& order) {
  std::optional<GatheredEmbeddings> all;
  EmbeddingGather gather(results.size(), [&](GatheredEmbeddings gathered) {
    EXPECT_FALSE(all);
    all = std::move(gathered);
  });
  for (const size_t i : order) {
    EXPECT_FALSE(all);
    gather.Take(i, results[i]);
  }
  EXPECT_TRUE(all);
  return *std::move(all);
}

TEST(EmbeddingGatherTest, VectorsComeInTheOrderOfTheInputs) {
  const GatheredEmbeddings all = Gather(
      {Result({}, {1}, 3), Result({}, {2}, 4), Result({}, {3}, 5)}, {2, 0, 1});
  EXPECT_THAT(all.status, IsOk());
  EXPECT_THAT(all.vectors,
              ElementsAre(ElementsAre(1), ElementsAre(2), ElementsAre(3)));
  EXPECT_EQ(all.prompt_tokens, 12);
}

TEST(EmbeddingGatherTest, TheFirstInputThatFailsIsNamedWhateverCameFirst) {
  const std::vector<RequestResult> results = {
      Result({}, {1}, 1), Result(absl::InvalidArgumentError("long"), {}, 1),
      Result(absl::OutOfRangeError("far"), {}, 1)};
  for (const std::vector<size_t>& order :
       {std::vector<size_t>{0, 1, 2}, std::vector<size_t>{2, 1, 0}}) {
    EXPECT_THAT(Gather(results, order).status,
                StatusIs(absl::StatusCode::kInvalidArgument, "input 1: long"));
  }
  EXPECT_THAT(Gather({results[1]}, {0}).status,
              StatusIs(absl::StatusCode::kInvalidArgument, "long"));
}

TEST(EmbeddingGatherTest, AFailureOfTheMachineComesBeforeThoseOfInputs) {
  EXPECT_THAT(Gather({Result(absl::InvalidArgumentError("long"), {}, 1),
                      Result(absl::DataLossError("short read"), {}, 1)},
                     {0, 1})
                  .status,
              StatusIs(absl::StatusCode::kDataLoss, "short read"));
}

}  // namespace
}  // namespace coldstream
