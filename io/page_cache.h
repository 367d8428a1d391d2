// How much of a file lies in the page cache now, so that a measurement can say
// whether it started cold; and the two ways to make it start as wanted.
//
// Nothing of the file is read: cachestat (Linux 6.5) counts, and where it is
// missing mincore is asked about pages mapped and never touched, in samples
// spread over the file.
// Errors: Unavailable, with the reason. The kernel tells only who owns the file
// or may write it.
// Source: cachestat(2), mincore(2), posix_fadvise(2).
#ifndef COLDSTREAM_IO_PAGE_CACHE_H_
#define COLDSTREAM_IO_PAGE_CACHE_H_

#include <atomic>

#include "base/status.h"
#include "io/file.h"

namespace coldstream {

// 0 (cold) to 1; 0 for an empty file.
StatusOr<double> CachedFraction(const File& file);

// The two ways of it; for tests.
StatusOr<double> CachedFractionByCachestat(const File& file);
StatusOr<double> CachedFractionByMincore(const File& file);

// Asks the kernel to forget the file; needs no privilege. What it cannot let go
// stays (pages others map or are reading, all of a tmpfs): ask CachedFraction.
Status DropFromPageCache(const File& file);

// Reads the file through once. What does not fit in memory is dropped again by
// the kernel as it goes. Ends with Cancelled soon after *cancel becomes true;
// cancel may be null.
Status FillPageCache(const File& file, const std::atomic<bool>* cancel);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_PAGE_CACHE_H_
