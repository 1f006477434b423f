#pragma once

#include <cstdint>

#include "tessera/base/data_type.hpp"
#include "tessera/base/units.hpp"

namespace tessera::codelets {

// One dense kernel of one machine, in the terms of its cycle formula. The kernel multiplies a
// field of rows with a matrix of weights that the multiply-accumulate units hold.
struct DenseKernel {
  DataType data_type = DataType::Half;
  DataType partials_type = DataType::Half;
  std::int64_t workers = 6;     // of a tile
  std::int64_t units = 16;      // columns of weights that are held at a time
  std::int64_t load_bytes = 8;  // of weights that are loaded per cycle

  friend bool operator==(const DenseKernel&, const DenseKernel&) = default;

  // Returns the length of a column of weights in a unit: 16 halves or bfloat16s, 8 floats.
  std::int64_t depth() const { return kUnitBytes / bytes_of(data_type); }

  static constexpr std::int64_t kUnitBytes = 32;  // of weights in one unit
};

// The work of one tile: [field][inner] times weights [inner][columns].
struct DenseWork {
  std::int64_t field = 0, inner = 0, columns = 0;
};

// Returns the cycles of the kernel on one tile, the clearing of the sums included. Every group of
// `units` columns and depth() terms is loaded once; then the workers share the field. Zero if
// there is no work. Pure and O(1). The source is PopLibs' estimate of its 1x1 convolution vertex.
Cycles dense_cycles(const DenseKernel& kernel, const DenseWork& work);

// Returns the cycles of writing a slice of an operand again in the order of the kernel: a copy
// with the data path, or a transposition in squares of depth(). `lines` and `across` are elements.
Cycles dense_reorder_cycles(const DenseKernel& kernel, std::int64_t lines, std::int64_t across,
                            bool transposed);

}  // namespace tessera::codelets
