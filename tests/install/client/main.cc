// Links and runs against an installed Coldstream.
#include <cstdio>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/system_limits.h"
#include "runtime/sampler.h"
#include "runtime/text_stream.h"

int main() {
  auto sampler = coldstream::Sampler::Create({.temperature = 0});
  if (!sampler.ok()) return 1;
  const auto token = sampler->Sample(std::vector<float>{0, 2, 1}, 3);
  if (!token.ok() || *token != 1) return 2;

  coldstream::TextStream stream({"stop"});
  std::string text = stream.Push("streamed st");
  text += stream.Push("op");
  if (text != "streamed ") return 3;

  coldstream::Parallel parallel(coldstream::DefaultThreads());
  std::vector<int> squares(100);
  parallel.For(100, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      squares[static_cast<size_t>(i)] = static_cast<int>(i * i);
  });
  if (squares[99] != 9801) return 4;

  std::puts("the installed library works");
  return 0;
}
