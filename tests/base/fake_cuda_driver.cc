// A libcuda.so.1 that starts as it is told: cuInit returns FAKE_CUDA_ERROR
// (a CUresult), the driver's version is FAKE_CUDA_VERSION (13000 for 13.0).
// Found by the runtime through LD_LIBRARY_PATH in place of the real driver.
#include <cstdlib>

extern "C" {
int cuInit(unsigned flags);
int cuDriverGetVersion(int* version);
}

namespace {

int FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? 0 : std::atoi(value);
}

}  // namespace

int cuInit(unsigned) { return FromEnvironment("FAKE_CUDA_ERROR"); }

int cuDriverGetVersion(int* version) {
  *version = FromEnvironment("FAKE_CUDA_VERSION");
  return 0;
}
