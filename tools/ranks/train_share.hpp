#pragma once

#include <cstdint>
#include <memory>

#include "tessera/distributed/communicator.hpp"
#include "tessera/train/batch_share.hpp"

namespace tessera::tools {

// Returns this rank's part of a network that all ranks train with batches of so many columns
// (distributed::Cut::leaves). The communicator must outlive the object. Throws
// Error{InvalidArgument} for an odd batch.
std::unique_ptr<train::BatchShare> make_batch_share(distributed::Communicator& ranks,
                                                    std::int64_t batch);

}  // namespace tessera::tools
