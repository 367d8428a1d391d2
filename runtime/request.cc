#include "runtime/request.h"

namespace coldstream {

const char* FinishReasonName(FinishReason reason) {
  return reason == FinishReason::kLength ? "length" : "stop";
}

}  // namespace coldstream
