// How fast the two sides of a split pass are, and what is between them.
#ifndef COLDSTREAM_SCHEDULER_SPLIT_RATES_H_
#define COLDSTREAM_SCHEDULER_SPLIT_RATES_H_

namespace coldstream {

// Bytes per second; 0: not known.
struct SplitRates {
  double upload = 0;  // from host memory to the device
  double disk = 0;
  // Of weights, by one token.
  double cpu = 0;
  double device = 0;
  // Of weights, times the tokens they are multiplied with, by many. A device's
  // arithmetic that is not known is taken to be no limit.
  double cpu_tokens = 0;
  double device_tokens = 0;
  // Of a crossing, beside its bytes: what waiting for a stream and starting
  // work on it takes. A usual figure, not measured here.
  double crossing_seconds = 20e-6;

  // All that is always needed: only a plan that reads needs the disk's.
  bool known() const {
    return upload > 0 && cpu > 0 && device > 0 && cpu_tokens > 0;
  }
};

}  // namespace coldstream

#endif  // COLDSTREAM_SCHEDULER_SPLIT_RATES_H_
