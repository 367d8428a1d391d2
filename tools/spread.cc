#include "tools/spread.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace coldstream {

Spread SpreadOf(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  Spread spread;
  spread.least = values.front();
  spread.most = values.back();
  spread.median = values.size() % 2 == 1
                      ? values[middle]
                      : (values[middle - 1] + values[middle]) / 2;
  if (values.size() < 2) return spread;
  double sum = 0;
  for (const double value : values) sum += value;
  const auto count = static_cast<double>(values.size());
  const double mean = sum / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

}  // namespace coldstream
