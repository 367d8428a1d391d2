// An engine in a flow graph: every request comes out once, and a slow consumer
// slows everything before it down.
#include "runtime/generate_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/system_limits.h"
#include "runtime/model.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {
namespace {

namespace flow = oneapi::tbb::flow;
using Node = GenerateNode<int>;

class GenerateNodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(WriteTinyModel(dir_.Path("m.gguf"), {.layers = 2}), IsOk());
    auto model = Model::Open({.path = dir_.Path("m.gguf")});
    ASSERT_THAT(model.status(), IsOk());
    EngineOptions options;
    options.ram_bytes = uint64_t{1} << 30;
    options.context = 64;
    options.batch_tokens = 32;
    options.max_sequences = 4;
    options.queue_length = 8;
    options.threads = 2;
    auto engine = Engine::Create(*model, options);
    ASSERT_THAT(engine.status(), IsOk());
    engine_ = *std::move(engine);
  }

  static Request RequestOf(int row) {
    Request request;
    request.generate.prompt = {static_cast<TokenId>(65 + row % 26)};
    request.generate.max_tokens = 1 + row % 3;
    request.generate.ignore_end_of_generation = true;
    return request;
  }

  // Runs `rows` through a graph; `consume` is called for each result.
  template <typename Policy, typename Consume>
  void RunRows(int rows, const Consume& consume) {
    flow::graph graph;
    int next = 0;
    flow::input_node<Node::Input> source(
        graph, [&](oneapi::tbb::flow_control& control) -> Node::Input {
          if (next == rows) {
            control.stop();
            return {};
          }
          ++made_;
          const int row = next++;
          return {row, RequestOf(row)};
        });
    Node generate(graph, engine_.get());
    flow::function_node<Node::Output, flow::continue_msg, Policy> consumer(
        graph, flow::serial, [&](const Node::Output& output) {
          consume(output);
          return flow::continue_msg();
        });
    flow::make_edge(source, generate.input());
    flow::make_edge(generate.output(), consumer);
    source.activate();
    graph.wait_for_all();
  }

  TempDir dir_;
  std::unique_ptr<Engine> engine_;
  std::atomic<int> made_{0};  // by the source
};

TEST_F(GenerateNodeTest, EveryResultIsDeliveredOnceWithItsRow) {
  const int rows = kSanitized ? 200 : 2000;
  std::vector<int> delivered(static_cast<size_t>(rows));
  std::vector<std::vector<TokenId>> tokens(26 * 3);
  RunRows<flow::queueing>(rows, [&](const Node::Output& output) {
    const auto& [row, result] = output;
    ASSERT_THAT(result.status, IsOk());
    ++delivered[static_cast<size_t>(row)];
    // The same request has the same answer.
    auto& known = tokens[static_cast<size_t>(row % 78)];
    if (known.empty()) known = result.generated.tokens;
    EXPECT_EQ(result.generated.tokens, known);
    EXPECT_EQ(std::ssize(known), 1 + row % 3);
  });
  EXPECT_THAT(delivered, ::testing::Each(1));
}

// The source is never further ahead of the consumer than what may be in
// flight, the one being consumed, the one waiting to be, and the one that the
// source holds.
TEST_F(GenerateNodeTest, ASlowConsumerSlowsTheSourceDown) {
  int consumed = 0;
  int most_ahead = 0;
  RunRows<flow::rejecting>(60, [&](const Node::Output&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    most_ahead = std::max(most_ahead, made_ - consumed);
    ++consumed;
  });
  EXPECT_EQ(consumed, 60);
  EXPECT_LE(most_ahead, 8 + 3);
}

TEST_F(GenerateNodeTest, MemoryStaysFlat) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep what is freed";
  RunRows<flow::rejecting>(500, [](const Node::Output&) {});
  const uint64_t before = PeakRssBytes();
  RunRows<flow::rejecting>(5000, [](const Node::Output&) {});
  EXPECT_LE(PeakRssBytes(), before + (uint64_t{4} << 20));
}

TEST_F(GenerateNodeTest, ARequestThatIsRefusedComesOutWithTheReason) {
  flow::graph graph;
  Node generate(graph, engine_.get(), 1);
  std::vector<Status> statuses;
  flow::queue_node<Node::Input> source(graph);
  flow::function_node<Node::Output> consumer(
      graph, flow::serial, [&](const Node::Output& output) {
        statuses.push_back(output.second.status);
        return flow::continue_msg();
      });
  flow::make_edge(source, generate.input());
  flow::make_edge(generate.output(), consumer);
  source.try_put({0, Request{}});  // an empty prompt
  source.try_put({1, RequestOf(1)});
  source.try_put({2, Request{}});
  graph.wait_for_all();
  ASSERT_EQ(statuses.size(), 3u);
  EXPECT_EQ(std::count_if(statuses.begin(), statuses.end(),
                          [](const Status& s) { return s.ok(); }),
            1);
}

// A graph can be run again, and every thread count will do (H33).
TEST_F(GenerateNodeTest, ThreadCountsAndRepetitionLoseNothing) {
  for (const int threads : {1, 2, 8}) {
    oneapi::tbb::global_control control(
        oneapi::tbb::global_control::max_allowed_parallelism,
        static_cast<size_t>(threads));
    for (int round = 0; round < 5; ++round) {
      int consumed = 0;
      RunRows<flow::rejecting>(100, [&](const Node::Output&) { ++consumed; });
      ASSERT_EQ(consumed, 100) << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace coldstream
