#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/tile_program.hpp"
#include "tessera/runtime/pass_spec.hpp"
#include "tessera/runtime/propagation.hpp"

namespace tessera::runtime::internal {

// The position of a propagation loop: the next move, and whether tiles compute after it. The bounds
// are read from the travel words on the control tile, so the words that were sent to the machine
// steer a run. The control tile is the first tile that has no cell, or the last tile if all have
// one.
class TravelLoop {
 public:
  TravelLoop(const PassSpec& spec, Served served) : splits_(spec.parts()), served_(served) {}

  // False: no pattern of this partition can leave a visit to propagation, so the functions below
  // are not needed.
  bool possible() const;
  // Adds the travel words to the program, which must outlive this object.
  void declare(TileProgram& program);
  BufferId words() const { return words_; }

  // Loads the travel words. Must be called before the first step of the program.
  void load(device::Engine& engine, std::span<const std::uint32_t> travel_words);

  // Adds two nested loops, with `body` for every move. The number of moves along z at one distance
  // in x and y is known with the plan, so only moves along x and y ask the control tile.
  void declare_loops(TileProgram& program, const std::function<void()>& body);

  // Adds a step in the body, in which visit(tile) -> Cycles runs on each of `tiles` if the
  // displacement holds something.
  template <class Visit>
  void declare_visit(TileProgram& program, const Uses& uses, std::span<const TileId> tiles,
                     const Visit& visit) {
    program.when(
        "this displacement holds something", [this] { return now_.compute; },
        [&] { program.compute(Phase::Propagate, uses, tiles, visit); });
  }

  // The condition of the loop that moves the data back to displacement 0 after these loops.
  bool next_home();

  // The current move, in either direction.
  const PropagationStep& now() const { return now_; }
  bool first() const { return first_; }
  bool shifts(Axis axis) const { return !first_ && now_.shift == axis; }

  // The buffer that the move writes: 0 for the first move, then 1 and 0 alternately.
  std::size_t into() const { return into_; }

  // True: there has been a move.
  bool began() const { return began_; }

 private:
  TileId control_tile(const device::Engine& engine) const;
  void read_bounds(device::ByteRows words);

  // The conditions of the two loops; the second one advances to the next move.
  bool next_distance(const device::Engine& engine);
  bool next();

  Dims splits_;
  Served served_;
  BufferId words_;
  device::SlotId slot_;
  partitioner::Travel travel_;
  std::vector<PropagationStep> steps_;
  std::size_t at_ = 0;
  PropagationStep now_;
  std::size_t into_ = 0;
  bool read_ = false, begins_distance_ = false, first_ = false, began_ = false, homeward_ = false;
};

}  // namespace tessera::runtime::internal
