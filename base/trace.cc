#include "base/trace.h"

namespace coldstream {

const char* TraceLaneName(TraceLane lane) {
  switch (lane) {
    case TraceLane::kDisk:
      return "disk";
    case TraceLane::kUpload:
      return "upload";
    case TraceLane::kEmbedding:
      return "embedding";
    case TraceLane::kAttention:
      return "attention";
    case TraceLane::kFfn:
      return "ffn";
    case TraceLane::kHead:
      return "output head";
    case TraceLane::kSampler:
      return "sampler";
    case TraceLane::kStall:
      return "stall";
  }
  return "";
}

const char* TraceCounterName(TraceCounter counter) {
  switch (counter) {
    case TraceCounter::kFreeSlots:
      return "free slots";
    case TraceCounter::kBytesInFlight:
      return "bytes in flight";
  }
  return "";
}

}  // namespace coldstream
