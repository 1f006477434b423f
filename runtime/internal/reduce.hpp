#pragma once

#include <span>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// The tiles whose partial sums belong to the same part of the result.
struct ReductionColumn {
  std::vector<TileId> tiles;
  std::vector<device::SlotId> partials;  // of each tile: rows of one element
  std::int64_t elements = 0;
};

// The place of a tile's share of the finished result.
struct ReducedShare {
  TileId tile;
  device::SlotId slot;  // rows of one element, result type
  Range elements;       // within its column's part
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

  std::span<const ReducedShare> shares() const { return shares_; }

  // Writes the result to the host: part_of(tile) is the memory of the part of a tile's column.
  template <class PartOf>
  void collect(const device::Engine& engine, const PartOf& part_of) const {
    for (const ReducedShare& share : shares_)
      write_elements(engine.view(share.slot).data, share.elements, part_of(share.tile));
  }

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
  // Writes elements that follow one another to their places, counted row by row.
  void write_elements(const std::byte* from, Range elements, device::ByteRows to) const;
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
  std::vector<ReducedShare> shares_;
};

}  // namespace tessera::runtime::internal
