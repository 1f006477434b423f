#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/tile_map.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/hand_over.hpp"
#include "tessera/runtime/internal/pass_homes.hpp"
#include "tessera/runtime/internal/sliced_operand.hpp"
#include "tessera/runtime/internal/tile_program.hpp"
#include "tessera/runtime/internal/travel_loop.hpp"

namespace tessera::runtime::internal {

// The data that move so that every non-zero meets every z.
enum class GradWExchange {
  Inputs,  // the dense operands travel; words and sums stay on their tile
  Buckets  // words and sums travel together and return to their home tile at the end
};

// GradW as a part of a program: dR = dQ[x][z] * transpose(S[y][z]) at the places of R, for each
// group. Every group has separate tiles, and all groups take every step together.
//
// The program has these phases, in this order. Shapes are those of one tile.
//   exchange     writes q [x rows][z] and s [y rows][z] from the home shares; with Inputs also the
//                words, to the tile that works on them. One exchange.
//   rearrange    brings the operands into block order, only for the method that needs it. One
//                compute step.
//   multiply     clears the sums [values], then reads words, q and s and adds to the sums. Buckets:
//                the tile's own part of z, in one compute step. Inputs: a round for every part of
//                z of the cell, each an exchange (the operands of that part) and a compute step.
//   propagate    Buckets: words and sums shift by one tile, and each tile adds the products of its
//                own operands. Inputs: the operands shift in the opposite direction, again with a
//                round for every part of z.
//   cast         casts the sums to the layer's type, if it is another one. One compute step.
//
// This is what both kinds share: operands, words and sums on their tiles, the kernel and the cast.
// The kinds override the virtual functions. Of its own (own_pass.hpp), it runs any pattern encoded
// for the same grid.
struct GradWPass {
  // The operands q_grad [groups * x][z] and s [groups * y][z], contiguous along z, in the padded
  // sizes of the grid; and the result, gradients [groups][buckets][values_per_bucket] in bucket
  // order, where padding becomes 0. All are in the layer's type.
  struct Operands {
    device::ByteRows q_grad, s;
    std::byte* gradients = nullptr;
  };

  // The slots of one tile, of its cell by map.
  struct TileSlots {
    device::SlotId q, s, meta, sums, result;
  };

  struct Use {
    BufferId q, s, words_here, sums, result, q_blocks, s_blocks;
  };

  GradWPass(const PassSpec& spec, GradWExchange exchange, TileProgram& program,
            const PassHomes& shared);
  virtual ~GradWPass() = default;

  // Makes the kind that `exchange` names. The program must outlive it, as `shared` must.
  static std::unique_ptr<GradWPass> make(const PassSpec& spec, GradWExchange exchange,
                                         TileProgram& program, const PassHomes& shared = kHost);
  static std::string name_of(const PassSpec&, GradWExchange exchange) {
    return exchange == GradWExchange::Inputs ? "GradW, operands travel" : "GradW, buckets travel";
  }

  void declare();
  void declare_alone(Executor&);

  // Takes the data of a run.
  void start(const BucketImage& of_run, const Operands& of_pass);
  PassForm form() const;

  // True: some tile works on another cell than the one it holds at home.
  bool cells_move() const;

  // The parts of one kind: its buffers with their slots, and the nodes that distribute and
  // propagate.
  virtual void declare_buffers() = 0;
  virtual void declare_work() = 0;

  // Is called before the first step of a run.
  virtual void begin() {}

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

  // Adds slots of the kind that operands have: in a network, moves put them together.
  device::SlotId add_operand_slot(BufferId buffer, TileId tile, std::int64_t rows) {
    return program.add_slot(buffer, tile, rows, row_bytes(),
                            shared.is_host ? device::SlotKind::Landing : device::SlotKind::Owned);
  }

  PassSpec spec;
  TileProgram& program;
  device::Engine& engine;
  const PassHomes& shared;
  SlicedOperand q_in, s_in;
  Fetches fetches;  // of the first exchange
  TileMap home_map, map;
  BucketShape shape;
  std::vector<TileId> all;
  TravelLoop loop;
  Use use;
  HomeBuckets homes;  // by tile of home_map, without payload if the pass is alone
  std::vector<TileSlots> tiles;
  codelets::Kernel kernel;

  // The data of the current run.
  BucketImage image;
  Operands operands;

 private:
  // These are in grad_w_program.cpp.
  void declare_common_buffers();
  void declare_load();
  void declare_prearrange();
  void declare_arranging();

  // True: the operands come from an even spread over all tiles, so every slice is fetched.
  bool spread() const { return spreads_operands(spec.placement, Pass::GradW); }
  bool rearranges() const { return spec.method == codelets::Method::BlockGradWAmp; }
  bool casts() const { return spec.partials_type != spec.data_type(); }
  void add_tiles();
  void add_operand_slots(TileId tile, TileSlots& slots);
  std::vector<device::Gather> prearrange_gathers();
  void load();
  Cycles rearrange(const device::Tile& tile) const;
  Cycles cast(const device::Tile& tile) const;
  void collect() const;

  GradWExchange exchange_;
};

std::unique_ptr<GradWPass> make_grad_w_inputs(const PassSpec& spec, TileProgram& program,
                                              const PassHomes& shared);
std::unique_ptr<GradWPass> make_grad_w_buckets(const PassSpec& spec, TileProgram& program,
                                               const PassHomes& shared);

}  // namespace tessera::runtime::internal
