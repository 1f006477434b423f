#pragma once

#include <cstdint>
#include <optional>

#include "tessera/partitioner/internal/holdings.hpp"
#include "tessera/partitioner/internal/transport.hpp"

namespace tessera::partitioner::internal {

// Cells whose blocks cannot all stay.
std::int64_t senders(const Transport& transport);

// cheapest_routing where few cells send, any_routing where that would take too long.
Routing route(const Transport& transport, const Travel& travel);

// Routes and places; where buckets have less room than the model says, the model is corrected and
// all is done again, a few times; in the end some displacements beyond `travel` may be used.
// `whole` has pieces whole at home. None when it does not succeed.
std::optional<Holdings> place_within(const Holdings& whole, const Transport& model,
                                     const Travel& travel);

// The first `steps` + 1 displacements, column after column (Axis::Y) or row after row (Axis::X).
// Example: splits {1, 3, 2, 1} and 2 steps: {2, 1} and {1, 1, 1}.
Travel first_displacements(Dims splits, std::int64_t steps, Axis first);

}  // namespace tessera::partitioner::internal
