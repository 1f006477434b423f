#pragma once

#include <functional>
#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/bound_program.hpp"
#include "tessera/runtime/pass_spec.hpp"
#include "tessera/runtime/propagation.hpp"

namespace tessera::runtime::internal {

// Where a propagation loop stands: which way to move next and whether to compute there. The bounds
// are read from the travel words on the control tile, the first tile no cell is on (the last tile
// when all are in use); so a program that runs is steered by what was sent to the machine.
class TravelLoop {
 public:
  TravelLoop(const PassSpec& spec, Served served) : splits_(spec.parts()), served_(served) {}

  // Can anything be left to visit at all? If not, none of what follows is needed.
  bool possible() const;
  void declare(BoundProgram& program);
  void add_slots(BoundProgram& program, device::Engine& engine);
  BufferId words() const { return words_; }
  // Before the program's first step.
  void load(device::Engine& engine, std::span<const std::uint32_t> travel_words);

  // Two loops, with `body` for every move. How many moves along z a distance in x and y takes is
  // known with the plan, so only moves along x and y ask the control tile.
  void declare_loops(BoundProgram& program, const device::Engine& engine,
                     const std::function<void()>& body);
  // The question of the way back from where the loops ended, to displacement 0.
  bool next_home();

  // Of the move that is due, there or back.
  const PropagationStep& now() const { return now_; }
  bool first() const { return first_; }
  bool shifts(Axis axis) const { return !first_ && now_.shift == axis; }
  // Which of two buffers it writes: they take turns, beginning with 0.
  std::size_t into() const { return into_; }
  // Was there any move?
  bool began() const { return began_; }

 private:
  void read_bounds(device::ByteRows words);
  // The questions of the two loops; the second steps on to the next move.
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
