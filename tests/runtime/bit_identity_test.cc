// The first promise: logits do not depend on the budget, the prefetch depth,
// the thread count, the reader, or the timing and shape of its reads.
//
// Every combination is compared, bit for bit, with the same model's resident
// run. Slots refilled modulo the layer count corrupted a peer; hence models of
// 1, 2, 3, 5 and 7 layers and depths on both sides of every count.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "scheduler/memory_plan.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

struct Setting {
  uint64_t ram = 0;
  int depth = 2;
  int threads = 1;
  int64_t chunk = 5;
  ReaderOptions reader = {};
};

class BitIdentityTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    TinyModelOptions options;
    options.layers = GetParam();
    options.tied = GetParam() % 2 == 0;
    ASSERT_TRUE(WriteTinyModel(Path(), options).ok());
    OpenModel(kDefaultUnitBytes);
    std::mt19937 random(3);
    for (int i = 0; i < 13; ++i)
      tokens_.push_back(static_cast<TokenId>(random() % 300));
    resident_ = Logits({.ram = uint64_t{1} << 30});
    ASSERT_FALSE(resident_.empty());
  }

  std::string Path() const { return dir_.path() + "/model.gguf"; }

  void OpenModel(uint64_t unit_bytes) {
    auto model = Model::Open({.path = Path(), .unit_bytes = unit_bytes});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *model;
  }

  EngineOptions OptionsFor(const Setting& setting) const {
    EngineOptions options;
    options.ram_bytes = setting.ram;
    options.prefetch_depth = setting.depth;
    options.threads = setting.threads;
    options.reader = setting.reader;
    options.context = 64;
    options.batch_tokens = 16;
    options.logit_rows = 16;
    return options;
  }

  // All logits of tokens_, or nothing and a test failure.
  std::vector<float> Logits(const Setting& setting) {
    auto engine = Engine::Create(model_, OptionsFor(setting));
    if (!engine.ok()) {
      ADD_FAILURE() << engine.status();
      return {};
    }
    last_plan_ = (*engine)->plan();
    auto session = (*engine)->NewSession();
    std::vector<float> all;
    const Status status =
        session->Evaluate(tokens_, setting.chunk, Session::Logits::kAll,
                          [&](int64_t, std::span<const float> logits) {
                            all.insert(all.end(), logits.begin(), logits.end());
                            return absl::OkStatus();
                          });
    EXPECT_TRUE(status.ok()) << status;
    return all;
  }

  void ExpectSame(const Setting& setting, const std::string& what) {
    const std::vector<float> logits = Logits(setting);
    ASSERT_EQ(logits.size(), resident_.size()) << what;
    EXPECT_EQ(std::memcmp(logits.data(), resident_.data(),
                          logits.size() * sizeof(float)),
              0)
        << what;
  }

  // The least budget that works.
  uint64_t Least(int depth, int threads) const {
    auto engine = Engine::Create(
        model_, OptionsFor({.ram = 1 << 30, .threads = threads}));
    EXPECT_TRUE(engine.ok());
    return LeastBudget(model_->weights().units, (*engine)->plan().fixed, depth);
  }

  TempDir dir_;
  std::shared_ptr<const Model> model_;
  std::vector<TokenId> tokens_;
  std::vector<float> resident_;
  MemoryPlan last_plan_;
};

TEST_P(BitIdentityTest,
       EveryBudgetDepthThreadCountAndReaderGivesTheSameLogits) {
  const int units = static_cast<int>(model_->weights().units.size());
  for (int depth : {1, 2, 3, 5, units + 3}) {
    for (int step = 0; step <= 4; ++step) {
      for (int threads : {1, 2, 4}) {
        const uint64_t least = Least(depth, threads);
        // So deep a ring takes more than all the weights: all resident.
        const uint64_t all = std::max(least, Least(kMaxPrefetchDepth, threads));
        const uint64_t ram =
            least + (all - least) * static_cast<uint64_t>(step) / 4;
        for (IoBackendKind kind :
             {IoBackendKind::kAuto, IoBackendKind::kPread}) {
          Setting setting{.ram = ram, .depth = depth, .threads = threads};
          setting.chunk = 1 + (step + threads) % 6;
          setting.reader.backend = kind;
          ExpectSame(setting, absl::StrFormat(
                                  "ram %d, depth %d, %d threads, backend %d",
                                  ram, depth, threads, static_cast<int>(kind)));
        }
      }
    }
  }
}

TEST_P(BitIdentityTest, DelaysShortReadsAndReorderingChangeNothing) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    for (IoBackendKind kind : {IoBackendKind::kAuto, IoBackendKind::kPread}) {
      Setting setting;
      setting.depth = 1 + static_cast<int>(seed % 4);
      setting.threads = 1 + static_cast<int>(seed % 3);
      setting.ram = Least(setting.depth, setting.threads);
      setting.reader.backend = kind;
      setting.reader.chunk_bytes = 4096 << (seed % 3);
      setting.reader.depth = 1 + static_cast<int>(seed % 7);
      setting.reader.wrap_backend = [seed](std::unique_ptr<ReadBackend> inner)
          -> std::unique_ptr<ReadBackend> {
        return std::make_unique<FaultyBackend>(std::move(inner),
                                               FaultTable::Harmless(seed));
      };
      ExpectSame(setting, absl::StrFormat("seed %d", seed));
      // A ring no smaller than the model means that it is resident instead.
      if (setting.depth == 1) {
        EXPECT_GT(last_plan_.pass_read_bytes, 0u);
      }
    }
  }
}

TEST_P(BitIdentityTest, UnitsOfAnySizeGiveTheSameLogits) {
  for (uint64_t unit_bytes : {uint64_t{1}, uint64_t{4000}, uint64_t{20000}}) {
    OpenModel(unit_bytes);
    for (int depth : {1, 3}) {
      for (int threads : {1, 3}) {
        Setting setting{.depth = depth, .threads = threads};
        for (uint64_t more : {0, 40000, 1 << 20}) {
          setting.ram = Least(depth, threads) + more;
          ExpectSame(setting, absl::StrFormat("units of %d, depth %d, +%d",
                                              unit_bytes, depth, more));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, BitIdentityTest,
                         ::testing::Values(1, 2, 3, 5, 7));

}  // namespace
}  // namespace coldstream
