#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/static_steps.hpp"
#include "tessera/codelets/static_kernel.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/internal/static_sums.hpp"
#include "tessera/runtime/internal/static_work.hpp"
#include "tessera/runtime/internal/tile_program.hpp"
#include "tessera/runtime/program.hpp"
#include "tessera/runtime/tile_options.hpp"

namespace tessera::runtime::internal {

// The arrays of a pass with a static pattern, in the layer's type and in the sizes of StaticSizes,
// groups one below the other.
//   Fwd    in S [y][z],   out Q [x][z]
//   GradA  in dQ [x][z],  out dS [y][z]
//   GradW  in dQ [x][z],  in_s S [y][z]
struct StaticArrays {
  device::ByteRows in, in_s, out;
  const std::byte* values = nullptr;  // of all tiles, in the order of StaticCut::homes
  std::byte* gradients = nullptr;     // of all groups, in the order of their patterns (GradW)
};

// A pass with a static pattern, as a program of its own (own_pass.hpp). The tiles put their even
// spread of the operands in order; one exchange brings every tile the rows that it uses; if the
// batch is in parts, or if GradA has tiles of its own, another one brings the values to the tiles
// that multiply them. GradA writes the tile's values in transposed order, by a table. After the
// kernel, results that several tiles have in parts are added.
class StaticPass {
 public:
  // `cut` has the tiles that multiply, and `values` the tiles that store the values: another cut
  // only for GradA. Both must outlive the pass. Throws Error{LimitExceeded} if a word does not fit.
  StaticPass(const StaticCut& cut, const StaticCut& values, Pass pass, TileProgram& program);
  StaticPass(const StaticPass&) = delete;
  StaticPass& operator=(const StaticPass&) = delete;

  static std::string name_of(const StaticCut&, const StaticCut&, Pass pass) {
    return "static " + to_string(pass);
  }
  void declare_alone(Executor&);
  void start(const StaticArrays& arrays) { arrays_ = arrays; }

  // Returns the largest number of partial sums of a result.
  std::int64_t depth() const;

 private:
  // An operand in its even spread, and the rows of it that the tiles use.
  struct OperandUse {
    BufferId home, here;
    std::vector<std::vector<device::SlotId>> homes;  // by part of the batch and tile of it
    std::vector<device::SlotId> rows;                // by work
    std::int64_t all_rows = 0;                       // of a group
  };
  // Slots of a work; not every pass has all of them.
  struct Slots {
    device::SlotId words, values, table, turned, result;
  };
  // Values that go to the middle of a tile's own.
  struct Arrival {
    std::int64_t to = 0;
    device::Piece from;
  };

  bool is_gradient() const { return pass_ == Pass::GradW; }
  bool turns() const { return pass_ == Pass::GradA; }
  bool has_own_tiles() const { return &cut_ != &values_; }
  bool brings_values() const { return !is_gradient() && (has_own_tiles() || values_.in_parts()); }
  StaticSteps steps() const;
  codelets::Operation operation() const {
    return is_gradient() ? codelets::Operation::GradW : codelets::Operation::Fwd;
  }
  codelets::StaticForm form_of(const StaticWork& work) const;
  // Returns the block rows or block columns whose rows of the operand a work uses.
  const std::vector<std::int32_t>& used(const StaticWork& work, bool second) const;
  std::int64_t value_bytes(const StaticWork& work) const;

  // These declare buffers, nodes and slots (static_program.cpp).
  void declare();
  void declare_buffers();
  void declare_arranging(std::vector<BufferId> reads, std::int64_t rows);
  void declare_result();
  void add_slots();
  void add_homes(OperandUse& operand);
  void add_value_homes();
  void add_work_slots(std::size_t w);
  void write_words();
  std::vector<std::byte> words_of(const StaticWork& work) const;
  void add_gathers(const OperandUse& operand, bool second,
                   std::vector<device::Gather>& gathers) const;
  std::vector<std::vector<Arrival>> arrivals() const;
  std::vector<std::vector<Arrival>> arrivals_on_own_tiles() const;
  std::vector<device::Gather> value_gathers() const;

  // The code of the nodes.
  void load();
  void load_operand(const OperandUse& operand, const device::ByteRows& from);
  Cycles turn(const device::Tile& tile);
  Cycles multiply(const device::Tile& tile);
  void collect();
  void collect_rows(const StaticShare& share) const;
  void collect_gradients(const StaticShare& share) const;

  const StaticWork& work_on(TileId tile) const {
    return works()[std::size_t(work_of_tile_[std::size_t(tile.value)])];
  }
  const Slots& slots_on(TileId tile) const {
    return slots_[std::size_t(work_of_tile_[std::size_t(tile.value)])];
  }
  std::span<const StaticWork> works() const { return turned_.empty() ? cut_.works : turned_; }

  const StaticCut& cut_;
  const StaticCut& values_;
  Pass pass_;
  std::vector<StaticWork> turned_;   // GradA
  std::vector<StaticRun> row_runs_;  // Fwd and GradA
  TileProgram& program_;
  device::Engine& engine_ = program_.engine();
  StaticSums sums_;
  OperandUse in_, in_s_;
  struct {
    BufferId words, value_home, values, table, turned, result;
  } use_;
  std::vector<Slots> slots_;                 // by work
  std::vector<device::SlotId> value_homes_;  // by work of `values_`
  // Words and tables by work; works with the same contents share them.
  using Constants = std::vector<std::byte>;
  std::vector<std::shared_ptr<Constants>> words_, tables_;
  std::vector<std::int32_t> work_of_tile_;
  std::vector<TileId> all_, busy_;  // tiles of the layer; those with work
  StaticArrays arrays_;             // of the current run
};

}  // namespace tessera::runtime::internal
