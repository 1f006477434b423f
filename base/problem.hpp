#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"
#include "tessera/base/dims.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"

namespace tessera {

// The largest size and the largest block side, because rows and columns have indices of 32 bits.
inline constexpr std::int64_t kLargestSize = 2147483647;

// Describes a layer to plan: Q[g][x][z] = R[g][x][y] * S[g][y][z] with R sparse, and the backward
// passes that run with it. The forward pass is always planned.
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

  // Returns the size with x and y rounded up to whole blocks, which is the area that R's blocks
  // cover.
  Dims size_in_blocks() const {
    return {size.g, round_up(size.x, block.rows), round_up(size.y, block.cols), size.z};
  }
};

// Throws Error{InvalidArgument}, which names the field, its value and the legal range, if a field
// is out of range: sizes and block sides must be in 1 .. kLargestSize, the density in [0, 1], and
// partials must be float unless the data type is half and the block is larger than 1 x 1.
void check_problem(const Problem& problem);

// Returns the passes of a problem, in the order in which they run.
std::vector<Pass> passes_of(const Problem& problem);

// Returns the problem as one line of text, for example
// "g1 x1024 y1024 z64, block 1x1, density 0.1, half to float, fwd + grad_a".
std::string to_string(const Problem& problem);

}  // namespace tessera
