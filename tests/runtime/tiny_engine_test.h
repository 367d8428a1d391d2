// A fixture: engines for many requests on a tiny model.
#ifndef COLDSTREAM_TESTS_RUNTIME_TINY_ENGINE_TEST_H_
#define COLDSTREAM_TESTS_RUNTIME_TINY_ENGINE_TEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/byte_units.h"
#include "runtime/engine.h"
#include "runtime/model.h"
#include "scheduler/memory_plan.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {

class TinyEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = dir_.Path("model.gguf");
    Open({.layers = 3});
  }
  void Open(const TinyModelOptions& tiny) {
    ASSERT_THAT(WriteTinyModel(path_, tiny), IsOk());
    Reopen();
  }
  // What is in the file by now.
  void Reopen() {
    auto model = Model::Open({.path = path_});
    ASSERT_THAT(model.status(), IsOk());
    model_ = *model;
  }

  static EngineOptions Options() {
    EngineOptions options;
    options.ram_bytes = kGiB;
    options.context = 256;
    options.batch_tokens = 64;
    options.max_sequences = 8;
    options.threads = 2;
    return options;
  }
  std::unique_ptr<Engine> NewEngine(const EngineOptions& options) const {
    auto engine = Engine::Create(model_, options);
    EXPECT_THAT(engine.status(), IsOk());
    return *std::move(engine);
  }
  // Every unit but the pinned one is cold.
  EngineOptions Streamed(EngineOptions options) const {
    options.prefetch_depth = 2;
    const auto engine = NewEngine(options);
    options.ram_bytes =
        LeastBudget(model_->weights().units, engine->plan().fixed, 2);
    return options;
  }

  TempDir dir_;
  std::string path_;
  std::shared_ptr<const Model> model_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_RUNTIME_TINY_ENGINE_TEST_H_
