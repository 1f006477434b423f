#include "tessera/host/internal/row_product.hpp"

#include <array>

#include "tessera/host/internal/share_work.hpp"
#include "tessera/host/internal/strided.hpp"

namespace tessera::host::internal {

void RowProduct::add_rows(Range rows, const float* in, MatrixView<float> out,
                          const Epilogue<float>& after) const {
  std::array<float, kProductRows> own;
  const bool in_place = out.row_stride == 1 && after.beta == 0;
  float* const sums = in_place ? out.row(rows.begin) : own.data();
  const CompressedRows<float, std::int32_t, std::int64_t> matrix{
      matrix_.rows, matrix_.cols, {1, 1}, matrix_.row_begin, matrix_.col, matrix_.values};
  column_sums(matrix, rows, in, sums);
  if (!after.empty()) after.apply(sums, 1, rows, {0, 1});
  if (!in_place) copy_from_rows<float>(sums, 1, out.sub(rows, {0, 1}));
}

bool RowProduct::product(MatrixView<const float> in, MatrixView<float> out,
                         const Epilogue<float>& after, PassControl& control, HostTimes& times,
                         ProductScratch<float>& scratch, Executor& executor) const {
  if (!control.begin("panel of columns")) return false;
  scratch.clock = PassClock(std::ssize(matrix_.values));
  scratch.in.set_rows(in.rows);
  scratch.in.begin(in, {1, 1, in.row_stride != 1});
  {
    const PassClock::Part copies(scratch.clock, times.copy_seconds);
    scratch.in.read({0, 1}, executor);
  }
  const auto* const operand = static_cast<const float*>(scratch.in.panel(0, {0, in.rows}).data);
  scratch.threads.resize(std::size_t(executor.threads()));
  for (auto& thread : scratch.threads) thread.kernel_seconds = 0;
  SharedParts parts(out.rows, kProductRows);
  share_units(executor, std::ssize(matrix_.values), [&](std::int64_t thread) {
    const PassClock::Part kernels(scratch.clock,
                                  scratch.threads[std::size_t(thread)].kernel_seconds);
    while (const auto rows = parts.next()) add_rows(*rows, operand, out, after);
  });
  scratch.clock.add_to(times, scratch.threads);
  return true;
}

}  // namespace tessera::host::internal
