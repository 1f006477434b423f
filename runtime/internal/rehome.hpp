#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "tessera/partitioner/tile_grid.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"
#include "tessera/runtime/internal/rehome_tables.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// The two layouts between which values of R move. `to` is the grid of transpose(R).
struct RehomeSpec {
  partitioner::TileGrid from, to;  // of one group each
  std::int64_t groups = 1;
};

// The value buckets of both layouts on their tiles, if other steps of a program write or read them
// too. They must be set before the pass declares anything. Values are then neither loaded from the
// host nor collected.
struct RehomeHomes {
  HomeBuckets from, to;
};

// Moves the values of R from the buckets of one layout to those of another, on the machine:
//   gather   Each tile of the second layout receives the value buckets of every cell of the first
//            layout that its own cell overlaps. One exchange, known with the plan.
//   unpack   Each tile copies the values of its own bucket from them, by a table. One compute step.
//   pass on  Only if a value has spilled and is in no bucket that its tile gathered: all buckets
//            move around the ring of tiles, and each tile picks its own values from the buckets
//            that pass. As many moves as the farthest value needs; each is an exchange, and a
//            compute step if a tile picks a value at this distance.
// The table has a word of 32 bits for each value of a bucket of the second layout and stays on its
// tile. The host makes the tables and the list of moves when the pattern changes.
// It is a part of a program: of one of its own (own_pass.hpp), or of a network's, in which
// declare_load() is called long before declare().
struct RehomePass {
  // The slots of a tile of the second layout.
  struct Receiver {
    std::vector<device::SlotId> met;  // a slot for each cell that its cell overlaps
    device::SlotId table, result;
  };
  struct Buffers {
    BufferId home, nothing, table, gathered, result;
    std::array<BufferId, 2> passing;
  };

  RehomeSpec spec;
  RehomeTables tables;
  TileProgram& program;
  device::Engine& engine;
  const RehomeHomes* shared;  // null: the values have homes of their own
  Buffers use;
  std::vector<device::SlotId> homes;  // by tile of the ring
  std::vector<Receiver> receivers;
  std::vector<TileId> tiles;  // of the second layout
  std::array<std::vector<device::SlotId>, 2> passing;
  // [far][from home, then from either buffer to the other]
  std::array<std::array<const device::Exchange*, 3>, 2> pass_on{};
  std::size_t moved = 0;  // moves that have begun
  const std::byte* from = nullptr;
  std::vector<std::byte> result, zeros;

  // Throws Error{LimitExceeded} if a table would need more than 32 bits per word. The program must
  // outlive the pass, as `homes` must if it is not null.
  RehomePass(const RehomeSpec& spec, TileProgram& program, const RehomeHomes* homes = nullptr);
  static std::string name_of(const RehomeSpec&) { return "re-home values"; }

  // Takes the values of the first layout, [groups][buckets][values_per_bucket]. After the run
  // `result` has those of the second layout.
  void start(const std::byte* values) { from = values; }

  std::int64_t element() const { return bytes_of(spec.from.data_type); }
  std::int64_t from_bytes() const { return tables.from_values() * element(); }
  std::int64_t to_bytes() const { return tables.to_values() * element(); }
  std::int64_t table_bytes() const {
    return tables.to_values() * std::int64_t(sizeof(std::uint32_t));
  }
  bool passes() const { return tables.ring() > 1; }
  MetCells met(TileId tile) const {
    return met_cells(spec.from, spec.to, tables.to_map().cell(tile));
  }

  // These declare buffers, slots and nodes; the load may come long before the move.
  void declare_load();
  void declare();
  void declare_alone(Executor&);
  void declare_passing();
  std::vector<device::Gather> cells_to_receivers() const;
  std::vector<device::Gather> further(std::int64_t by,
                                      const std::vector<device::SlotId>& from_slots,
                                      int into) const;
  const PassingMove& move() const { return tables.moves()[moved - 1]; }
  void load();
  const std::byte* gathered_value(const device::Tile& tile, std::uint32_t entry) const;
  template <class Element, class Put>
  Cycles walk_table(const device::Tile& tile, Put&& put) const;
  template <class Element>
  Cycles unpack(const device::Tile& tile) const;
  template <class Element>
  Cycles pick(const device::Tile& tile) const;
  template <class Work>
  void compute(Uses uses, Work work);
  void collect();
};

}  // namespace tessera::runtime::internal
