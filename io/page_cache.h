// How much of a file lies in the page cache now, so that a measurement can say
// whether it started cold.
//
// Nothing of the file is read: cachestat (Linux 6.5) counts, and where it is
// missing mincore is asked about pages mapped and never touched, in samples
// spread over the file.
// Errors: Unavailable, with the reason. The kernel tells only who owns the file
// or may write it.
// Source: cachestat(2), mincore(2).
#ifndef COLDSTREAM_IO_PAGE_CACHE_H_
#define COLDSTREAM_IO_PAGE_CACHE_H_

#include "base/status.h"
#include "io/file.h"

namespace coldstream {

// 0 (cold) to 1; 0 for an empty file.
StatusOr<double> CachedFraction(const File& file);

// The two ways of it; for tests.
StatusOr<double> CachedFractionByCachestat(const File& file);
StatusOr<double> CachedFractionByMincore(const File& file);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_PAGE_CACHE_H_
