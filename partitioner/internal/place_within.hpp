#pragma once

#include <cstdint>
#include <optional>

#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/transport.hpp"

namespace tessera::partitioner::internal {

// Number of cells whose blocks cannot all stay.
std::int64_t senders(const Transport& transport);

// Returns cheapest_routing() if few cells send, and any_routing() if that would take too long.
Routing route(const Transport& transport, const Travel& travel);

// Routes and places. If buckets have less capacity than the model says, the model is corrected and
// both are repeated, a few times; in the last round some displacements beyond `travel` may be used.
// `whole` has pieces whole at home. Returns nothing if it does not succeed.
std::optional<Holdings> place_within(const Holdings& whole, const Transport& model,
                                     const Travel& travel);

// Returns the first `steps` + 1 displacements, column after column (Axis::Y) or row after row
// (Axis::X). Example: splits {1, 3, 2, 1} and 2 steps give {2, 1} and {1, 1, 1}.
Travel first_displacements(Dims splits, std::int64_t steps, Axis first);

}  // namespace tessera::partitioner::internal
