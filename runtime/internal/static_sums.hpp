#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/static_work.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// Finished results of one tile. The results of a tile are fewer than 2^31, as its memory has fewer
// bytes.
struct StaticShare {
  std::int32_t work = 0;
  std::int32_t at = 0, count = 0;  // the elements among the results of the tile's kernel
  std::int32_t first = 0;          // place of the first element in the slot
  device::SlotId slot;             // one row of results
};

// The reduction of runs that several tiles have: each of these tiles receives its share from the
// others and adds it up in the order of the run's pieces. A tile adds its shares of all runs as one
// list, whose number of operands for an element is the mean, rounded up. Runs of one tile stay
// where they are. Rows with different numbers of tiles are what Reduction does not have.
//   reads    the results of every tile   [elements]
//   writes   its shares of shared runs   [elements]
//   steps    exchange, compute; none if no run is shared
// In Share mode, tiles read the others' results where these are, and nothing is copied.
class StaticSums {
 public:
  // `runs` must outlive this object.
  StaticSums(std::span<const StaticRun> runs, DataType type);

  bool has_work() const { return has_work_; }

  // Adds the steps, with new buffers and slots but for the partials. `works` are those of the runs'
  // pieces and `slots` those of their results. The program must outlive this object.
  void declare(TileProgram& program, BufferId partials, std::span<const StaticWork> works,
               std::span<const device::SlotId> slots);

  // Returns the buffers that have the results.
  std::vector<BufferId> results() const;

  std::span<const StaticShare> shares() const { return shares_; }

 private:
  // A share that a tile adds up.
  struct Part {
    std::int32_t run = 0, own = 0;        // indices of the run and of the tile's piece
    std::int32_t others = 0, result = 0;  // first element in the job's slots
  };
  // The work of one tile.
  struct Job {
    TileId tile;
    std::vector<Part> parts;
    device::SlotId partials, others, result;
    std::int64_t elements = 0, operands = 0;
    std::vector<const std::byte*> views;  // of the sources of a part, while the job runs
  };
  const StaticRun& run_of(const Part& part) const { return runs_[std::size_t(part.run)]; }
  static Range elements_of(const StaticRun& run, const Part& part) {
    return run.share(std::size_t(part.own));
  }
  // Calls visit(piece, move) for the pieces of a part's run; the move of the own piece is not made.
  template <class Visit>
  void for_each_piece(const Job& job, const Part& part, const Visit& visit) const;
  // Calls visit(move) for every run of partial sums that another tile adds up.
  void for_each_move(const std::function<void(const device::Move&)>& visit) const;
  void find_jobs(std::span<const StaticWork> works, std::int64_t tiles);
  void add_shares();
  Cycles reduce(const device::Engine& engine, const device::Tile& tile, Job& job) const;

  std::span<const StaticRun> runs_;
  DataType type_;
  bool has_work_ = false;
  BufferId partial_buffer_, others_buffer_, result_buffer_;
  std::vector<Job> jobs_;  // of tiles that add something
  std::vector<std::int32_t> job_of_tile_;
  std::vector<device::SlotId> partials_;  // by work
  std::vector<TileId> tiles_;
  std::vector<StaticShare> shares_;
};

}  // namespace tessera::runtime::internal
