#include "tessera/planner/internal/home_cycles.hpp"

#include <algorithm>
#include <numeric>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"

namespace tessera::planner::internal {
namespace {

// The part of a tensor that all tiles of a bus need, as one of the tiles receives it.
struct Received {
  std::int64_t alone = 0, shared = 0;  // elements at single width, and at that of the bus
};

// A tile takes what it does not hold. If all tiles of its bus need the same piece, only what none
// of them holds arrives at the width of the bus.
Received received_by(std::size_t tile, const Home& from, const Home& to, std::int64_t bus) {
  const HomePiece& wanted = to.pieces[tile];
  const auto held_by = [&](std::size_t t) {
    return t < from.pieces.size() ? common_elements(from, t, to, tile) : 0;
  };
  const std::int64_t missing = to.unpadded[tile] - held_by(tile);
  const std::size_t first = tile / std::size_t(bus) * std::size_t(bus);
  bool all_need = bus > 1 && first + std::size_t(bus) <= to.pieces.size();
  std::int64_t near = 0;
  for (std::size_t t = first; all_need && t < first + std::size_t(bus); ++t) {
    all_need = to.pieces[t] == wanted;
    if (t != tile) near += held_by(t);
  }
  return all_need ? Received{near, missing - near} : Received{missing, 0};
}

}  // namespace

Cycles hand_over_cycles(const Home& from, const Home& to, std::int64_t element_bytes,
                        const device::Machine& machine) {
  std::int64_t moved = 0;
  const auto unpadded = [](const Home& home, std::size_t t) {
    return t < home.pieces.size() ? home.unpadded[t] : 0;
  };
  for (std::size_t t = 0; t < std::max(from.pieces.size(), to.pieces.size()); ++t) {
    const bool in_both = t < std::min(from.pieces.size(), to.pieces.size());
    const std::int64_t kept = in_both ? common_elements(from, t, to, t) : 0;
    moved = std::max({moved, unpadded(from, t) - kept, unpadded(to, t) - kept});
  }
  Cycles cycles;
  if (moved > 0)
    cycles +=
        machine.sync + Cycles(ceil_div(moved * element_bytes, machine.exchange_bytes_per_cycle));
  const Cycles cleared = clear_cycles(to, /*columns=*/true, element_bytes, machine);
  return cleared > Cycles() ? cycles + machine.launch + cleared : cycles;
}

Cycles fetch_cycles(const Home& from, const Home& to, std::int64_t element_bytes,
                    const device::Machine& machine) {
  const std::int64_t width = machine.exchange_bytes_per_cycle;
  const std::int64_t bus = machine.tiles_per_exchange_bus;
  std::int64_t most = 0;
  for (std::size_t t = 0; t < to.pieces.size(); ++t) {
    const auto [alone, shared] = received_by(t, from, to, bus);
    most = std::max(most, ceil_div(alone * element_bytes, width) +
                              ceil_div(shared * element_bytes, width * bus));
  }
  // A tile sends each element once, however many tiles need it.
  const bool is_shared = std::accumulate(to.unpadded.begin(), to.unpadded.end(), std::int64_t{0}) >
                         from.rows * from.cols;
  for (std::size_t t = 0; t < from.pieces.size(); ++t) {
    const bool may_keep = !is_shared && t < to.pieces.size();
    const std::int64_t kept = may_keep ? common_elements(from, t, to, t) : 0;
    most = std::max(most, ceil_div((from.unpadded[t] - kept) * element_bytes, width));
  }
  return Cycles(most);
}

Cycles clear_cycles(const Home& home, bool columns, std::int64_t element_bytes,
                    const device::Machine& machine) {
  Cycles most;
  for (const HomePiece& piece : home.pieces) {
    const HomePadding padding = padding_of(piece, home.rows, home.cols);
    most = std::max(most, codelets::clear_padding_cycles(
                              padding.tail.size() * element_bytes, columns ? padding.rows : 0,
                              padding.columns * element_bytes, machine.workers));
  }
  return most;
}

}  // namespace tessera::planner::internal
