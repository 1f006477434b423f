#pragma once

#include <string>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"

namespace tessera {

// The layer to plan: Q[g][x][z] = R[g][x][y] * S[g][y][z] with R sparse, and the backward passes
// that run with it. The forward pass is always planned.
struct Problem {
  Dims size;                                 // elements; z is the batch
  BlockShape block;                          // of R; 1 x 1 is element-wise sparsity
  double density = 1.0;                      // non-zeros / all of R, in [0, 1]
  DataType data_type = DataType::Half;       // of R, S and Q
  DataType partials_type = DataType::Float;  // of the sums: float, or half for halves
  bool grad_a = false;                       // also dS = transpose(R) * dQ
  bool grad_w = false;                       // also dR = (dQ * transpose(S)) where R has non-zeros

  friend bool operator==(const Problem&, const Problem&) = default;
  bool is_element_wise() const { return block.is_element(); }
  // The size with x and y rounded up to whole blocks: what R's blocks cover.
  Dims size_in_blocks() const {
    return {size.g, round_up(size.x, block.rows), round_up(size.y, block.cols), size.z};
  }
};

// Throws Error{InvalidArgument} naming the field, its value and the legal range: sizes and block
// sides 1 .. 2^31 - 1, density in [0, 1], float partials for all but halves in blocks.
void check_problem(const Problem& problem);

// The passes of a problem, in the order they run.
std::vector<Pass> passes_of(const Problem& problem);

// "g1 x1024 y1024 z64, block 1x1, density 0.1, half to float, fwd + grad_a"
std::string to_string(const Problem& problem);

}  // namespace tessera
