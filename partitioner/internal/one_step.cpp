#include "tessera/partitioner/internal/one_step.hpp"

#include <algorithm>
#include <vector>

namespace tessera::partitioner::internal {
namespace {

// Rings computes the amount that each cell sends on. The least that a cell must send grows with the
// amount it receives, so starting from nothing gives the least of all routings, cell by cell: the
// amount of a cell is the sum over some stretch of the ring that ends in it. Such a stretch is no
// longer than the ring unless amounts grow forever, so two rounds settle the amounts, and a third
// round that still raises one shows that there is no solution.
class Rings {
 public:
  Rings(const Transport& transport, std::int64_t dx, std::int64_t dy)
      : transport_(transport), dx_(dx), dy_(dy), sent_(transport.blocks.size()) {}

  bool settle() {
    std::vector<char> seen(sent_.size());
    for (std::int64_t cell = 0; cell < transport_.cells(); ++cell) {
      if (seen[static_cast<std::size_t>(cell)]) continue;
      ring_.clear();
      for (std::int64_t at = cell; !seen[static_cast<std::size_t>(at)];
           at = transport_.holder(at, dx_, dy_)) {
        seen[static_cast<std::size_t>(at)] = 1;
        ring_.push_back(static_cast<std::size_t>(at));
      }
      if (!settle_ring()) return false;
    }
    return true;
  }

  std::int64_t sent(std::int64_t cell) const { return sent_[static_cast<std::size_t>(cell)]; }

 private:
  // Returns false if a cell would have to send more than it may.
  bool settle_ring() {
    constexpr int kMostRounds = 3;
    std::int64_t came = 0;
    for (int round = 0; round < kMostRounds; ++round) {
      bool raised = false;
      for (const std::size_t at : ring_) {
        const std::int64_t blocks = transport_.blocks[at], most = transport_.most_in_one[at];
        const std::int64_t sends =
            std::max({std::int64_t{0}, blocks - most, blocks + came - transport_.capacity[at]});
        if (sends > std::min({blocks, most, transport_.most_away})) return false;
        raised = raised || sends > sent_[at];
        sent_[at] = came = sends;
      }
      if (!raised) return true;
    }
    return false;
  }

  const Transport& transport_;
  std::int64_t dx_, dy_;
  std::vector<std::int64_t> sent_;  // [cells]
  std::vector<std::size_t> ring_;   // cells, each of them the holder of the cell before it
};

}  // namespace

Routing one_step_routing(const Transport& transport, std::int64_t dx, std::int64_t dy) {
  Rings rings(transport, dx, dy);
  Routing routing;
  if (!rings.settle()) {
    routing.unplaced = 1;
    return routing;
  }
  for (std::int64_t cell = 0; cell < transport.cells(); ++cell) {
    const std::int64_t sent = rings.sent(cell);
    if (sent == 0) continue;
    routing.shipments.push_back({cell, dx, dy, sent});
    routing.moved += sent;
    routing.travel += sent * (dx + dy);
  }
  return routing;
}

}  // namespace tessera::partitioner::internal
