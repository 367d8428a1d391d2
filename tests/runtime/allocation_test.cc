// Decoding takes no memory of 4 KiB or more: everything large is taken when the
// engine is made. malloc and its kin are replaced here by counting ones, so
// that what libraries take is seen too.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "runtime/engine.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace {

constexpr size_t kLarge = 4096;
std::atomic<bool> g_counting{false};
std::atomic<int> g_large_allocations{0};

}  // namespace

#ifndef COLDSTREAM_SANITIZED
namespace {

void Count(size_t bytes) {
  if (bytes >= kLarge && g_counting.load(std::memory_order_relaxed))
    g_large_allocations.fetch_add(1);
}

}  // namespace

// glibc's own entry points, under the names it keeps for replacements.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* pointer, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  Count(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  Count(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* pointer, size_t bytes) {
  Count(bytes);
  return __libc_realloc(pointer, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  Count(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** pointer, size_t alignment, size_t bytes) {
  Count(bytes);
  *pointer = __libc_memalign(alignment, bytes);
  return *pointer == nullptr ? 12 : 0;
}
}
#endif

namespace coldstream {
namespace {

TEST(AllocationTest, TenDecodeStepsTakeNothingLarge) {
#ifdef COLDSTREAM_SANITIZED
  GTEST_SKIP() << "the sanitizer has its own allocator";
#endif
  // The counter works.
  g_counting = true;
  std::free(std::malloc(kLarge));
  g_counting = false;
  ASSERT_EQ(g_large_allocations.exchange(0), 1);

  TempDir dir;
  const std::string path = dir.path() + "/model.gguf";
  TinyModelOptions tiny;
  tiny.layers = 5;
  tiny.hidden = 256;
  tiny.ffn = 1024;
  tiny.vocab = 2000;
  ASSERT_TRUE(WriteTinyModel(path, tiny).ok());
  const auto model = Model::Open({.path = path});
  ASSERT_TRUE(model.ok()) << model.status();
  for (uint64_t extra : {uint64_t{0}, uint64_t{1} << 30}) {
    EngineOptions options;
    options.context = 64;
    options.batch_tokens = 4;
    options.threads = 2;
    options.ram_bytes = uint64_t{1} << 30;
    auto probe = Engine::Create(*model, options);
    ASSERT_TRUE(probe.ok());
    options.ram_bytes =
        LeastBudget((*model)->weights().units, (*probe)->plan().fixed, 2) +
        extra;
    auto engine = Engine::Create(*model, options);
    ASSERT_TRUE(engine.ok()) << engine.status();
    auto session = (*engine)->NewSession();
    // One token a pass: the steps of decoding.
    const std::vector<TokenId> tokens(20, 7);
    const Status status =
        session->Evaluate(tokens, 1, Session::Logits::kAll,
                          [](int64_t index, std::span<const float>) {
                            if (index == 4) g_counting = true;
                            if (index == 14) g_counting = false;
                            return absl::OkStatus();
                          });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(g_large_allocations.exchange(0), 0);
  }
}

}  // namespace
}  // namespace coldstream
