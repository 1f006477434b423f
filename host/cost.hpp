#pragma once

#include <string>
#include <vector>

#include "tessera/base/problem.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/rates.hpp"

namespace tessera::host {

// Where a pass on this computer goes, as the rates say. Formulas stand in runtime/README.md.
struct HostForecast {
  double copy_seconds = 0;    // operands into panels, or into float
  double kernel_seconds = 0;  // arithmetic at the kernel's rate,
  double stream_seconds = 0;  // or reading weights that no cache holds, whichever takes longer
  double result_seconds = 0;  // clearing and writing results

  double seconds() const;
  friend HostForecast operator*(double times, const HostForecast& f) {
    return {times * f.copy_seconds, times * f.kernel_seconds, times * f.stream_seconds,
            times * f.result_seconds};
  }
};

// What a forecast depends on besides the pass and the problem.
struct HostSetting {
  host::HostCpu cpu;
  int threads = 1;
  const HostRates& rates;
};

// How a pass is cut: product_cells of the layer or, for GradA, of the layer turned over;
// gradient_cells for GradW.
HostCells cells_of(Pass pass, const HostProblem& problem, const host::HostCpu& cpu);

// One pass over one group. `problem` is the layer's: GradA turns it over itself. O(rates).
HostForecast forecast_sparse(Pass pass, const HostProblem& problem, const HostSetting& setting);
// The same with R held with its zeros.
HostForecast forecast_dense(Pass pass, const HostProblem& problem, const HostSetting& setting);

}  // namespace tessera::host
