// A figure over several runs: median, best and how far they lie apart.
#ifndef COLDSTREAM_TOOLS_SPREAD_H_
#define COLDSTREAM_TOOLS_SPREAD_H_

#include <optional>
#include <vector>

namespace coldstream {

struct Spread {
  double median = 0;  // of an even number of values: between the middle two
  double least = 0;
  double most = 0;
  // Sample standard deviation (n - 1); nullopt for a single value.
  std::optional<double> deviation;
};

// At least one value.
Spread SpreadOf(std::vector<double> values);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_SPREAD_H_
