#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/runtime/internal/add_up.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"
#include "tessera/runtime/internal/spmm_role.hpp"
#include "tessera/runtime/pass_spec.hpp"

namespace tessera::runtime::internal {

// The products and sums of a dense pass whose tiles need no memory of their own (Share mode). The
// steps of the program only charge their cycles; everything is computed when the result is
// collected, straight into the caller's memory:
//   * The tiles that share a part of the result are computed one after the other, and the partial
//     sums of each are added while they are in the cache. All tiles of the machine together have
//     many times as many partial sums as results (4096 x 4096, batch 256 on gc200: 42 MB and 4).
//   * The tiles of a cell visit the same buckets in the same order, so their columns of the batch
//     are computed side by side.
// Each sum has the same terms in the same order as on tiles with memory of their own: the buckets
// of the tile's cell, then those that arrive from other cells, then the tiles in their order.
class SharedSums {
 public:
  SharedSums(const PassSpec& spec, Executor& executor);

  // Starts a run. The data must stay valid until run() has ended.
  void begin(const BucketImage& image, device::ByteRows in, device::ByteRows out);

  // Counts the cycles in which each tile visits the buckets of its cell; cycles() returns them.
  void count_cycles(const device::Machine& machine);
  Cycles cycles(Cell cell) const {
    return cell_cycles_[first_bucket(cell) / std::size_t(spec_.grid.splits.z)];
  }

  // Notes that a tile visits a bucket that has arrived there, after those of its own cell. May run
  // for several tiles at the same time.
  void note_visit(TileId tile, const void* words, const void* values) {
    arrived_[std::size_t(tile.value)].push_back({words, values});
  }

  // Computes the result.
  void run();

 private:
  struct Visit {
    const void* words;
    const void* values;
  };
  // Some parts of the result and of the batch, which one thread computes.
  struct Job {
    std::int64_t group;
    Range out_parts, z_parts;
  };
  // Memory of one thread.
  struct Scratch {
    AlignedVector<std::byte> partials;  // of one cell: [out rows][columns]; zeros between cells
    AlignedVector<std::byte> sums;      // if they are cast: [out parts][out rows][columns]
  };

  std::int64_t most_rows(bool of_result) const;
  void choose_jobs();
  void run_job(const Job& job, Scratch& scratch) const;
  void compute(const Job& job, Cell cell, const codelets::Result& to) const;
  void clear(const codelets::Result& to) const;
  void add(const codelets::Result& partials, const codelets::Result& to) const;
  void cast(const codelets::Result& sums, Cell cell) const;
  codelets::Result result_of(Cell cell, std::int64_t columns) const;
  codelets::Result scratch_of(AlignedVector<std::byte>& memory, std::int64_t first_row, Cell cell,
                              std::int64_t columns) const;
  // Returns the index of the first bucket of a cell.
  std::size_t first_bucket(Cell cell) const {
    return std::size_t(cell.g * spec_.grid.buckets() + spec_.grid.bucket_index(cell.x, cell.y, 0));
  }
  std::int64_t z() const { return spec_.grid.z_per_tile(); }
  bool casts() const { return spec_.partials_type != spec_.data_type(); }

  PassSpec spec_;
  SpmmRole role_;
  TileMap map_;
  BucketShape shape_;
  codelets::Kernel kernel_;
  MoveUp add_;
  AddUp cast_;
  Executor& executor_;
  std::int64_t most_out_rows_ = 0;
  std::vector<Job> jobs_;
  std::vector<Scratch> scratch_;             // [threads]
  std::vector<Visit> homes_;                 // [groups * buckets]
  std::vector<const void*> words_;           // [groups * buckets]
  std::vector<Cycles> cell_cycles_;          // [groups * cells]
  std::vector<std::vector<Visit>> arrived_;  // [tiles]
  device::ByteRows in_, out_;
};

}  // namespace tessera::runtime::internal
