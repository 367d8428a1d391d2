// A fixture: a tiny model, opened from C.
#ifndef COLDSTREAM_TESTS_RUNTIME_C_ENGINE_TEST_H_
#define COLDSTREAM_TESTS_RUNTIME_C_ENGINE_TEST_H_

#include <gtest/gtest.h>

#include <string>

#include "runtime/coldstream.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace coldstream {

class CEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = dir_.Path("m.gguf");
    ASSERT_THAT(WriteTinyModel(path_, {.layers = 2}), IsOk());
  }
  void TearDown() override {
    if (engine_.id != 0) coldstream_close(engine_, nullptr);
  }

  static coldstream_options Options() {
    coldstream_options options;
    coldstream_options_init(&options);
    options.device = "cpu";
    options.ram_bytes = 1 << 30;
    options.context = 200;
    options.batch_tokens = 32;
    options.max_sequences = 4;
    options.queue_length = 4;
    return options;
  }
  coldstream_engine Open() {
    const coldstream_options options = Options();
    EXPECT_EQ(coldstream_open(path_.c_str(), &options, &engine_, &error_),
              COLDSTREAM_OK)
        << error_.message;
    return engine_;
  }

  TempDir dir_;
  std::string path_;
  coldstream_engine engine_ = {0};
  coldstream_error error_ = {};
};

}  // namespace coldstream

#endif  // COLDSTREAM_TESTS_RUNTIME_C_ENGINE_TEST_H_
