#pragma once

#include <span>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/bound_program.hpp"

namespace tessera::runtime::internal {

// Tiles whose partial sums belong to the same part of the result.
struct ReductionColumn {
  std::vector<TileId> tiles;
  std::vector<device::SlotId> partials;  // of each tile: rows of one element
  std::int64_t elements = 0;
};

// Where a tile's share of the finished result lies.
struct ReducedShare {
  TileId tile;
  device::SlotId slot;  // rows of one element, result type
  Range elements;       // of its column's part
};

// Reduce: each tile of a column gets an equal run of elements from all the others and adds them up
// in the order of the column.
//   reads    partials of the column     [elements] sums
//   writes   the own share              [ceil(elements / tiles)] result type
//   steps    exchange, compute; a column of one tile: only a cast, or nothing when the types agree
// Sums are taken in the partials' type, so that the bits do not depend on anything but the order.
class Reduction {
 public:
  // `depth` tiles share a column.
  Reduction(std::int64_t depth, DataType partials, DataType result)
      : depth_(depth), partials_(partials), result_(result) {}

  void declare(BoundProgram& program, device::Engine& engine, BufferId partials);
  // Which buffer the result is in.
  BufferId result() const { return has_work() ? result_buffer_ : partial_buffer_; }
  void add_slots(BoundProgram& program, device::Engine& engine,
                 std::vector<ReductionColumn> columns);
  // Works out the exchange; call after all slots are added.
  void prepare(BoundProgram& program, const device::Engine& engine);

  std::span<const ReducedShare> shares() const { return shares_; }

 private:
  // What one tile does.
  struct Job {
    TileId tile;
    Range elements;
    std::vector<device::SlotId> sources;  // in the column's order; the own partials among them
    std::size_t own = 0;                  // which source that is
    device::SlotId result;
    std::vector<const std::byte*> views;  // of the sources, while the job runs
  };
  void add_job(BoundProgram& program, device::Engine& engine, const ReductionColumn& column,
               std::size_t i);
  Cycles reduce(const device::Engine& engine, const device::Tile& tile, Job& job) const;
  // Of one tile: only a cast, or nothing when the types agree.
  bool has_work() const { return depth_ > 1 || partials_ != result_; }

  std::int64_t depth_;
  DataType partials_, result_;
  BufferId partial_buffer_, others_buffer_, result_buffer_;
  int exchange_node_ = -1, compute_node_ = -1;
  std::vector<ReductionColumn> columns_;
  std::vector<Job> jobs_;
  std::vector<std::int32_t> job_of_tile_;
  std::vector<TileId> tiles_;
  std::vector<ReducedShare> shares_;
  device::Exchange exchange_;
};

}  // namespace tessera::runtime::internal
