#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/internal/pass_clock.hpp"
#include "tessera/host/internal/pass_control.hpp"
#include "tessera/host/internal/place_gradient.hpp"
#include "tessera/host/pass_options.hpp"
#include "tessera/host/times.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::host::internal {

// Computes dR = dQ * transpose(S) where R has non-zeros, on this computer. Reads the positions of
// the matrix as they are, so nothing is encoded and a change of the pattern needs no call. A step
// copies one panel of z and adds its products to the gradients of all places; a batch of 0 has
// none. A unit of work is some block rows. Several panels that are added to the caller's gradients
// take memory for as many numbers again. T is float, Half or BFloat16; sums are float.
template <class T>
class HostGradient {
 public:
  HostGradient(std::int64_t z, const host::HostCpu& cpu, Executor& executor)
      : z_(z), cpu_(cpu), executor_(&executor) {}

  // Writes `gradients` [blocks][area] in the order of the pattern's values, for operands of any
  // number of columns, or adds to them, with the bits of a loop that adds this pass's gradients.
  // The values of the pattern are not read. Adds its times to `times`. Returns false if the caller
  // stopped the pass. Allocates if no call for the pattern had as many columns and the same
  // options.
  [[nodiscard]] bool gradient(const sparse::Csr<float>& pattern, const DotOperands<T>& batch,
                              std::span<float> gradients, Accumulate accumulate,
                              PassControl& control, HostTimes& times);

 private:
  struct Thread {
    double kernel_seconds = 0;
  };
  void cut_units(const sparse::Csr<float>& pattern, std::int64_t rows);
  // Sets the sums of all places or, with `adds`, increases them, panel after panel.
  [[nodiscard]] bool run_panels(const sparse::Csr<float>& pattern, std::span<float> sums, bool adds,
                                PassControl& control, HostTimes& times);
  void run_units(const sparse::Csr<float>& pattern, std::int64_t panel, std::span<float> sums,
                 bool adds);

  std::int64_t z_;
  host::HostCpu cpu_;
  Executor* executor_;
  PassClock clock_{0};  // of this call
  PlaceGradient<T, std::int32_t> places_{PlaceGradient<T, std::int32_t>::Kept::One};
  std::vector<Range> units_;  // block rows, those with most blocks first
  std::vector<Thread> threads_;
  AlignedVector<float> sums_;  // of several panels that are to be added
};

}  // namespace tessera::host::internal
