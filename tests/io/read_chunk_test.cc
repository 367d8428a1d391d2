#include "io/read_chunk.h"

#include <vector>

#include "base/byte_units.h"
#include "gtest/gtest.h"
#include "tests/support/pattern_file.h"

namespace coldstream {
namespace {

constexpr DirectAlignment kAlign{.memory = 4096, .offset = 4096};

// Destinations are only added to here, never written.
std::byte* Address(uint64_t at) { return reinterpret_cast<std::byte*>(at); }

TEST(ChunkCutterTest, CutsWindowsInOrderWithoutGapOrOverlap) {
  ChunkCutter cutter({{0, 4096, 10000, Address(1 << 20)},
                      {0, 0, 0, Address(0)},
                      {1, 8192, 4096, Address(2 << 20)}});
  struct Piece {
    int file;
    uint64_t offset, length, to;
  };
  const std::vector<Piece> expected = {{0, 4096, 8192, 1 << 20},
                                       {0, 12288, 1808, (1 << 20) + 8192},
                                       {1, 8192, 4096, 2 << 20}};
  for (const Piece& e : expected) {
    ASSERT_FALSE(cutter.done());
    const ReadWindow piece = cutter.Next(8192);
    EXPECT_EQ(piece.file, e.file);
    EXPECT_EQ(piece.offset, e.offset);
    EXPECT_EQ(piece.length, e.length);
    EXPECT_EQ(piece.destination, Address(e.to));
  }
  EXPECT_TRUE(cutter.done());
}

TEST(ChunkCutterTest, AWindowLargerThanFourGiBIsCutWhole) {
  const uint64_t length = 9 * kGiB + 4096;
  ChunkCutter cutter({{0, 3 * kGiB, length, Address(kMiB)}});
  uint64_t at = 0;
  while (!cutter.done()) {
    const ReadWindow piece = cutter.Next(kGiB);
    ASSERT_EQ(piece.offset, 3 * kGiB + at);
    ASSERT_EQ(piece.destination, Address(kMiB + at));
    ASSERT_LE(piece.length, kGiB);
    const RawRead read = ReadChunk(piece).NextRead(kAlign, false);
    ASSERT_EQ(read.length, piece.length);
    at += piece.length;
  }
  EXPECT_EQ(at, length);
}

TEST(ReadChunkTest, ADirectReadAsksForWholeBlocksAndABufferedOneForTheRest) {
  const ReadChunk chunk({0, 8192, 5000, Address(4096)});
  EXPECT_EQ(chunk.NextRead(kAlign, false).length, 8192u);
  EXPECT_EQ(chunk.NextRead(kAlign, true).length, 5000u);
  EXPECT_EQ(chunk.NextRead({4096, 512}, false).length, 5120u);
  EXPECT_EQ(chunk.NextRead({4096, 65536}, false).length, 65536u);
}

TEST(ReadChunkTest, AShortDirectReadIsContinuedFromTheStartOfItsLastBlock) {
  ReadChunk chunk({0, 8192, 16384, Address(1 << 20)});
  EXPECT_EQ(chunk.Advance(5000, kAlign, false), ReadChunk::Progress::kAdvanced);
  const RawRead read = chunk.NextRead(kAlign, false);
  EXPECT_EQ(read.offset, 8192u + 4096);
  EXPECT_EQ(read.length, 16384u - 4096);
  EXPECT_EQ(read.destination, Address((1 << 20) + 4096));
  EXPECT_EQ(chunk.Advance(12288, kAlign, false), ReadChunk::Progress::kDone);
}

TEST(ReadChunkTest, AShortReadKeepsBothOffsetAndMemoryAligned) {
  // Offsets in steps of 512 are allowed, memory asks for 4096.
  const DirectAlignment alignment{.memory = 4096, .offset = 512};
  ReadChunk chunk({0, 512, 16384, Address(1 << 20)});
  EXPECT_EQ(chunk.Advance(4096 + 1024, alignment, false),
            ReadChunk::Progress::kAdvanced);
  const RawRead read = chunk.NextRead(alignment, false);
  EXPECT_EQ(read.offset, 512u + 4096);
  EXPECT_EQ(read.destination, Address((1 << 20) + 4096));
}

TEST(ReadChunkTest, AShortBufferedReadIsContinuedWhereItEnded) {
  ReadChunk chunk({0, 100, 1000, Address(4096)});
  EXPECT_EQ(chunk.Advance(1, kAlign, true), ReadChunk::Progress::kAdvanced);
  EXPECT_EQ(chunk.NextRead(kAlign, true).offset, 101u);
  EXPECT_EQ(chunk.NextRead(kAlign, true).length, 999u);
}

TEST(ReadChunkTest, LessThanABlockIsNoProgress) {
  ReadChunk chunk({0, 0, 8192, Address(4096)});
  EXPECT_EQ(chunk.Advance(4095, kAlign, false), ReadChunk::Progress::kStuck);
  EXPECT_EQ(chunk.NextRead(kAlign, false).offset, 0u);
}

TEST(ReadChunkTest, BytesBeyondTheWindowDoNotCount) {
  // The file grew since it was opened: the last block is full now.
  ReadChunk chunk({0, 0, 5000, Address(4096)});
  EXPECT_EQ(chunk.Advance(8192, kAlign, false), ReadChunk::Progress::kDone);
  EXPECT_EQ(chunk.missing(), 0u);
}

TEST(CheckWindowTest, ADirectWindowMustBeAlignedExceptAtTheEnd) {
  const PatternFile pattern(3 * 4096 + 10);
  const auto file = pattern.Open(DirectMode::kAuto);
  if (!file->direct()) GTEST_SKIP() << file->direct_refusal();
  const uint64_t block = BlockBytes(file->alignment());
  const auto ok = [&](uint64_t offset, uint64_t length, uint64_t to) {
    return CheckWindow({0, offset, length, Address(to)}, *file).ok();
  };
  EXPECT_TRUE(ok(0, block, 4096 * 16));
  EXPECT_TRUE(ok(0, file->size(), 4096 * 16));
  EXPECT_FALSE(ok(0, file->size() - 1, 4096 * 16));
  EXPECT_FALSE(ok(1, block, 4096 * 16));
  EXPECT_FALSE(ok(0, block, 4096 * 16 + 1));
}

}  // namespace
}  // namespace coldstream
