#pragma once

#include <string>
#include <vector>

#include "tessera/base/matrix.hpp"
#include "tessera/planner/matmul.hpp"
#include "tessera/runtime/internal/own_pass.hpp"
#include "tessera/runtime/internal/tensor_home.hpp"

namespace tessera::runtime::internal {

// Transposes a dense operand on the machine, as planner::TransposePlan says:
//   arrange    every tile puts its run of the operand in the order of the parts; charged alone,
//              because the caller's memory is read in place
//   exchange   every tile with a part receives it, from as many tiles as hold it
//   transpose  and writes its transpose
// The result is spread over the tiles as parts, and the pass after it arranges these like runs.
struct TransposePass {
  // `resident` are bytes of every tile that are not available: the buckets of the layer.
  TransposePass(const planner::TransposePlan& plan, Bytes resident, TileProgram& program);
  static std::string name_of(const planner::TransposePlan&, Bytes) { return "transpose operand"; }

  // Takes [groups * rows][cols], and the place of the result, [groups * cols][rows]; both have
  // contiguous rows.
  void start(device::ByteRows of_operand, device::ByteRows of_result);

  std::int64_t element() const { return bytes_of(plan.data_type); }
  void add_parts(Bytes resident);
  void declare_alone(Executor&);
  Cycles transpose(const device::Tile& tile) const;

  planner::TransposePlan plan;
  TileProgram& program;
  device::Engine& engine;
  std::vector<TileId> tiles;
  BufferId buckets, arrived;
  TensorHome home, turned;                    // the parts of the operand and of its transpose
  std::vector<device::SlotId> arrived_parts;  // by tile
  device::ByteRows from, to;
};

// Runs the pass on the matrices of all groups, one below the other, and writes their transposes to
// `turned`. Returns false if options.stop ended the run. With a self-check, throws
// Error{CheckFailed} unless they are those of `given`, bit for bit.
template <class T>
bool transpose_operand(OwnPass<TransposePass>& pass, MatrixView<const T> given, Matrix<T>& turned,
                       const PassOptions& options, device::Ledger& ledger);

}  // namespace tessera::runtime::internal
