#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/internal/matrix.hpp"
#include "tessera/host/internal/panels.hpp"
#include "tessera/host/internal/pass_control.hpp"
#include "tessera/host/pass_options.hpp"
#include "tessera/host/times.hpp"

namespace tessera::host::internal {

// Computes dR = dQ * transpose(S) where R has non-zeros, on this computer. A unit of work is a
// block row of cells; it adds its gradients up panel after panel of z, in place if the unit holds
// its blocks in the pattern's order, else in a per-thread scratch buffer that is copied when it is
// complete. The steps of the pass are the copies of the operands and the products. T is float, Half
// or BFloat16; sums are float.
template <class T>
class HostGradient {
 public:
  HostGradient(std::int64_t z, const host::HostCpu& cpu, Executor& executor)
      : z_(z), cpu_(cpu), executor_(&executor) {}

  void set_pattern(const sparse::Csr<float>& matrix);

  // Returns the prepared change to a pattern of so many blocks, or nothing if it needs other cells.
  std::optional<partitioner::CellEdits> prepare(std::span<const partitioner::BlockEdit> edits,
                                                std::vector<std::int32_t> shift,
                                                std::int64_t blocks);

  // Makes that change. Allocates nothing.
  void apply(partitioner::CellEdits& edits) noexcept;

  // Writes `gradients` [blocks][area] in the order of the pattern's values, for operands of any
  // number of columns, or adds to them, with the bits of a loop that adds this pass's gradients.
  // Adds its times to `times`. Returns false if the caller stopped the pass. Allocates if no call
  // since the last change of pattern had as many columns and the same options.
  [[nodiscard]] bool gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                              std::span<float> gradients, Accumulate accumulate,
                              PassControl& control, HostTimes& times);

  std::int64_t bytes() const {  // without scratch
    return matrix_.bytes() + list_bytes(runs_) + list_bytes(runs_begin_);
  }

 private:
  // Blocks of a unit that are consecutive in its buckets as well as in the pattern.
  struct Run {
    std::int32_t slot, source, blocks;
  };
  struct Scratch {              // of one thread
    AlignedVector<float> sums;  // of one unit
    double kernel_seconds = 0;
  };
  void find_runs();
  std::span<const Run> runs(std::int64_t x) const;
  void run_units(std::span<float> gradients);
  bool is_in_place(std::int64_t x) const;
  void grow_scratch();
  void run_unit(std::int64_t x, std::span<float> gradients, Scratch& scratch);
  void add_cells(std::int64_t x, float* sums, bool replaces);

  std::int64_t z_;
  host::HostCpu cpu_;
  Executor* executor_;
  HostProblem problem_;
  HostCells cells_;
  Accumulate accumulate_ = Accumulate::No;  // of this call
  HostMatrix matrix_;
  codelets::Kernel kernel_ = nullptr;
  HostPanels<T> q_grad_{HostPanels<T>::Kept::All}, s_{HostPanels<T>::Kept::All};
  std::vector<Run> runs_;                // unit after unit
  std::vector<std::size_t> runs_begin_;  // of each unit, and the end
  std::vector<Scratch> scratch_;
};

}  // namespace tessera::host::internal
