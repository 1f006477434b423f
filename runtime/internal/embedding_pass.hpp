#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/tile_map.hpp"
#include "tessera/codelets/embedding.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"
#include "tessera/runtime/internal/tile_program.hpp"
#include "tessera/runtime/internal/travel_loop.hpp"
#include "tessera/runtime/internal/travelling_buckets.hpp"
#include "tessera/runtime/pass_spec.hpp"

namespace tessera::runtime::internal {

// The ids of one run as the host sends them.
//   places  [ids]          part of x * rows_per_part + slot of each id; -1: none
//   rows    [x parts][rows_per_part]  the row of each slot inside its part; -1: none
//   sorted  [2 * ids]      the places in ascending order, then the number of the id of each; ids of
//                          one place keep their order, and those without one come last, with the
//                          largest number there is. Numbers have 16 bits if that is enough, else 32
struct EmbeddingLists {
  std::vector<std::int32_t> places, rows;
  std::vector<std::byte> sorted;
};

// The sizes of a run.
struct EmbeddingSizes {
  std::int64_t ids = 1, slots = 1;  // slots: EmbeddingOptions::rows_per_part
};

// Fills `sorted` from `places`; `x_parts` as in `rows`.
void sort_places(const EmbeddingSizes& sizes, std::int64_t x_parts, EmbeddingLists& lists);

// The part that both programs share: the cut of the columns, the lists and the bucket words on the
// tiles. The columns of a part of y are dealt to the tiles of all x and z that have this part: the
// owners of these columns.
struct EmbeddingPass {
  EmbeddingPass(const PassSpec& spec, const EmbeddingSizes& sizes, Served served,
                TileProgram& program);

  std::int64_t element() const { return bytes_of(spec.data_type()); }
  std::int64_t slot_bytes() const { return sizes.slots * element(); }
  std::int64_t columns(std::int64_t y) const { return spec.grid.y_range(y).size(); }
  Range owned(Cell c) const {
    const Dims& splits = spec.grid.splits;
    return share_of(columns(c.y), 1, splits.x * splits.z, c.x * splits.z + c.z);
  }
  std::int64_t rows_bytes() const { return sizes.slots * std::int64_t{sizeof(std::int32_t)}; }
  std::int64_t places_bytes() const { return sizes.ids * std::int64_t{sizeof(std::int32_t)}; }

  // Adds the slots of the tiles for their shares of the rows.
  void add_homes();

  // Loads these shares, the buckets, and what the loop has.
  void load_homes();

  // Adds the step in which every tile arranges its run of all ids' rows, which is charged alone.
  void declare_arranging(BufferId buffer);

  // Adds the gather that brings `bytes` of a list or operand of `all` bytes, which is spread over
  // the machine, from its home slot.
  void add_spread(std::vector<device::Gather>& gathers, device::SlotId home, device::SlotId to,
                  std::int64_t rows, std::int64_t bytes, std::int64_t all) const;

  // Reads the rows of slots from tile memory as the slot of each row of a part of x.
  std::vector<std::int32_t> slot_of_rows(const device::Tile& tile, device::SlotId rows) const;
  Cycles enter_cycles() const;

  // Returns the cycles of a visit, whose values take so many instructions each.
  Cycles row_cycles(const codelets::RowsWork& work, std::int64_t per_value) const;

  // Throws Error{CheckFailed} if a fault was injected and the words of the bucket would lead the
  // visit out of bounds.
  codelets::RowsArgs visit_args(const device::Tile& tile, BucketSlots bucket, Cell of,
                                std::span<const std::int32_t> slot_of) const;

  PassSpec spec;
  EmbeddingSizes sizes;
  TileProgram& program;
  device::Engine& engine = program.engine();
  std::vector<std::byte> placed;  // memory of slots that are adjacent on this computer
  TileMap map;
  BucketShape shape;
  std::vector<TileId> all, owners;  // owners: tiles with columns
  TravelLoop loop;
  HomeBuckets homes;
  BufferId rows_home, places_home;
  std::vector<device::SlotId> rows_homes;  // by tile

  // The data of the current run.
  BucketImage image;
  const EmbeddingLists* lists = nullptr;
};

// Looks up rows, in a program of its own (own_pass.hpp). Writes [columns of y][ids].
class EmbeddingSlice : private EmbeddingPass {
 public:
  EmbeddingSlice(const PassSpec& spec, const EmbeddingSizes& sizes, TileProgram& program);
  static std::string name_of(const PassSpec&, const EmbeddingSizes&) { return "embedding slice"; }
  void declare_alone(Executor&);
  void start(const BucketImage& of_layer, const EmbeddingLists& of_run, std::byte* out);

 private:
  struct TileSlots {
    device::SlotId rows, places_home, places, partial, received, result;
    std::vector<BucketSlots> arrived;  // of the cell, by z
  };
  // The columns that a tile looks up, counted from the start of its part of y.
  Range looked_up(Cell c) const { return share_of(columns(c.y), 1, spec.grid.splits.z, c.z); }
  void declare_buffers();
  void add_slots();
  std::vector<device::Gather> prearrange_gathers() const;
  std::vector<device::Gather> gathers_to_owners() const;
  void load();
  Cycles visit(const device::Tile& tile, std::span<const BucketSlots> buckets) const;
  Cycles distribute(const device::Tile& tile) const;
  Cycles select(const device::Tile& tile) const;
  void collect() const;

  TravellingBuckets travelling_;
  BucketUse arrived_;
  BufferId rows_, places_, partial_, received_, result_;
  std::vector<TileSlots> tiles_;
  std::byte* out_ = nullptr;
};

// Updates rows, in a program of its own. Reads slices [columns of y][ids] and writes the new values
// in bucket order.
class EmbeddingUpdate : private EmbeddingPass {
 public:
  EmbeddingUpdate(const PassSpec& spec, const EmbeddingSizes& sizes, TileProgram& program);
  static std::string name_of(const PassSpec&, const EmbeddingSizes&) { return "embedding update"; }
  void declare_alone(Executor&);
  void start(const BucketImage& of_layer, const EmbeddingLists& of_run, const std::byte* slices,
             float scale, std::byte* values);

 private:
  struct TileSlots {
    device::SlotId places_home, places, slices_home, slices, sums, updated;
    std::vector<device::SlotId> packed;  // by part of x
  };
  // A tile adds up the slices of these columns for the rows of these parts of x. What it writes for
  // a part is placed in one matrix, [y][parts of x][columns][slots], of which tiles receive views
  // in Share mode.
  struct Packing {
    Range columns, parts;
    bool empty() const { return columns.size() == 0 || parts.size() == 0; }
  };
  Packing packing(Cell c) const;

  // Returns the columns of a packing with which adding up, and bringing its slices, costs fewest
  // cycles: more columns share an entry of the list, and more tiles share the parts of x.
  std::int64_t cheapest_columns() const;
  std::int64_t sharers(std::int64_t wide) const;  // tiles for so many columns
  std::int64_t sorted_bytes() const;

  // The rows of slots and their sums [columns][slots], which travel: on every tile,
  // buffer at_ has what is there now.
  struct Travelling {
    std::array<BufferId, 2> rows_use, sums_use;
    std::array<std::vector<device::SlotId>, 2> rows, sums;  // by tile
  };
  std::int64_t values() const { return spec.grid.blocks * spec.grid.block.area(); }
  void declare_buffers();
  void declare_travel();
  void add_slots();
  std::vector<device::Gather> prearrange_gathers() const;
  std::vector<device::Gather> gathers_to_parts() const;
  void load();
  Cycles pack(const device::Tile& tile) const;
  Cycles add_up(const device::Tile& tile, bool first) const;
  void list_move(Cell by, device::Exchange& move) const;
  void move();
  Cycles update(const device::Tile& tile) const;
  void collect() const;

  std::int64_t wide_ = 1;        // columns of a packing, but for the last one
  std::vector<TileId> packers_;  // tiles that add up
  BufferId places_, slices_home_, slices_, packed_, sums_, updated_;
  Travelling travelling_;
  std::size_t at_ = 0;
  Displacement now_;
  std::vector<TileSlots> tiles_;
  device::Exchange move_;
  const std::byte* slices_in_ = nullptr;
  std::byte* values_out_ = nullptr;
  float scale_ = 0;
};

}  // namespace tessera::runtime::internal
