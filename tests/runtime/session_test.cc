#include "runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "runtime/engine.h"
#include "runtime/model.h"
#include "scheduler/memory_plan.h"
#include "tests/support/faulty_backend.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override { Open({.layers = 3}); }

  void Open(const TinyModelOptions& tiny) {
    path_ = dir_.Path("model.gguf");
    ASSERT_THAT(WriteTinyModel(path_, tiny), IsOk());
    auto model = Model::Open({.path = path_});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *model;
  }

  EngineOptions Options() const {
    EngineOptions options;
    options.ram_bytes = uint64_t{1} << 30;
    options.context = 64;
    options.batch_tokens = 4;
    options.threads = 2;
    options.prefetch_depth = 2;
    return options;
  }

  // As little memory as will do: every unit but the pinned one is cold.
  EngineOptions Streaming() const {
    EngineOptions options = Options();
    const auto engine = Engine::Create(model_, options);
    EXPECT_THAT(engine.status(), IsOk());
    options.ram_bytes =
        LeastBudget(model_->weights().units, (*engine)->plan().fixed,
                    options.prefetch_depth);
    return options;
  }

  static GenerateRequest Request(int64_t max_tokens = 10) {
    GenerateRequest request;
    request.prompt = {72, 101, 108, 108, 111, 44, 32};
    request.max_tokens = max_tokens;
    request.sampling.temperature = 0;
    request.ignore_end_of_generation = true;
    return request;
  }

  // Greedy tokens of Request(), from an engine of its own.
  std::vector<TokenId> Reference(int64_t max_tokens = 10) const {
    auto engine = *Engine::Create(model_, Options());
    return engine->NewSession()->Generate(Request(max_tokens), {})->tokens;
  }

  TempDir dir_;
  std::string path_;
  std::shared_ptr<const Model> model_;
};

TEST_F(SessionTest, StreamedTextEqualsResidentText) {
  auto engine = *Engine::Create(model_, Streaming());
  ASSERT_GT(engine->plan().pass_read_bytes, 0u);
  std::string streamed;
  const auto result = engine->NewSession()->Generate(
      Request(), [&](std::string_view text) { streamed += text; });
  ASSERT_THAT(result.status(), IsOk());
  EXPECT_EQ(result->tokens, Reference());
  EXPECT_EQ(result->text, streamed);
  EXPECT_EQ(result->finish, FinishReason::kLength);
}

TEST_F(SessionTest, TheSameRequestAgainGivesTheSameAnswer) {
  auto engine = *Engine::Create(model_, Streaming());
  for (int round = 0; round < 3; ++round) {
    auto session = engine->NewSession();
    EXPECT_EQ(session->Generate(Request(), {})->tokens, Reference());
  }
}

TEST_F(SessionTest, SeededSamplingDependsOnTheSeedAlone) {
  GenerateRequest request = Request(20);
  request.sampling.temperature = 1.5;
  request.sampling.top_k = 0;
  request.sampling.seed = 42;
  auto resident = *Engine::Create(model_, Options());
  auto streaming = *Engine::Create(model_, Streaming());
  const auto first = resident->NewSession()->Generate(request, {})->tokens;
  EXPECT_EQ(streaming->NewSession()->Generate(request, {})->tokens, first);
  request.sampling.seed = 43;
  EXPECT_NE(resident->NewSession()->Generate(request, {})->tokens, first);
}

TEST_F(SessionTest, APromptLongerThanTheContextIsRefusedWithBothNumbers) {
  auto engine = *Engine::Create(model_, Options());
  GenerateRequest request = Request();
  request.prompt.assign(65, 1);
  const auto result = engine->NewSession()->Generate(request, {});
  EXPECT_THAT(result.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("65"), HasSubstr("64"))));
  EXPECT_EQ(engine->stats().passes, 0);
}

TEST_F(SessionTest, AnEmptyPromptIsRefused) {
  auto engine = *Engine::Create(model_, Options());
  GenerateRequest request = Request();
  request.prompt.clear();
  EXPECT_THAT(engine->NewSession()->Generate(request, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty")));
}

TEST_F(SessionTest, ATokenOutsideTheVocabularyIsRefused) {
  auto engine = *Engine::Create(model_, Options());
  for (TokenId id : {-1, 300, 1 << 30}) {
    GenerateRequest request = Request();
    request.prompt[3] = id;
    EXPECT_THAT(engine->NewSession()->Generate(request, {}).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(std::to_string(id))));
  }
  EXPECT_EQ(engine->NewSession()->Generate(Request(), {})->tokens, Reference());
}

TEST_F(SessionTest, GenerationEndsWhereTheContextIsFull) {
  auto engine = *Engine::Create(model_, Options());
  for (int64_t max_tokens : {int64_t{-1}, int64_t{1000}}) {
    auto session = engine->NewSession();
    const auto result = session->Generate(Request(max_tokens), {});
    ASSERT_THAT(result.status(), IsOk());
    EXPECT_EQ(result->finish, FinishReason::kLength);
    EXPECT_EQ(session->length(), 64);
    // The last token comes from the last position and is not fed itself.
    EXPECT_EQ(result->tokens.size(), 64u - 7u + 1u);
  }
}

TEST_F(SessionTest, NoTokensAskedForGivesNone) {
  auto engine = *Engine::Create(model_, Options());
  const auto result = engine->NewSession()->Generate(Request(0), {});
  ASSERT_THAT(result.status(), IsOk());
  EXPECT_TRUE(result->tokens.empty());
}

TEST_F(SessionTest, AStopStringEndsTheTextAndIsNotShown) {
  auto engine = *Engine::Create(model_, Options());
  std::vector<std::string> pieces;
  const std::string all =
      engine->NewSession()
          ->Generate(Request(12),
                     [&](std::string_view text) { pieces.emplace_back(text); })
          ->text;
  ASSERT_GE(pieces.size(), 3u);
  const std::string stop = pieces[pieces.size() / 2];  // whole characters
  GenerateRequest request = Request(12);
  request.stop = {stop};
  const auto result = engine->NewSession()->Generate(request, {});
  ASSERT_THAT(result.status(), IsOk());
  EXPECT_EQ(result->finish, FinishReason::kStopString);
  EXPECT_EQ(result->text, all.substr(0, all.find(stop)));
}

TEST_F(SessionTest, EvaluatingInPiecesContinuesTheSequence) {
  EngineOptions options = Options();
  options.logit_rows = 4;
  auto engine = *Engine::Create(model_, options);
  const std::vector<TokenId> tokens = {5, 6, 7, 8, 9, 10};
  std::vector<float> last, pieces;
  auto whole = engine->NewSession();
  ASSERT_THAT(whole->Evaluate(tokens, 4, Session::Logits::kLast,
                              [&](int64_t index, std::span<const float> row) {
                                EXPECT_EQ(index, 5);
                                last.assign(row.begin(), row.end());
                                return absl::OkStatus();
                              }),
              IsOk());
  whole->Reset();
  auto session = engine->NewSession();
  for (size_t i = 0; i < tokens.size(); i += 2) {
    ASSERT_THAT(session->Evaluate(std::span(tokens).subspan(i, 2), 2,
                                  Session::Logits::kAll,
                                  [&](int64_t, std::span<const float> row) {
                                    pieces.assign(row.begin(), row.end());
                                    return absl::OkStatus();
                                  }),
                IsOk());
  }
  EXPECT_EQ(session->length(), 6);
  EXPECT_EQ(pieces, last);
}

TEST_F(SessionTest, SessionsShareTheContextOfTheEngine) {
  auto engine = *Engine::Create(model_, Options());
  auto first = engine->NewSession();
  ASSERT_THAT(first->Generate(Request(30), {}).status(), IsOk());
  auto second = engine->NewSession();
  EXPECT_THAT(second->Generate(Request(30), {}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("KV")));
  first.reset();
  second->Reset();
  EXPECT_THAT(second->Generate(Request(30), {}).status(), IsOk());
}

TEST_F(SessionTest, CancellingKeepsTheTextAndTheEngine) {
  for (int at : {1, 3, 6}) {
    std::atomic<bool> cancel{false};
    EngineOptions options = Streaming();
    options.cancel = &cancel;
    auto engine = *Engine::Create(model_, options);
    int pieces = 0;
    std::string text;
    const auto cancelled = engine->NewSession()->Generate(
        Request(1000), [&](std::string_view piece) {
          text += piece;
          if (++pieces == at) cancel = true;
        });
    EXPECT_THAT(cancelled.status(),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
    EXPECT_FALSE(text.empty());
    cancel = false;
    EXPECT_EQ(engine->NewSession()->Generate(Request(), {})->tokens,
              Reference());
  }
}

TEST_F(SessionTest, AModelThatChangesIsAnErrorAtTheNextPass) {
  auto engine = *Engine::Create(model_, Streaming());
  const auto result = engine->NewSession()->Generate(
      Request(1000),
      [&](std::string_view) { std::ofstream(path_, std::ios::app) << "x"; });
  EXPECT_THAT(result.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("model.gguf")));
}

TEST_F(SessionTest, AFileThatShrinksIsAnErrorAndNoSignal) {
  auto engine = *Engine::Create(model_, Streaming());
  const auto result = engine->NewSession()->Generate(
      Request(1000),
      [&](std::string_view) { std::filesystem::resize_file(path_, 8192); });
  EXPECT_FALSE(result.ok());
}

TEST_F(SessionTest, ADiskErrorNamesTheFileAndLeavesTheEngineUsable) {
  EngineOptions options = Streaming();
  auto fail = std::make_shared<std::atomic<bool>>(true);
  options.reader.wrap_backend =
      [](std::unique_ptr<ReadBackend> inner) -> std::unique_ptr<ReadBackend> {
    FaultTable table;
    table.With(Fault::kIoError, 1).With(Fault::kOk, 30);
    return std::make_unique<FaultyBackend>(std::move(inner), table);
  };
  auto engine = *Engine::Create(model_, options);
  Status failure;
  for (int round = 0; round < 50 && failure.ok(); ++round)
    failure = engine->NewSession()->Generate(Request(20), {}).status();
  EXPECT_THAT(failure,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("model.gguf")));
  int succeeded = 0;
  for (int round = 0; round < 50; ++round) {
    const auto result = engine->NewSession()->Generate(Request(1), {});
    if (!result.ok()) continue;
    ++succeeded;
    EXPECT_EQ(result->tokens[0], Reference(1)[0]);
  }
  EXPECT_GT(succeeded, 0);
}

TEST_F(SessionTest, WeightsThatOverflowStopWithTheFirstLayerNamed) {
  Open({.layers = 3, .type = DType::kF32, .scale = 1e15f});
  for (Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    EngineOptions options = Options();
    options.isa = isa;
    auto engine = Engine::Create(model_, options);
    if (!engine.ok()) continue;  // this CPU lacks it
    const auto result = (*engine)->NewSession()->Generate(Request(), {});
    EXPECT_THAT(result.status(),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("not finite")))
        << IsaName(isa);
  }
}

TEST_F(SessionTest, ABudgetTooSmallNamesTheLeastThatWorks) {
  EngineOptions options = Options();
  options.ram_bytes = 1 << 20;
  EXPECT_THAT(Engine::Create(model_, options).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the least that works is --ram")));
}

TEST_F(SessionTest, OptionsOutOfRangeAreRefused) {
  for (int depth : {-1, 65}) {
    EngineOptions options = Options();
    options.prefetch_depth = depth;
    EXPECT_THAT(Engine::Create(model_, options).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("prefetch depth")));
  }
  EngineOptions options = Options();
  options.context = -5;
  EXPECT_THAT(
      Engine::Create(model_, options).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("context")));
}

}  // namespace
}  // namespace coldstream
