// What O_DIRECT asks of reads of a file: the kernel's word where it gives one
// (statx with STATX_DIOALIGN, Linux 6.1), else found by trying 512 .. 65536.
//
// Opening with O_DIRECT proves little: overlayfs over squashfs lets the open
// pass and refuses the first read, so a read is always tried. tmpfs takes any
// offset, or refuses the open, by kernel version; both are fine.
//
// Errors: Unavailable, with the reason, if direct reads do not work.
// Source: statx(2), open(2) "O_DIRECT"; cases H07 and H08 of the failure list.
#ifndef COLDSTREAM_IO_DIRECT_ALIGNMENT_H_
#define COLDSTREAM_IO_DIRECT_ALIGNMENT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "io/file.h"

namespace coldstream {

// `direct_fd` is open with O_DIRECT; `size` is the file's.
StatusOr<DirectAlignment> ProbeDirectAlignment(int direct_fd, uint64_t size);

// Whether a direct read of `length` bytes at `offset` into memory at address
// `memory_offset` modulo twice the largest alignment works: 0 or an errno.
using DirectReadTrial = std::function<int(uint64_t memory_offset,
                                          uint64_t length, uint64_t offset)>;

// The part of the search that knows no file: the smallest alignments that
// `trial` takes. Errors: Unavailable if it takes none.
StatusOr<DirectAlignment> SearchDirectAlignment(uint64_t size,
                                                const DirectReadTrial& trial);

// "ext4", "tmpfs", ... or "file system 0x1234": for messages.
std::string FileSystemName(int fd);

}  // namespace coldstream

#endif  // COLDSTREAM_IO_DIRECT_ALIGNMENT_H_
