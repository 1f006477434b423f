#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/tile_map.hpp"
#include "tessera/codelets/best_places.hpp"
#include "tessera/codelets/cost/dense_cycles.hpp"
#include "tessera/planner/dense_operand.hpp"
#include "tessera/planner/dense_plan.hpp"
#include "tessera/planner/homes.hpp"
#include "tessera/runtime/internal/pass_homes.hpp"
#include "tessera/runtime/internal/reduce.hpp"
#include "tessera/runtime/internal/tile_program.hpp"

namespace tessera::runtime::internal {

// A tile's order to search, in its memory.
struct SelectionRequest {
  float threshold = 0;         // blocks of a lower score are not looked for
  std::uint32_t searches = 1;  // 0: the tile keeps nothing
  std::uint32_t goes_on = 0;   // 1: only blocks that come after `after` among the best
  codelets::ScoredPlace after;
};

// The counter and the threshold of a tile's list, in front of its places.
struct SelectionHeader {
  float threshold = 0;
  std::uint32_t count = 0;
};

// The arrays of a dense pass, groups one below the other, in the layer's type:
//   Fwd    left R [x][y],   right S [y][z],   out Q [x][z]
//   GradA  left R [x][y],   right dQ [x][z],  out dS [y][z]
//   GradW  left transpose(dQ) [z][x], right S [y][z], out dR [x][y]; the plan charges the
//          transposition of both
struct DenseArrays {
  device::ByteRows left, right, out;
};

// Throws Error{InvalidArgument} unless the plan has the pass of this problem.
void check_dense_plan(const planner::DensePlan& plan, const Problem& problem, Pass pass);

// A pass with a dense R, without buckets: the program of a planner::DensePassPlan, as a part of a
// program of its own (own_pass.hpp), or of a network's, which has one round. A run in one round has
// exactly the cycles that were planned. Results do not depend on threads or on the exchange mode.
// A cell's x, y and z are its parts of rows, of the inner dimension and of columns.
struct DensePass {
  // One operand of one round on all tiles.
  struct OperandSlots {
    TensorHome arrived;  // the slices, with a share for each tile
    BufferId ordered_buffer;
    std::vector<device::SlotId> ordered;  // [tiles], only if the slice is reordered
  };
  struct Round {
    planner::ProductShape at;  // numbers of the ranges
    planner::DenseHomes homes;
    Reduction reduction;
    OperandSlots left = {}, right = {};
    BufferId partial_buffer = {};
    std::vector<device::SlotId> partial = {};
    TensorHome result = {};  // if the host collects it
  };

  // The search for the best blocks, instead of a result (dense_grad_w.hpp). A tile's words of the
  // pattern are those of its rounds one after the other, words_per_round each.
  struct Selection {
    BlockShape block;
    std::int64_t keep = 1;
    planner::ProductShape round_grain;
    BufferId taken_buffer, request_buffer, best_buffer;
    std::vector<device::SlotId> taken, request, best;  // [tiles]
    std::vector<std::int64_t> words_per_round;         // [tiles]

    // These belong to the current run.
    codelets::BlockScore score = codelets::BlockScore::Sum;
    std::vector<std::vector<std::uint32_t>> taken_words;  // [tiles]
    std::vector<SelectionRequest> requests;               // [tiles]
  };

  // The program and `homes` must outlive the pass.
  // Throws Error{InvalidArgument} if the plan does not have the pass.
  DensePass(const planner::DensePlan& layer, Pass pass, const std::optional<Selection>& search,
            TileProgram& program, const PassHomes& homes = kHost);
  DensePass(const planner::DensePlan& layer, Pass pass, TileProgram& of_pass)
      : DensePass(layer, pass, std::nullopt, of_pass) {}

  static std::string name_of(const planner::DensePlan&, Pass pass,
                             const std::optional<Selection>& = {}) {
    return "dense " + to_string(pass);
  }

  // Takes the data of a run. Throws Error{InvalidArgument} if an array does not have the size of
  // the plan.
  void start(const DenseArrays& of_run);

  DataType type() const { return kernel.data_type; }
  std::int64_t bytes() const { return bytes_of(kernel.data_type); }

  // The ranges of a cell in a round.
  static Range rows_of(const Round& round, Cell c) {
    return round.homes.range(&planner::ProductShape::rows, c);
  }
  static Range columns_of(const Round& round, Cell c) {
    return round.homes.range(&planner::ProductShape::columns, c);
  }

  // Returns an operand as the host or the network has it.
  planner::DenseOperand operand_of(planner::Side side) const;

  // Returns the slices of a round without slots, or the equal shares of them on the tiles that need
  // them.
  TensorHome home_of(planner::Side side, const Round& round, planner::PieceKind kind) const {
    return tensor_home(round.homes.operand(operand_of(side), kind), Shares::OfAllTiles);
  }

  // Returns true if the operand arrives in this round; if not, the slots are those of the round
  // before.
  bool fetches(planner::Side side, const Round& round) const {
    return planner::is_fetched(side, plan.rounds, round.at.rows, round.at.columns);
  }

  // These declare buffers, nodes and slots (dense_program.cpp).
  void declare();
  void declare_alone(Executor&);
  void declare_homes();
  void add_fetches(const Round& round, Fetches& fetched);
  void declare_round(Round& round, const Round* before);
  void add_round_slots(Round& round, const Round* before);
  void add_operand_slots(planner::Side side, OperandSlots& slots, TileId tile);
  std::vector<ReductionColumn> columns(const Round& round) const;

  // These do the same for the search (dense_selection.cpp).
  void declare_selection(Round& round);
  void add_selection();

  // Returns the blocks of a cell in a round, as rows and columns.
  std::pair<std::int64_t, std::int64_t> blocks_of(const Round& round, Cell c) const;

  // The code of the nodes.
  void load();
  Cycles rearrange(const Round& round, const device::Tile& tile) const;
  Cycles multiply(const Round& round, const device::Tile& tile) const;
  void load_selection();
  Cycles select(const Round& round, const device::Tile& tile);
  void collect() const;

  PassForm form;  // by the plan
  planner::DensePassPlan plan;
  std::optional<Selection> selection;
  codelets::DenseKernel kernel;
  TileProgram& program;
  device::Engine& engine;
  const PassHomes& shared;
  TileMap map;
  std::vector<TileId> all;
  std::deque<Round> rounds;                         // nodes refer to them
  std::deque<Fetches> fetches_of_rounds;            // of the operands; nodes refer to them
  std::vector<TensorHome> left_homes, right_homes;  // [range], of operands that the host loads
  DenseArrays arrays;                               // of the current run
};

}  // namespace tessera::runtime::internal
