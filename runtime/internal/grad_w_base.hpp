#pragma once

#include <vector>

#include "tessera/codelets/kernel.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/grad_w_pass.hpp"
#include "tessera/runtime/internal/home_buckets.hpp"
#include "tessera/runtime/tile_map.hpp"

namespace tessera::runtime {

// What both ways of running GradW share: operands, words and sums on their tiles, the kernel, the
// cast. The two ways differ in what moves: work().
struct GradWPass::Base {
  enum Phase { kPrearrange, kDistribute, kPropagate, kCast };

  // One tile's slots. Operands at home are shares of slices that several tiles need.
  struct TileSlots {
    device::SlotId q_home, s_home;  // on the tiles of home_map
    device::SlotId q, s;            // on the tiles of map, as everything below
    device::SlotId meta, sums, result;
  };

  Base(const PassSpec& spec, TileOrder order, const device::Machine& machine,
       device::ExchangeMode mode, Executor& executor);
  virtual ~Base() = default;

  device::Ledger run(const BucketImage& image, device::ByteRows q_grad, device::ByteRows s,
                     std::byte* gradients);
  // The phases kDistribute and kPropagate, which it begins.
  virtual void work(const partitioner::Travel& travel) = 0;

  std::int64_t z() const { return spec.grid.z_per_tile(); }
  std::int64_t row_bytes() const { return z() * bytes_of(spec.data_type()); }
  std::int64_t values() const { return spec.grid.blocks * spec.grid.block.area(); }
  TileSlots& slots_of(TileId tile) { return tiles[std::size_t(tile.value)]; }
  const TileSlots& slots_of(TileId tile) const { return tiles[std::size_t(tile.value)]; }
  Cycles clear_sums(const device::Tile& tile) const;
  // Adds what operands q and s of cell `of` give to the sums, at the records of that cell.
  struct Visit {
    device::SlotId meta, sums, q, s;
    Cell of;
  };
  Cycles visit(const device::Tile& tile, const Visit& visit) const;
  // All slots are added: check memory, work out the first exchange.
  void seal();

  PassSpec spec;
  device::Engine engine;
  TileMap home_map, map;
  internal::BucketShape shape;
  std::vector<TileId> all;
  std::vector<device::SlotId> meta_homes;  // by tile of home_map
  std::vector<TileSlots> tiles;
  device::Exchange prearrange;
  codelets::Kernel kernel;

 private:
  void add_tiles();
  void add_operand_gathers(std::vector<device::Gather>& gathers, bool q_side) const;
  void load(const BucketImage& image, device::ByteRows q_grad, device::ByteRows s);
  void rearrange();
  void cast();
  void collect(std::byte* gradients) const;
};

namespace internal {
std::unique_ptr<GradWPass::Base> make_grad_w_inputs(const PassSpec& spec,
                                                    const device::Machine& machine,
                                                    device::ExchangeMode mode, Executor& executor);
std::unique_ptr<GradWPass::Base> make_grad_w_buckets(const PassSpec& spec,
                                                     const device::Machine& machine,
                                                     device::ExchangeMode mode, Executor& executor);
}  // namespace internal

}  // namespace tessera::runtime
