#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/tile_map.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/grad_w_pass.hpp"
#include "tessera/runtime/internal/hand_over.hpp"
#include "tessera/runtime/internal/pass_homes.hpp"
#include "tessera/runtime/internal/tile_program.hpp"
#include "tessera/runtime/internal/travel_loop.hpp"

namespace tessera::runtime {

// The part that both kinds of GradW share: operands, words and sums on their tiles, the kernel and
// the cast. The kinds differ in the data that move (GradWExchange) and override the virtual
// functions. It is a part of a program, as SpmmPass::State is (spmm_state.hpp).
struct GradWPass::Base {
  // The slots of one tile. Operands at home are shares of slices that several tiles need.
  struct TileSlots {
    device::SlotId q_home, s_home;  // of the tile's cell by home_map
    device::SlotId q, s;            // of the tile's cell by map, like the slots below
    device::SlotId meta, sums, result;
  };

  struct Use {
    BufferId q_home, s_home, q, s, words, words_here, sums, result, q_blocks, s_blocks;
  };

  Base(const PassSpec& spec, GradWExchange exchange, internal::TileProgram& program,
       const internal::PassHomes* shared);
  virtual ~Base() = default;

  void declare();
  PassForm form() const;

  // True: some tile works on another cell than the one it holds at home.
  bool cells_move() const;

  // The parts of one kind: its buffers with their slots, and the nodes that distribute and
  // propagate.
  virtual void declare_buffers() = 0;
  virtual void declare_work() = 0;

  // Is called before the first step of a run.
  virtual void start() {}

  std::int64_t z() const { return spec.grid.z_per_tile(); }
  std::int64_t row_bytes() const { return z() * bytes_of(spec.data_type()); }
  std::int64_t values() const { return spec.grid.blocks * spec.grid.block.area(); }
  TileSlots& slots_of(TileId tile) { return tiles[std::size_t(tile.value)]; }
  const TileSlots& slots_of(TileId tile) const { return tiles[std::size_t(tile.value)]; }
  Cycles clear_sums(const device::Tile& tile) const;

  // Adds to the sums, at the records of cell `of`, the products of that cell's operands q and s.
  struct Visit {
    device::SlotId meta, sums, q, s;
    Cell of;
  };
  Cycles visit(const device::Tile& tile, const Visit& visit) const;

  // The kind of the slots of operands: in a network, moves put them together.
  device::SlotKind operand_kind() const {
    return shared != nullptr ? device::SlotKind::Owned : device::SlotKind::Landing;
  }

  PassSpec spec;
  internal::TileProgram& program;
  device::Engine& engine;
  const internal::PassHomes* shared;  // null: the pass has homes of its own
  // In a network: the slices of the operands, and the fetches of the first exchange.
  internal::TensorHome q_slices, s_slices;
  std::optional<internal::Fetches> fetches;
  TileMap home_map, map;
  internal::BucketShape shape;
  std::vector<TileId> all;
  internal::TravelLoop loop;
  Use use;
  std::vector<device::SlotId> meta_homes;  // by tile of home_map
  std::vector<TileSlots> tiles;
  codelets::Kernel kernel;

  // The data of the current run.
  BucketImage image;
  Operands operands;

 private:
  // These are in grad_w_program.cpp.
  void declare_common_buffers();
  void declare_fetches();
  void declare_load();
  void declare_prearrange();
  void declare_arranging();

  // True: the operands come from an even spread over all tiles, so every slice is fetched.
  bool spread() const { return spreads_operands(spec.placement, Pass::GradW); }
  bool leaves_homes() const { return cells_move() || spread(); }
  // True: an operand comes from shares that the pass has loaded.
  bool q_is_fetched() const {
    return shared == nullptr && (spec.grid.splits.y > 1 || leaves_homes());
  }
  bool s_is_fetched() const {
    return shared == nullptr && (spec.grid.splits.x > 1 || leaves_homes());
  }
  bool rearranges() const { return spec.method == codelets::Method::BlockGradWAmp; }
  bool casts() const { return spec.partials_type != spec.data_type(); }
  void add_tiles();
  void add_operand_slots(TileId tile, TileSlots& slots);
  void add_operand_homes(TileId tile, TileSlots& slots);
  std::int64_t senders_of(Cell c, bool q_side) const;
  void add_operand_gathers(std::vector<device::Gather>& gathers, bool q_side) const;
  std::vector<device::Gather> prearrange_gathers() const;
  void load();
  Cycles rearrange(const device::Tile& tile) const;
  Cycles cast(const device::Tile& tile) const;
  void collect() const;

  GradWExchange exchange_;
};

namespace internal {
std::unique_ptr<GradWPass::Base> make_grad_w_inputs(const PassSpec& spec, TileProgram& program,
                                                    const PassHomes* shared);
std::unique_ptr<GradWPass::Base> make_grad_w_buckets(const PassSpec& spec, TileProgram& program,
                                                     const PassHomes* shared);

// Makes the kind that `exchange` names.
std::unique_ptr<GradWPass::Base> make_grad_w(const PassSpec& spec, GradWExchange exchange,
                                             TileProgram& program,
                                             const PassHomes* shared = nullptr);
}  // namespace internal

}  // namespace tessera::runtime
