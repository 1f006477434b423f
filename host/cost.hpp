#pragma once

#include <string>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/rates.hpp"

namespace tessera::host {

// The predicted time of a pass on this computer, in seconds. README.md has the formulas.
struct HostForecast {
  double copy_seconds = 0;    // operands into panels, or into float
  double kernel_seconds = 0;  // arithmetic at the kernel's rate
  double stream_seconds = 0;  // reading weights that no cache holds, during the arithmetic
  double result_seconds = 0;  // clearing and writing results

  // Returns copy + result + the longer one of kernel and stream.
  double seconds() const;

  friend HostForecast operator*(double times, const HostForecast& f) {
    return {times * f.copy_seconds, times * f.kernel_seconds, times * f.stream_seconds,
            times * f.result_seconds};
  }
};

// The inputs of a forecast besides the pass and the problem.
struct HostSetting {
  host::HostCpu cpu;
  int threads = 1;
  const HostRates& rates;
};

// Returns the cut of a pass on so many threads: product_cells of the layer, for GradA of the
// transposed layer, and gradient_cells for GradW.
HostCells cells_of(Pass pass, const HostProblem& problem, const host::HostCpu& cpu, int threads);

// Predicts one pass over one group. `problem` is the layer's, for GradA too. O(rates).
HostForecast forecast_sparse(Pass pass, const HostProblem& problem, const HostSetting& setting);

// Predicts the same pass for R stored with its zeros.
HostForecast forecast_dense(Pass pass, const HostProblem& problem, const HostSetting& setting);

// The most planned columns with which Fwd may read packed rows (codelets/packed_rows.hpp): more
// columns are faster with cells, whose kernels multiply a value with sixteen columns at once.
inline constexpr std::int64_t kMostPackedBatch = 16;

// Returns true for elements in Half or BFloat16 and a batch of 1 .. kMostPackedBatch columns.
bool can_be_packed(const HostProblem& problem);

// Returns true if Fwd of a layer reads packed rows: for such a problem without GradW, as values
// that change after every pass would be needed in each form, with weights that the second-level
// caches of all cores do not hold, where the forecast is faster than with cells.
bool packs_forward(const HostProblem& problem, bool has_grad_w, const HostSetting& setting);

// Predicts Fwd of such a problem with packed rows. The rates of the kernels are shares of the float
// peak.
HostForecast forecast_packed(const HostProblem& problem, const HostSetting& setting);

}  // namespace tessera::host
