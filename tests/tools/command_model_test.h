// The fixture of tests that run commands on one small model: about 24 MiB of
// weights in 16 units and a head, enough to stream and quick to run.
#ifndef COLDSTREAM_TESTS_TOOLS_COMMAND_MODEL_TEST_H_
#define COLDSTREAM_TESTS_TOOLS_COMMAND_MODEL_TEST_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {

class CommandModelTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = std::make_unique<TempDir>();
    TinyModelOptions options;
    options.layers = 8;
    options.hidden = 256;
    options.heads = 8;
    options.kv_heads = 4;
    options.head_dim = 32;
    options.ffn = 3584;
    ASSERT_THAT(WriteTinyModel(Model(), options), IsOk());
  }
  static void TearDownTestSuite() { dir_.reset(); }

  static std::string Model() { return dir_->Path("model.gguf"); }

  // One folder for all tests of a suite; suites do not overlap.
  inline static std::unique_ptr<TempDir> dir_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_TOOLS_COMMAND_MODEL_TEST_H_
