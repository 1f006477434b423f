#pragma once

#include "tessera/base/data_type.hpp"
#include "tessera/codelets/kernel.hpp"

namespace tessera::codelets {

// The arguments of multiply_dense(). `z` of an operand is the number of its columns.
//   left   [rows][inner], input type
//   right  [inner][columns], input type
//   out    [rows][columns], sum type, overwritten
struct DenseArgs {
  Operand left, right;
  Result out;
};

// Sets out = left * right with a dense left operand. A sum is added up along the inner dimension
// in ascending order and has the bits of block Fwd with blocks of 16 x 16 that are all stored.
// Sums are float, or half for halves. Never allocates, throws or prints; thread-safe.
void multiply_dense(const DenseArgs& args, DataType in, DataType sum) noexcept;

}  // namespace tessera::codelets
