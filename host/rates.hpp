#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/host/cpu.hpp"

namespace tessera::host {

// Version of the figures below. It is raised when kernels change so much that old ones mislead.
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

// The rates of a computer in the operations that a layer consists of, for one thread. A plain
// value.
struct HostRates {
  std::string cpu_model;     // the processor they were measured on
  std::string dense_kernel;  // dense_kernel_name() of the build that measured them
  double peak_flops = 0;     // float, fused multiply-add
  double l1_bytes_per_second = 0, l2_bytes_per_second = 0, memory_bytes_per_second = 0;  // read
  double copy_seconds = 0;  // for each element of an operand that is copied into panels
  double float_result_seconds = 0, half_result_seconds = 0;  // for each element: clear, write
  std::vector<KernelRate> kernels;
  std::vector<DenseRate> dense;

  friend bool operator==(const HostRates&, const HostRates&) = default;

  // Interpolates between the logarithms of the measured rates and takes the nearest one outside
  // their range. A block counts as the largest measured square inside it, or as the
  // smallest measured one if only 1 x 1 is smaller; bfloat16 counts as half.
  double kernel_flops(const KernelRate& of) const;
  double dense_flops(const DenseRate& of) const;
};

// Returns "oneDNN", or "blocks of 16" where no library was built in.
std::string dense_kernel_name();

// Returns the rates of the computer that they name: good enough to choose by, not to forecast with.
const HostRates& default_host_rates();

// Returns rates as JSON with a version. The text depends on the rates only.
std::string to_json(const HostRates& rates);

// Reads such a text. Throws Error{BadInput} with `where` if it is damaged or of another version.
HostRates host_rates_from_json(std::string_view text, std::string_view where);

// Measures this computer. Runs small layers on one thread for two or three seconds, and up to five
// on a busy computer.
HostRates measure_host_rates();

// The best figure of each rate in some rounds, and why they have not settled: it names a rate whose
// two best figures differ by more than 20 %. The reason is empty if there is none.
struct RoundsOfRates {
  HostRates rates;
  std::string unsettled;
};

// Measures this computer 2 to `most` times, until the rates have settled.
RoundsOfRates measure_rounds(const std::function<HostRates()>& measure, int most);

// Returns the rates of such rounds. Throws Error{CheckFailed}, which names the rate, if one does
// not settle: other programs use the computer.
HostRates measure_settled_rates(const std::function<HostRates()>& measure = measure_host_rates,
                                int most = 6);

// The origin of rates.
enum class RatesOrigin {
  Default,  // measured on the computer they name, not on this one
  File,     // measured on this computer before
  Measured  // measured on this computer just now
};

// Returns "default", "file" or "measured".
std::string to_string(RatesOrigin origin);

// Rates, and a note about them for the user.
struct FoundRates {
  HostRates rates;
  std::string note;
  RatesOrigin origin = RatesOrigin::Default;
};

// Reads rates from a file. Without the file it returns the default rates if those are of this
// processor, or if there is no path to keep others at. Else, and if the file is damaged or of
// another processor, version or dense kernel, it measures new rates in two or three rounds and
// replaces the file. A file that cannot be written is left, and so is the file if the rates do not
// settle: the caller then has the best of them, the note says so, and this process keeps them for
// its next calls until there is a file. The note tells the user why the rates are not those of the
// file; it is empty if they are. `model` is the processor's name.
FoundRates find_host_rates(const std::string& path,
                           const std::function<HostRates()>& measure = measure_host_rates,
                           const std::string& model = host_cpu_model());

}  // namespace tessera::host
