#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/device/host_cpu.hpp"
#include "tessera/runtime/host_times.hpp"
#include "tessera/runtime/internal/host_matrix.hpp"
#include "tessera/runtime/internal/host_panels.hpp"

namespace tessera::inline v0::runtime::internal {

// dR = dQ * transpose(S) where R has non-zeros, on this computer. A unit of work is a block row of
// cells; it adds its gradients up panel after panel of z. T is float, Half or BFloat16; sums are
// float.
template <class T>
class HostGradient {
 public:
  HostGradient(std::int64_t z, const device::HostCpu& cpu, Executor& executor)
      : z_(z), cpu_(cpu), executor_(&executor) {}

  void set_pattern(const sparse::Csr<float>& matrix);
  // gradients: [blocks][area] in the order of the pattern's values. Allocates the first time after
  // a change of pattern.
  HostTimes run(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients);

 private:
  void run_unit(std::int64_t x);
  void write_unit(std::int64_t x, std::span<float> gradients) const;

  std::int64_t z_;
  device::HostCpu cpu_;
  Executor* executor_;
  HostCells cells_;
  HostMatrix matrix_;
  codelets::Kernel kernel_ = nullptr;
  HostPanels<T> q_grad_{0, 1, 1, HostPanels<T>::Kept::All}, s_{0, 1, 1, HostPanels<T>::Kept::All};
  AlignedVector<float> sums_;           // [buckets][values_per_bucket]
  std::vector<double> kernel_seconds_;  // of each thread
};

}  // namespace tessera::inline v0::runtime::internal
