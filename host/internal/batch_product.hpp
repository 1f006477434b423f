#pragma once

#include <cstdint>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/internal/epilogue.hpp"
#include "tessera/host/internal/matrix.hpp"
#include "tessera/host/internal/pass_control.hpp"
#include "tessera/host/internal/product.hpp"
#include "tessera/host/times.hpp"

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
  [[nodiscard]] bool product(MatrixView<const float> in, MatrixView<float> out,
                             const Epilogue<float>& after, PassControl& control, HostTimes& times,
                             ProductScratch<float>& scratch, Executor& executor) const;

 private:
  void run_unit(std::int64_t x, MatrixView<const float> in, MatrixView<float> out,
                const Epilogue<float>& after, const PassClock& clock,
                ProductScratch<float>::Thread& own_scratch) const;
  void add_cells(std::int64_t x, MatrixView<const float> in, float* out, std::int64_t stride) const;
};

}  // namespace tessera::host::internal
