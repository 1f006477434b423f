#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tessera/base/movable_state.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/sparse/change.hpp"

namespace tessera::layer {

// A change of a pattern that Layer::prepare_update made ready for commit() of the same layer. It
// may be moved; one that was moved from may be destroyed and assigned to, and all else is refused.
class PreparedUpdate {
 public:
  // Holds what a target prepared; each target derives its own.
  struct State {
    std::vector<sparse::PlacedBlock> change;
    std::int64_t version = 0;  // of the weights that change; Layer sets and compares it
    std::optional<partitioner::Misfit> misfit;

    virtual ~State() = default;
  };

  explicit PreparedUpdate(std::unique_ptr<State> state) : state_(std::move(state)) {}

  // Returns the blocks of the change with their positions, by which lists of other numbers follow
  // the values (sparse::carry_list). Valid until commit().
  std::span<const sparse::PlacedBlock> placed() const { return state_->change; }

  // Returns what did not fit, in which case there is nothing to commit.
  const std::optional<partitioner::Misfit>& misfit() const { return state_->misfit; }

  // Returns what the target prepared, for layers.
  State& state() { return *state_; }

 private:
  MovableState<State> state_;
};

// Returns a number that no other call in this process has returned, by which a layer knows its
// weights or a prepared change again. Any thread may call it.
std::int64_t new_number();

}  // namespace tessera::layer
