#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/internal/matrix.hpp"
#include "tessera/host/internal/panels.hpp"
#include "tessera/host/times.hpp"

namespace tessera::host::internal {

// dR = dQ * transpose(S) where R has non-zeros, on this computer. A unit of work is a block row of
// cells; it adds its gradients up panel after panel of z: where they belong if the unit holds its
// blocks in their order, else in a room of its thread, which is copied when it is complete. T is
// float, Half or BFloat16; sums are float.
template <class T>
class HostGradient {
 public:
  HostGradient(std::int64_t z, const host::HostCpu& cpu, Executor& executor)
      : z_(z), cpu_(cpu), executor_(&executor) {}

  void set_pattern(const sparse::Csr<float>& matrix);
  // gradients: [blocks][area] in the order of the pattern's values. Allocates the first time after
  // a change of pattern.
  HostTimes run(MatrixView<const T> q_grad, MatrixView<const T> s, std::span<float> gradients);

 private:
  // Blocks of a unit that follow each other in its buckets as well as in the pattern.
  struct Run {
    std::int32_t slot, source, blocks;
  };
  struct Room {                 // of one thread
    AlignedVector<float> sums;  // of one unit
    double kernel_seconds = 0;
  };
  void find_runs();
  std::span<const Run> runs(std::int64_t x) const;
  void run_unit(std::int64_t x, std::span<float> gradients, Room& room);
  void add_cells(std::int64_t x, float* sums);

  std::int64_t z_;
  host::HostCpu cpu_;
  Executor* executor_;
  HostCells cells_;
  HostMatrix matrix_;
  codelets::Kernel kernel_ = nullptr;
  HostPanels<T> q_grad_{HostPanels<T>::Kept::All}, s_{HostPanels<T>::Kept::All};
  std::vector<Run> runs_;                // unit after unit
  std::vector<std::size_t> runs_begin_;  // of each unit, and the end
  std::vector<Room> rooms_;
};

}  // namespace tessera::host::internal
