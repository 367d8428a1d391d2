// CUDA's atomics. All fibers of a launch run on one thread of the host and are
// switched only at barriers, so plain reads and writes will do; the order of
// additions is the lane order. Each returns the value before.
#ifndef COLDSTREAM_TESTS_SIMT_ATOMICS_H_
#define COLDSTREAM_TESTS_SIMT_ATOMICS_H_

template <typename T>
T atomicAdd(T* address, T value) {
  const T before = *address;
  *address = before + value;
  return before;
}

template <typename T>
T atomicMin(T* address, T value) {
  const T before = *address;
  if (value < before) *address = value;
  return before;
}

template <typename T>
T atomicMax(T* address, T value) {
  const T before = *address;
  if (value > before) *address = value;
  return before;
}

template <typename T>
T atomicExch(T* address, T value) {
  const T before = *address;
  *address = value;
  return before;
}

template <typename T>
T atomicCAS(T* address, T compare, T value) {
  const T before = *address;
  if (before == compare) *address = value;
  return before;
}

inline void __threadfence() {}
inline void __threadfence_block() {}

#endif  // COLDSTREAM_TESTS_SIMT_ATOMICS_H_
