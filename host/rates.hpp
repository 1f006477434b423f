#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/pass.hpp"

namespace tessera::host {

// Of the figures below; raised when kernels change so much that old ones mislead.
inline constexpr std::int64_t kHostRatesVersion = 1;

// Useful flops per second of one thread in a sparse kernel.
struct KernelRate {
  Pass pass = Pass::Fwd;  // Fwd or GradW; GradA is Fwd of the transpose
  DataType type = DataType::Float;
  std::int64_t block = 1;  // side
  std::int64_t z = 1;      // columns of a panel
  double row_blocks = 0;   // blocks stored in a cell's row of blocks
  double flops = 0;

  friend bool operator==(const KernelRate&, const KernelRate&) = default;
};

// Flops per second of one thread in a dense pass, zeros counted.
struct DenseRate {
  Pass pass = Pass::Fwd;
  DataType type = DataType::Float;
  std::int64_t z = 1;
  double flops = 0;

  friend bool operator==(const DenseRate&, const DenseRate&) = default;
};

// How fast a computer does what a layer is made of; all rates of one thread. A plain value.
struct HostRates {
  std::string cpu_model;     // they were measured on
  std::string dense_kernel;  // that was measured: dense_kernel_name()
  double peak_flops = 0;     // float, fused multiply-add
  double l1_bytes_per_second = 0, l2_bytes_per_second = 0, memory_bytes_per_second = 0;  // read
  double copy_seconds = 0;  // of an operand's element on its way into panels
  double float_result_seconds = 0, half_result_seconds = 0;  // of a result's element: clear, write
  std::vector<KernelRate> kernels;
  std::vector<DenseRate> dense;

  friend bool operator==(const HostRates&, const HostRates&) = default;

  // Interpolated between the logarithms of what was measured, the nearest beyond. A block that is
  // no square counts as the largest measured one inside it, bfloat16 as half.
  double kernel_flops(const KernelRate& of) const;
  double dense_flops(const DenseRate& of) const;
};

// "oneDNN", or "blocks of 16" where no library was built in.
std::string dense_kernel_name();

// Of the computer named in them: good enough to choose by, not to forecast with.
const HostRates& default_host_rates();

// As JSON with a version; deterministic. Error{BadInput} with `where` for a text that is damaged or
// of another version.
std::string to_json(const HostRates& rates);
HostRates host_rates_from_json(std::string_view text, std::string_view where);

// Runs small layers on one thread for two or three seconds, and up to five on a busy computer.
HostRates measure_host_rates();

// Where rates come from.
enum class RatesOrigin {
  Default,  // measured on the computer they name, not on this one
  File,     // measured on this computer before
  Measured  // measured on this computer just now
};
std::string to_string(RatesOrigin origin);  // "default", "file", "measured"

// Rates, and what is to be said about them.
struct FoundRates {
  HostRates rates;
  std::string note;
  RatesOrigin origin = RatesOrigin::Default;
};
// No file, or no path: the default, which the note says. A file that is damaged, or of another
// processor, version or dense kernel: measured anew and written over it, which the note says.
FoundRates find_host_rates(const std::string& path,
                           const std::function<HostRates()>& measure = measure_host_rates);

}  // namespace tessera::host
