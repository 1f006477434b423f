#pragma once

#include <string>
#include <string_view>

#include "tessera/train/trainer.hpp"

namespace tessera::train {

// A checkpoint is an io::Archive with all that a run needs to go on with the same bits: the
// pattern, values, bias and state of the optimiser of each layer, the places ever stored, the step,
// and the report so far. Its head holds the options of network and training as text.

// Returns the file of a run, between two steps. Throws Error{InvalidArgument} with the list for a
// state that has numbers that are not finite, which no run could go on from. O(weights).
std::string checkpoint_of(const Trainer& trainer);

// Puts a run back into the state of a checkpoint. `trainer` must have been made with the options of
// the run that was saved. Throws Error{BadInput}, which says what differs, for a file of another
// network or training, with figures that contradict each other, or with a pattern that is not
// legal, and the errors of io::Archive for one that is damaged. After an exception the run is as it
// was. Memory is bounded by a multiple of the file's bytes and of the network's.
void restore(Trainer& trainer, std::string_view bytes, std::string_view name);

}  // namespace tessera::train
