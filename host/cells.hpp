#pragma once

#include <cstdint>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/host/cpu.hpp"

namespace tessera::host {

// How the host cuts one product: cells of R with their slice of the dense operands, so large that
// what a cell reads again and again stays in a cache. Sizes in elements.
struct HostCells {
  std::int64_t x = 1, y = 1;  // rows and columns of R in a cell, whole blocks
  std::int64_t z = 1;         // columns of a panel: what a cell is multiplied with at a time
  // Is the operand copied, panel by panel, so that a panel's rows follow each other? What is not
  // copied has one panel or is read with gaps.
  bool pack = false;
  // Are sums kept in a buffer of their own until they are complete?
  bool gather = false;

  friend bool operator==(const HostCells&, const HostCells&) = default;
};

// What the cells of a product depend on: size (g apart), block, blocks stored, element type.
struct HostProblem {
  Dims size;
  BlockShape block;
  std::int64_t blocks = 0;
  DataType type = DataType::Float;
};

// Q = R * S, where sums stay in registers over the non-zeros of a row in a cell. Elements: a cell's
// slice of S lies in L1, unless a row then had so few non-zeros that loading and storing its sums
// would dominate, and a panel has 64 columns at most. Blocks: a cell has all of y, and S is read
// where the caller has it.
HostCells product_cells(const HostProblem& problem, const host::HostCpu& cpu);

// dR = dQ * transpose(S) where R is: a cell's slice of S lies in L2, and a panel has 256 columns at
// most, so that a row is worth the addition of its lanes.
HostCells gradient_cells(const HostProblem& problem, const host::HostCpu& cpu);

}  // namespace tessera::host
