#pragma once

#include <optional>
#include <vector>

#include "tessera/codelets/kernel.hpp"
#include "tessera/runtime/internal/hand_over.hpp"
#include "tessera/runtime/internal/pass_homes.hpp"
#include "tessera/runtime/internal/reduce.hpp"
#include "tessera/runtime/internal/shared_sums.hpp"
#include "tessera/runtime/internal/spmm_role.hpp"
#include "tessera/runtime/internal/tile_program.hpp"
#include "tessera/runtime/internal/travel_loop.hpp"
#include "tessera/runtime/internal/travelling_buckets.hpp"
#include "tessera/runtime/internal/visit.hpp"
#include "tessera/runtime/spmm_pass.hpp"

namespace tessera::runtime {

// A dense pass as a part of a program: a program of its own (SpmmPass::Own), or a part of a
// network's.
struct SpmmPass::State {
  // The slots of one tile, without its travelling buckets.
  struct TileSlots {
    device::SlotId in_home, in, partial;
    // Buckets of the tile's cell, by z; for the tile's own z it is the home bucket.
    std::vector<internal::BucketSlots> arrived;
  };
  struct Use {
    internal::BucketUse home, arrived;
    BufferId in_home, in, partial, turned;
  };

  // The program must outlive the state, as `shared` must if it is not null.
  State(const PassSpec& spec, internal::TileProgram& program,
        const internal::PassHomes* shared = nullptr);

  // For a pass alone in Share mode: leaves the products and sums to SharedSums. Must be called
  // before declare().
  void share_sums(Executor& executor);

  std::int64_t z() const { return spec.grid.z_per_tile(); }
  std::int64_t row_bytes() const { return z() * bytes_of(spec.data_type()); }
  // The number of tiles that need the same slice of the operand.
  std::int64_t sharers() const { return role.out_parts(spec.grid.splits); }
  // True: each slice is needed by one tile only, which holds it from the start.
  bool in_is_here() const { return !in_is_spread() && sharers() == 1 && shared == nullptr; }
  Pass pass() const { return role.forward ? Pass::Fwd : Pass::GradA; }
  bool in_is_spread() const { return spreads_operands(spec.placement, pass()); }
  bool out_is_spread() const { return spreads_result(spec.placement, pass()); }
  bool turns_blocks() const;

  PassForm form() const;

  // These declare buffers, slots and nodes (spmm_program.cpp).
  void declare();
  void declare_buffers();
  void declare_fetches();
  void declare_load();
  std::vector<BufferId> visited_buckets() const;
  void declare_arranging(BufferId buffer, std::int64_t rows);
  void declare_transposing();
  void declare_prearranging();
  void declare_multiplying();
  void declare_propagation();
  void add_slots();
  void add_arrived_slots(TileId tile, TileSlots& slots);
  std::vector<internal::ReductionColumn> columns() const;
  std::vector<device::Gather> prearrange_gathers() const;
  void add_bucket_gathers(TileId tile, std::vector<device::Gather>& gathers) const;

  // The code of the nodes.
  void load();
  Cycles distribute(const device::Tile& tile) const;
  Cycles visit_arrived(const device::Tile& tile);
  Cycles visit(const device::Tile& tile, std::span<const internal::BucketSlots> buckets) const;
  void collect();

  PassSpec spec;
  internal::SpmmRole role;
  internal::TileProgram& program;
  device::Engine& engine;
  const internal::PassHomes* shared;  // null: the pass has homes of its own
  // In a network: the slices of the operand, and the fetches of the first exchange.
  internal::TensorHome slices;
  std::optional<internal::Fetches> fetches;
  TileMap map;
  internal::BucketShape shape;
  std::vector<TileId> all;
  internal::TravelLoop loop;
  internal::TravellingBuckets travelling;
  internal::Reduction reduction;
  codelets::Kernel kernel;
  std::optional<internal::SharedSums> sums;  // empty: every tile computes in memory of its own
  Use use;
  std::vector<internal::BucketSlots> homes;
  std::vector<TileSlots> tiles;
  // The data of the current run.
  BucketImage image;
  device::ByteRows host_in, host_out;
};

// A pass with a program of its own, which is declared and not sealed.
struct SpmmPass::Own {
  Own(const PassSpec& spec, const device::Machine& machine, device::ExchangeMode mode,
      Executor& executor);

  internal::TileProgram program;
  State state;
};

}  // namespace tessera::runtime
