#include "runtime/split_choice.h"

namespace coldstream {

const char* SplitSourceName(SplitSource source) {
  switch (source) {
    case SplitSource::kDefault:
      return "default";
    case SplitSource::kForced:
      return "forced";
    case SplitSource::kChosen:
      break;
  }
  return "chosen";
}

}  // namespace coldstream
