// Puts parsed files together to one checkpoint.
#ifndef COLDSTREAM_IO_CHECKPOINT_BUILDER_H_
#define COLDSTREAM_IO_CHECKPOINT_BUILDER_H_

#include "base/status.h"
#include "io/checkpoint.h"
#include "io/gguf.h"

namespace coldstream {

class CheckpointBuilder {
 public:
  // The first part gives the metadata; later ones add keys, and may repeat one
  // only with the same value. Errors: InvalidArgument naming both files for a
  // tensor that is in two parts or a key on which two parts disagree.
  Status Add(GgufFile part);

  Checkpoint Build() &&;

 private:
  Status AddMetadata(const GgufFile& part);

  Checkpoint checkpoint_;
};

}  // namespace coldstream

#endif  // COLDSTREAM_IO_CHECKPOINT_BUILDER_H_
