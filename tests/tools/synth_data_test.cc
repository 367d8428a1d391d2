#include "tools/synth_data.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coldstream {
namespace {

SynthModel SmallModel(const char* type) {
  // The embedding takes more than one chunk.
  return DescribeSynthModel(
      *ResolveShape({.layers = 2, .hidden = 2048, .ffn = 512, .heads = 8}),
      *QuantMix::FromName(type));
}

std::string Made(const SynthData& data, const SynthChunk& chunk) {
  std::string bytes(chunk.bytes, '\0');
  data.Fill(chunk, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST(SynthDataTest, ChunksCoverEveryTensorInOrderInWholeBlocks) {
  for (const char* type : {"q4_k_m", "q6_k", "mxfp4", "f32"}) {
    const SynthModel model = SmallModel(type);
    const SynthData data(model, 0);
    size_t at = 0;
    for (size_t t = 0; t < model.tensors.size(); ++t) {
      uint64_t offset = 0;
      for (; offset < model.tensors[t].bytes(); ++at) {
        ASSERT_LT(at, data.chunks().size());
        const SynthChunk& chunk = data.chunks()[at];
        EXPECT_EQ(chunk.tensor, t);
        EXPECT_EQ(chunk.offset, offset);
        EXPECT_LE(chunk.bytes, SynthData::kMaxChunkBytes);
        EXPECT_EQ(chunk.bytes % InfoOf(model.tensors[t].type).block_bytes, 0u);
        offset += chunk.bytes;
      }
      EXPECT_EQ(offset, model.tensors[t].bytes());
    }
    EXPECT_EQ(at, data.chunks().size());
    EXPECT_GT(at, model.tensors.size());
  }
}

TEST(SynthDataTest, EveryChunkIsUnlikeEveryOther) {
  const SynthModel model = SmallModel("q4_0");
  const SynthData data(model, 3);
  std::vector<std::string> beginnings;
  for (const SynthChunk& chunk : data.chunks()) {
    beginnings.push_back(Made(data, chunk));
    beginnings.back().resize(512);
  }
  std::ranges::sort(beginnings);
  EXPECT_EQ(std::ranges::adjacent_find(beginnings), beginnings.end());
}

TEST(SynthDataTest, AChunkIsTheSameInWhateverOrderItIsMade) {
  const SynthModel model = SmallModel("q5_k");
  const SynthData forward(model, 9);
  const SynthData backward(model, 9);
  std::vector<std::string> chunks;
  for (const SynthChunk& chunk : forward.chunks())
    chunks.push_back(Made(forward, chunk));
  for (size_t i = chunks.size(); i-- > 0;)
    EXPECT_TRUE(Made(backward, backward.chunks()[i]) == chunks[i]) << i;
}

}  // namespace
}  // namespace coldstream
