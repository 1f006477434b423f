#include "tessera/host/cost.hpp"

#include <algorithm>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/host/internal/row_product.hpp"

namespace tessera::host {
namespace {

// The words of meta-information of a block take about half the bytes of a float.
constexpr double kWordBytes = 2;

HostProblem transposed(HostProblem p) {
  std::swap(p.size.x, p.size.y);
  std::swap(p.block.rows, p.block.cols);
  p.blocks_in_row.reset();
  return p;
}

double values_of(const HostProblem& p) { return double(p.blocks) * double(p.block.area()); }

double result_seconds(const HostProblem& p, const HostRates& rates) {
  return p.type == DataType::Half ? rates.half_result_seconds : rates.float_result_seconds;
}

// Weights that no cache keeps from one panel to the next are read from memory for each panel.
double stream_seconds(double bytes, std::int64_t panels, const HostSetting& setting) {
  if (bytes < double(setting.cpu.l3.value)) return 0;
  return bytes * double(panels) / setting.rates.memory_bytes_per_second;
}

// True: rows of blocks are read once, and nothing else takes time (RowProduct).
bool reads_rows_of_blocks(const HostProblem& p) {
  return p.size.z == 1 && p.type == DataType::Float && !p.block.is_element() &&
         internal::RowProduct::takes(p.block);
}

HostForecast over_threads(HostForecast f, const HostSetting& setting) {
  const double threads = double(
      std::clamp<std::int64_t>(setting.threads, 1, std::max<std::int64_t>(setting.cpu.cores, 1)));
  for (double* term : {&f.copy_seconds, &f.kernel_seconds, &f.stream_seconds, &f.result_seconds})
    *term /= threads;
  return f;
}

// The columns that are copied into panels and computed for those of a problem.
struct PanelColumns {
  bool copied = false;
  std::int64_t computed = 0;
};

PanelColumns panel_columns(const HostProblem& p, const HostCells& cells, const host::HostCpu& cpu) {
  const HostColumns columns = product_columns(cells, p, p.size.z, cpu);
  if (!columns.pack) return {false, p.size.z};
  const std::int64_t full = p.size.z / columns.width, last = p.size.z % columns.width;
  return {true, full * columns.computed(columns.width) + columns.computed(last)};
}

}  // namespace

double HostForecast::seconds() const {
  return copy_seconds + std::max(kernel_seconds, stream_seconds) + result_seconds;
}

HostCells cells_of(Pass pass, const HostProblem& p, const host::HostCpu& cpu, int threads) {
  if (pass == Pass::GradW) return gradient_cells(p, cpu);
  return product_cells(pass == Pass::GradA ? transposed(p) : p, cpu, threads);
}

HostForecast forecast_sparse(Pass pass, const HostProblem& given, const HostSetting& setting) {
  const HostProblem p = pass == Pass::GradA ? transposed(given) : given;
  const bool gradient = pass == Pass::GradW;
  const HostCells cells = cells_of(pass, given, setting.cpu, setting.threads);
  const double values = values_of(p), z = double(p.size.z), y = double(p.size.y);
  const double block_rows = std::max(double(p.size.x) / double(p.block.rows), 1.0);
  const bool wide = !gradient && widens(p, setting.cpu);
  const DataType read = wide ? DataType::Float : p.type;
  const KernelRate at{gradient ? Pass::GradW : Pass::Fwd, read,
                      std::min(p.block.rows, p.block.cols), cells.z,
                      double(p.blocks) / block_rows * std::min(double(cells.y) / y, 1.0)};
  HostForecast f;
  const PanelColumns panels =
      gradient ? PanelColumns{cells.pack, p.size.z} : panel_columns(p, cells, setting.cpu);
  if (panels.copied || wide) f.copy_seconds = y * z * setting.rates.copy_seconds;
  f.kernel_seconds = 2 * values * double(panels.computed) / setting.rates.kernel_flops(at);
  if (pass == Pass::Fwd && reads_rows_of_blocks(p))
    f.kernel_seconds = values * double(sizeof(float)) / setting.rates.l2_bytes_per_second;
  const double bytes = values * double(bytes_of(read)) + double(p.blocks) * kWordBytes;
  f.stream_seconds = stream_seconds(bytes, ceil_div(p.size.z, cells.z), setting);
  f.result_seconds = gradient ? values * setting.rates.float_result_seconds
                              : double(p.size.x) * z * result_seconds(p, setting.rates);
  return over_threads(f, setting);
}

HostForecast forecast_dense(Pass pass, const HostProblem& p, const HostSetting& setting) {
  const double elements = double(p.size.x) * double(p.size.y);
  HostForecast f;
  f.kernel_seconds =
      2 * elements * double(p.size.z) /
      setting.rates.dense_flops({pass == Pass::GradW ? pass : Pass::Fwd, p.type, p.size.z});
  f.stream_seconds = stream_seconds(elements * double(sizeof(float)), 1, setting);
  return over_threads(f, setting);
}

bool can_be_packed(const HostProblem& p) {
  return p.block.is_element() && p.type != DataType::Float && p.size.z >= 1 &&
         p.size.z <= kMostPackedBatch;
}

bool packs_forward(const HostProblem& p, bool has_grad_w, const HostSetting& setting) {
  constexpr std::int64_t kCellBytes = 4;  // of a value of 16 bits and its word
  const std::int64_t near = setting.cpu.l2.value * std::max<std::int64_t>(setting.cpu.cores, 1);
  // Expanding positions without the instructions of AVX-512 takes longer than reading floats.
  if (has_narrow_vectors(setting.cpu)) return false;
  return can_be_packed(p) && !has_grad_w && p.blocks * kCellBytes > near &&
         forecast_packed(p, setting).seconds() < forecast_sparse(Pass::Fwd, p, setting).seconds();
}

HostForecast forecast_packed(const HostProblem& p, const HostSetting& setting) {
  // The time of a place with Bits and of a value with Bytes, in operations that the float peak does
  // meanwhile: for decoding it, which is repeated for every four columns, and for each column
  // (measured on Sapphire Rapids).
  constexpr double kBits = 4, kBitsColumn = 2, kBytes = 10, kBytesColumn = 12;
  constexpr std::int64_t kPanel = 16;  // columns for which the weights are read once
  const double x = double(p.size.x), y = double(p.size.y), z = double(p.size.z);
  const bool bits =
      packed_positions(p.size.x, p.size.y, p.blocks) == codelets::PackedPositions::Bits;
  const double decodings = double(ceil_div(p.size.z, codelets::kMostPackedColumns));
  const double work = bits ? x * y * (kBits * decodings + kBitsColumn * z)
                           : double(p.blocks) * (kBytes * decodings + kBytesColumn * z);
  const double positions = bits ? x * y / 8 : double(p.blocks);
  HostForecast f;
  f.copy_seconds = y * z * setting.rates.copy_seconds;
  f.kernel_seconds = work / setting.rates.peak_flops;
  f.stream_seconds = stream_seconds(double(p.blocks) * double(bytes_of(p.type)) + positions,
                                    ceil_div(p.size.z, kPanel), setting);
  f.result_seconds = x * z * result_seconds(p, setting.rates);
  return over_threads(f, setting);
}

}  // namespace tessera::host
