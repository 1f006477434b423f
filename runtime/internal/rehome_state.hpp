#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "tessera/runtime/internal/rehome.hpp"
#include "tessera/runtime/internal/rehome_tables.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// The value buckets of both layouts on their tiles, if other steps of a program write or read them
// too. They must be set before the state declares anything. Values are then neither loaded from the
// host nor collected.
struct RehomeHomes {
  BufferId from_buffer, to_buffer;
  std::vector<device::SlotId> from, to;  // by tile
};

// The move of values as a part of a program: a program of its own (RehomePass::Own), or a part of a
// network's. declare_load() is called before declare().
struct RehomePass::State {
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

  // The program must outlive the state, as `homes` must if it is not null.
  State(const RehomeSpec& spec, TileProgram& program, const RehomeHomes* homes = nullptr);

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

// A move with a program and a machine of its own.
struct RehomePass::Own {
  Own(const RehomeSpec& spec, const device::Machine& machine, device::ExchangeMode mode,
      Executor& executor);

  TileProgram program;
  State state;
};

}  // namespace tessera::runtime::internal
