#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/device/engine.hpp"

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
  Reduction(device::Engine& engine, std::vector<ReductionColumn> columns, DataType partials,
            DataType result, Range phases);
  // Works out the exchange; call after all slots are added.
  void prepare(const device::Engine& engine);
  void run(device::Engine& engine, std::string_view phase) const;

  std::span<const ReducedShare> shares() const { return shares_; }

 private:
  // What one tile does.
  struct Job {
    TileId tile;
    Range elements;
    std::vector<device::SlotId> sources;  // in the column's order; the own partials among them
    std::size_t own = 0;                  // which source that is
    device::SlotId result;
  };
  void add_job(device::Engine& engine, const ReductionColumn& column, std::size_t i, Range phases);
  Cycles reduce(const device::Engine& engine, const device::Tile& tile, const Job& job) const;
  bool has_work(const Job& job) const { return job.sources.size() > 1 || partials_ != result_; }

  DataType partials_, result_;
  std::vector<ReductionColumn> columns_;
  std::vector<Job> jobs_;
  std::vector<std::int32_t> job_of_tile_;
  std::vector<TileId> tiles_;
  std::vector<ReducedShare> shares_;
  device::Exchange exchange_;
};

}  // namespace tessera::runtime::internal
