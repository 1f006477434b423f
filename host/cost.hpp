#pragma once

#include <string>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/rates.hpp"

namespace tessera::host {

// The predicted time of a pass on this computer, by rates. README.md has the formulas.
struct HostForecast {
  double copy_seconds = 0;    // operands into panels, or into float
  double kernel_seconds = 0;  // arithmetic at the kernel's rate,
  double stream_seconds = 0;  // or reading weights that no cache holds, whichever takes longer
  double result_seconds = 0;  // clearing and writing results

  // The sum, with the longer one of kernel and stream.
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

// Returns the cut of a pass: product_cells of the layer, for GradA of the transposed layer, and
// gradient_cells for GradW.
HostCells cells_of(Pass pass, const HostProblem& problem, const host::HostCpu& cpu);

// Predicts one pass over one group. `problem` is the layer's, for GradA too. O(rates).
HostForecast forecast_sparse(Pass pass, const HostProblem& problem, const HostSetting& setting);

// The same for R stored with its zeros.
HostForecast forecast_dense(Pass pass, const HostProblem& problem, const HostSetting& setting);

}  // namespace tessera::host
