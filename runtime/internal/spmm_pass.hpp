#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/codelets/kernel.hpp"
#include "tessera/runtime/internal/hand_over.hpp"
#include "tessera/runtime/internal/pass_homes.hpp"
#include "tessera/runtime/internal/reduce.hpp"
#include "tessera/runtime/internal/shared_sums.hpp"
#include "tessera/runtime/internal/sliced_operand.hpp"
#include "tessera/runtime/internal/spmm_role.hpp"
#include "tessera/runtime/internal/tile_program.hpp"
#include "tessera/runtime/internal/travel_loop.hpp"
#include "tessera/runtime/internal/travelling_buckets.hpp"
#include "tessera/runtime/internal/visit.hpp"

namespace tessera::runtime::internal {

// One of the two passes with a dense result, as one part of a program:
//   Fwd    Q[x][z]  = R * S[y][z]                   partial sums over y
//   GradA  dS[y][z] = transpose(R) * dQ[x][z]       partial sums over x
// for each group. Every group has separate tiles, and all groups take every step together.
//
// The program has these phases, in this order. Shapes are those of one tile; `in` is y for Fwd and
// x for GradA, and `out` is the other. program() lists the buffers that each step reads and writes.
//   arrange      if the operand comes from an even spread over all tiles, its runs are put in the
//                order of the slices. One compute step, and another one at the end for the result.
//   transpose    GradA of blocks only: transposes the blocks of the tile's own bucket. One compute
//                step.
//   exchange     brings `in` [in rows][z] and the Pz - 1 other buckets of the tile's cell. One
//                exchange.
//   multiply     computes partials [out rows][z] from `in` and the Pz buckets. One compute step.
//   propagate    adds to the partials the products of the non-zeros that an arriving bucket holds
//                for the tile's cell. As many exchanges and compute steps as the pattern needs
//                (propagation.hpp).
//   reduce       adds up the partials of all sharing tiles for the tile's own share, in tile order,
//                and casts them to the layer's type. One exchange and one compute step.
//
// It is a part of a program: of one of its own (own_pass.hpp), which runs any pattern encoded for
// the same grid, or of a network's.
struct SpmmPass {
  // The slots of one tile, without its travelling buckets.
  struct TileSlots {
    device::SlotId in, partial;
    // Buckets of the tile's cell, by z; for the tile's own z it is the home bucket.
    std::vector<BucketSlots> arrived;
  };
  struct Use {
    BucketUse arrived;
    BufferId in, partial, turned;
  };

  // The program and `shared` must outlive the pass.
  SpmmPass(const PassSpec& spec, TileProgram& program, const PassHomes& shared = kHost);

  static std::string name_of(const PassSpec& spec) {
    return to_string(role_of(spec).forward ? Pass::Fwd : Pass::GradA);
  }

  // Takes the data of a run: the result [groups * out rows][z] of the operand [groups * in
  // rows][z]. Both are in the layer's type, have the padded sizes of the grid and are contiguous
  // along z.
  void start(const BucketImage& of_run, device::ByteRows of_in, device::ByteRows of_out);

  // For a pass alone in Share mode: leaves the products and sums to SharedSums. Must be called
  // before declare().
  void share_sums(Executor& executor);

  std::int64_t z() const { return spec.grid.z_per_tile(); }
  Pass pass() const { return role.forward ? Pass::Fwd : Pass::GradA; }
  bool in_is_spread() const { return spreads_operands(spec.placement, pass()); }
  bool out_is_spread() const { return spreads_result(spec.placement, pass()); }
  bool turns_blocks() const;

  PassForm form() const;

  // These declare buffers, slots and nodes (spmm_program.cpp).
  void declare();
  void declare_alone(Executor& executor);
  void declare_buffers();
  void declare_load();
  std::vector<BufferId> visited_buckets() const;
  void declare_arranging(BufferId buffer, std::int64_t rows);
  void declare_transposing();
  void declare_prearranging();
  void declare_multiplying();
  void declare_propagation();
  void declare_collect();
  void add_slots();
  void add_arrived_slots(TileId tile, TileSlots& slots);
  std::vector<ReductionColumn> columns() const;
  void add_bucket_gathers(TileId tile, std::vector<device::Gather>& gathers) const;

  // The code of the nodes.
  void load();
  Cycles distribute(const device::Tile& tile) const;
  Cycles visit_arrived(const device::Tile& tile);
  Cycles visit(const device::Tile& tile, std::span<const BucketSlots> buckets) const;
  void collect();

  PassSpec spec;
  SpmmRole role;
  TileProgram& program;
  device::Engine& engine;
  const PassHomes& shared;
  SlicedOperand in;
  Fetches fetches;  // of the first exchange
  TileMap map;
  BucketShape shape;
  std::vector<TileId> all;
  TravelLoop loop;
  TravellingBuckets travelling;
  Reduction reduction;
  codelets::Kernel kernel;
  std::optional<SharedSums> sums;  // empty: every tile computes in memory of its own
  Use use;
  HomeBuckets homes;
  std::vector<TileSlots> tiles;
  TensorHome result;  // if the host collects it
  // The data of the current run.
  BucketImage image;
  device::ByteRows host_in, host_out;
};

}  // namespace tessera::runtime::internal
