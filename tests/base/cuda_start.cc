// Prints what CreateCudaDevice says, for tests that start it under a fake
// driver, each in a process of its own: the runtime starts once.
#include <cstdio>
#include <sstream>

#include "base/device.h"

int main() {
  const auto device = coldstream::CreateCudaDevice();
  std::ostringstream text;
  text << device.status();
  std::printf("%s\n", text.str().c_str());
}
