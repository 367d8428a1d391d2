#include "tools/short_float.h"

#include <charconv>
#include <cmath>

namespace coldstream {

double ShortDouble(float value) {
  if (!std::isfinite(value)) return value;
  char text[32];
  const auto written = std::to_chars(text, text + sizeof(text), value);
  double read = value;
  std::from_chars(text, written.ptr, read);
  return read;
}

}  // namespace coldstream
