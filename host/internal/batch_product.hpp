#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/matrix.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/internal/matrix.hpp"
#include "tessera/host/internal/product_call.hpp"

namespace tessera::host::internal {

// A product of encoded blocks of 16 x 16 floats with samples that are read as they are stored: with
// the batch first nothing is transposed but the values. Results have the bits of HostProduct on
// other operands, whose units of work and scratch memory are used.
struct BatchProduct {
  const HostMatrix& matrix;
  std::span<const float> values;  // [buckets][values_per_bucket]
  const HostProblem& problem;
  const host::HostCpu& cpu;

  // Returns true if this product can be computed for such an operand, and faster than others.
  bool takes(MatrixView<const float> in) const;

  // Does what HostProduct::product does. Thread-safe if scratch memory and executor differ.
  [[nodiscard]] bool product(const ProductCall<float>& call) const;

 private:
  void run_unit(std::int64_t x, const ProductCall<float>& call, std::int64_t thread) const;
  void add_cells(std::int64_t x, MatrixView<const float> in, float* out, std::int64_t stride) const;
};

}  // namespace tessera::host::internal
