#pragma once

#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/tensor_home.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// The tiles whose partial sums belong to the same part of the result.
struct ReductionColumn {
  std::vector<TileId> tiles;
  std::vector<device::SlotId> partials;  // of each tile: rows of one element
  std::int64_t elements = 0;
};

// The reduction of partial sums: each tile of a column receives an equal run of elements from all
// other tiles of the column and adds them up in the order of the column.
//   reads    the partials of the column   [elements] in the partials' type
//   writes   the tile's own share         [ceil(elements / tiles)] in the result's type
//   steps    exchange, compute; for a column of one tile only a cast, or nothing if the types agree
// Sums are rounded to the partials' type at each addition, so the bits depend on the order only.
class Reduction {
 public:
  // `depth` tiles share a column.
  Reduction(std::int64_t depth, DataType partials, DataType result)
      : depth_(depth), partials_(partials), result_(result) {}

  // From now on the steps only charge their cycles, and neither partials nor results have memory.
  // For Share mode, if something else adds up the partials. Must be called before declare().
  void only_charge() { only_charges_ = true; }

  // Adds the steps, whose buffers and slots are new but for the partials of the columns. The
  // program must outlive this object.
  void declare(TileProgram& program, BufferId partials, std::vector<ReductionColumn> columns);

  // The buffer that has the result.
  BufferId result() const { return has_work() ? result_buffer_ : partial_buffer_; }

  // Gives the home of the result, which has the shares of all tiles, its buffer and slots.
  void give_slots(TensorHome& home) const;

 private:
  // The work of one tile.
  struct Job {
    TileId tile;
    Range elements;
    std::vector<device::SlotId> sources;  // in the column's order, the tile's own partials included
    std::size_t own = 0;                  // index of the tile's own partials in `sources`
    device::SlotId result;
    std::vector<const std::byte*> views;  // of the sources, while the job runs
  };
  void add_jobs(TileProgram& program, const std::vector<ReductionColumn>& columns);
  void add_job(TileProgram& program, const ReductionColumn& column, std::size_t i);
  std::vector<device::Gather> gathers(const std::vector<ReductionColumn>& columns) const;
  void add_up(const device::Tile& tile, Job& job) const;
  Cycles cycles(const device::Engine& engine, const Job& job) const;

  // False: a column has one tile and the types agree, so the partials are the result.
  bool has_work() const { return depth_ > 1 || partials_ != result_; }

  std::int64_t depth_;
  DataType partials_, result_;
  bool only_charges_ = false;
  BufferId partial_buffer_, others_buffer_, result_buffer_;
  std::vector<Job> jobs_;
  std::vector<std::int32_t> job_of_tile_;
  std::vector<TileId> tiles_;
};

}  // namespace tessera::runtime::internal
