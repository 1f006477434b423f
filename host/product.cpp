#include "tessera/host/internal/product.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/host/internal/batch_product.hpp"
#include "tessera/host/internal/share_work.hpp"
#include "tessera/host/internal/strided.hpp"
#include "tessera/partitioner/update.hpp"

namespace tessera::host::internal {
namespace {

// Writes the transpose of a block of values, rounded to T.
template <class T>
void transpose_values(const float* from, BlockShape block, T* to) {
  if constexpr (std::is_same_v<T, float>) {
    codelets::transpose(from, block.cols, block.rows, block.cols, to, block.rows);
  } else {
    // Rounded by vectors, as many rows at a time as have so many values, or a part of one.
    constexpr std::int64_t kMostValues = 1024;
    std::array<T, kMostValues> rounded;
    const std::int64_t cols = std::min(block.cols, kMostValues), rows = kMostValues / cols;
    for (std::int64_t r = 0; r < block.rows; r += rows)
      for (std::int64_t c = 0; c < block.cols; c += cols) {
        const std::int64_t height = std::min(rows, block.rows - r);
        const std::int64_t width = std::min(cols, block.cols - c);
        codelets::cast_floats(from + r * block.cols + c, height * width, rounded.data());
        codelets::transpose(rounded.data(), width, height, width, to + c * block.rows + r,
                            block.rows);
      }
  }
}

// Sets runs of rows to 0. Rows that follow one another in memory are cleared at once, which writes
// them without reading them first.
void clear_rows(std::span<const Range> runs, const codelets::Result& result) {
  auto* const data = static_cast<float*>(result.data);
  const auto width = std::size_t(result.z) * sizeof(float);
  const bool is_whole = result.row_stride == result.z;
  for (const Range rows : runs) {
    if (is_whole)
      std::memset(data + rows.begin * result.row_stride, 0, std::size_t(rows.size()) * width);
    else
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        std::memset(data + r * result.row_stride, 0, width);
  }
}

}  // namespace

template <class T>
void HostProduct<T>::set_pattern(const sparse::Csr<float>& matrix) {
  problem_ = {{1, matrix.rows, matrix.cols, z_},
              matrix.block,
              matrix.blocks(),
              data_type_of<T>(),
              blocks_in_row_};
  cells_ = product_cells(problem_, cpu_, executor_->threads());
  is_transposed_ = false;
  const bool wide = widens(problem_, cpu_);
  const DataType read = wide ? DataType::Float : data_type_of<T>();
  matrix_.set(matrix, cells_, read, *executor_);
  const auto format =
      matrix.block.is_element() ? codelets::Format::Element : codelets::Format::Block;
  const auto kernel_for = [&](DataType type) {
    return codelets::find_kernel(
               {codelets::Operation::Fwd, format, type, DataType::Float, matrix_.grid().word_bits})
        .run;
  };
  kernel_ = kernel_for(read);
  // The words of elements hold bytes of the operand, so they fit one type only.
  narrow_kernel_ = wide && !matrix.block.is_element() ? kernel_for(data_type_of<T>()) : nullptr;
  values_.resize(std::size_t(matrix_.grid().buckets() * matrix_.buckets().values_per_bucket()));
  wide_values_.resize(wide ? values_.size() : 0);
  scratch_.threads.resize(std::size_t(executor_->threads()));
}

template <class T>
void HostProduct<T>::set_pattern(const TransposedPattern& transpose) {
  set_pattern(transpose.matrix);
  matrix_.rename_source(transpose.block_of);
  is_transposed_ = !transpose.matrix.block.is_element();
}

template <class T>
std::optional<partitioner::CellEdits> HostProduct<T>::prepare(
    std::span<const partitioner::BlockEdit> edits, std::vector<std::int32_t> shift,
    partitioner::Numbering numbering, std::int64_t blocks) {
  HostProblem changed = problem_;
  changed.blocks = blocks;
  HostCells cells = product_cells(changed, cpu_, executor_->threads());
  cells.x = cells_.x;  // decides on the room alone, which the edits check
  if (cells != cells_ || widens(changed, cpu_) != is_wide()) return std::nullopt;
  return matrix_.prepare(edits, std::move(shift), numbering, sizeof(T), *executor_);
}

template <class T>
void HostProduct<T>::fill_bucket(std::int64_t bucket, std::span<const float> values) {
  const partitioner::Buckets& buckets = matrix_.buckets();
  if (!is_transposed_) {
    partitioner::refill_changed<T, float>(buckets, values, values_, {&bucket, 1});
    return widen_bucket(bucket);
  }
  const BlockShape block = buckets.grid.block;
  const std::int32_t* source = buckets.source.data() + bucket * buckets.grid.blocks;
  T* to = values_.data() + bucket * buckets.values_per_bucket();
  for (std::int64_t i = 0; i < buckets.grid.blocks && source[i] >= 0; ++i, to += block.area())
    transpose_values(values.data() + source[i] * block.area(), block.transposed(), to);
  widen_bucket(bucket);
}

template <class T>
void HostProduct<T>::widen_bucket(std::int64_t bucket) noexcept {
  if constexpr (!std::is_same_v<T, float>) {
    const std::int64_t count = matrix_.buckets().values_per_bucket();
    if (is_wide())
      codelets::widen(values_.data() + bucket * count, count, wide_values_.data() + bucket * count);
  }
}

template <class T>
const void* HostProduct<T>::values_of(std::int64_t bucket, bool wide) const {
  const std::int64_t first = bucket * matrix_.buckets().values_per_bucket();
  if (wide) return wide_values_.data() + first;
  return values_.data() + first;
}

template <class T>
void HostProduct<T>::set_values(std::span<const float> values) {
  if (!is_transposed_ && !is_wide())
    return partitioner::refill<T, float>(matrix_.buckets(), values, values_, *executor_);
  executor_->for_each(matrix_.grid().buckets(),
                      [&](std::int64_t bucket) { fill_bucket(bucket, values); });
}

template <class T>
void HostProduct<T>::set_values_of_row(std::int64_t x, std::span<const float> values) {
  for (std::int64_t y = 0; y < cell_columns(); ++y)
    fill_bucket(matrix_.grid().bucket_index(x, y, 0), values);
}

template <class T>
void HostProduct<T>::set_values_of_column(std::int64_t y, std::span<const float> values) {
  for (std::int64_t x = 0; x < cell_rows(); ++x)
    fill_bucket(matrix_.grid().bucket_index(x, y, 0), values);
}

template <class T>
template <class Panels>
void HostProduct<T>::add_cells(std::int64_t x, std::int64_t panel, const Panels& in,
                               codelets::Result result, bool streams) const {
  constexpr bool kWide = std::is_same_v<Panels, HostPanels<float, T>> && !std::is_same_v<T, float>;
  const codelets::Kernel kernel = kWide || !is_wide() ? kernel_ : narrow_kernel_;
  const partitioner::Buckets& buckets = matrix_.buckets();
  const std::int64_t y_parts = matrix_.grid().splits.y;
  // The slice of the next cell, which this or the next unit reads.
  const auto next = [&](std::int64_t y) {
    return y_parts == 1 ? codelets::Operand()
                        : in.panel(panel, matrix_.y_range(y + 1 == y_parts ? 0 : y + 1));
  };
  for (std::int64_t y = 0; y < y_parts; ++y) {
    const std::int64_t bucket = matrix_.grid().bucket_index(x, y, 0);
    if (matrix_.is_empty(bucket)) continue;
    kernel({.meta = buckets.meta_words(bucket),
            .values = values_of(bucket, kWide),
            .gradients = nullptr,
            .sub_group = codelets::sub_group_id(x, y, y_parts),
            .block = matrix_.grid().block,
            .in = in.panel(panel, matrix_.y_range(y)),
            .in_s = next(y),
            .out = result,
            .replaces = y == 0,
            .streams = streams,
            .pairs = kWide && std::is_same_v<T, BFloat16>});
  }
}

template <class T>
template <class Panels>
void HostProduct<T>::run_unit(const Panels& panels, std::int64_t x, std::int64_t panel,
                              const ProductCall<T>& call, std::int64_t thread) const {
  const Epilogue<T>& after = call.after;
  ProductScratch<T>& scratch = call.scratch;
  typename ProductScratch<T>::Thread& own_scratch = scratch.threads[std::size_t(thread)];
  const Range rows = matrix_.x_range(x), cols = panels.columns(panel);
  const std::int64_t computed = panels.computed(panel), stride = scratch.sums_stride();
  const Range own{std::min(rows.begin, call.out.rows), std::min(rows.end, call.out.rows)};
  const MatrixView<T> part = call.out.sub(own, cols);
  codelets::Result result{own_scratch.sums.data(), rows.size(), computed, stride};
  bool in_place = false;
  if constexpr (std::is_same_v<T, float>) {
    in_place = !cells_.gather && after.beta == 0 && part.rows_are_contiguous() && own == rows &&
               computed == cols.size();
    if (in_place) result = {part.data, rows.size(), cols.size(), part.row_stride};
  }
  clear_rows(matrix_.unnamed_rows(x), result);
  {
    const PassClock::Part kernels(scratch.clock, own_scratch.kernel_seconds);
    add_cells(x, panel, panels, result, in_place && scratch.streams);
  }
  if (!after.empty()) after.apply(static_cast<float*>(result.data), result.row_stride, own, cols);
  if (!in_place) copy_from_rows<T>(own_scratch.sums.data(), stride, part);
}

template <class T>
template <class Panels>
void HostProduct<T>::run_units(const Panels& panels, std::int64_t panel,
                               const ProductCall<T>& call) const {
  const auto& order = matrix_.heaviest_first();
  SharedParts units(std::ssize(order));
  const std::int64_t values = problem_.blocks * problem_.block.area();
  const std::int64_t sums = values * panels.columns(panel).size();
  share_units(call.executor, sums, [&](std::int64_t thread) {
    while (const auto unit = units.next())
      run_unit(panels, order[std::size_t(unit->begin)], panel, call, thread);
  });
}

template <class T>
template <class Panels>
bool HostProduct<T>::run_panels(Panels& panels, const ProductCall<T>& call) const {
  panels.set_rows(problem_.size.y);
  panels.begin(call.in, call.scratch.columns);
  for (std::int64_t panel = 0; panel < panels.count(); ++panel) {
    if (!call.control.begin("panel of columns")) return false;
    {
      const PassClock::Part copies(call.scratch.clock, call.times.copy_seconds);
      panels.read({panel, panel + 1}, call.executor);
    }
    run_units(panels, panel, call);
  }
  return true;
}

// Sums that are complete at once, in rows that are pages apart, are not read first if they are
// written past the caches, where operand and result do not fit in them. Zen 5, density 1/64, z
// 4096, 4096 x 1024 0.89 and 1024 x
// 1024 0.87 of the time.
template <class T>
bool HostProduct<T>::streams_results(MatrixView<const T> in, MatrixView<T> out) const {
  constexpr std::int64_t kPage = 4096 / sizeof(float), kLine = 64 / sizeof(float);  // elements
  const std::int64_t bytes = (in.rows + out.rows) * out.cols * std::int64_t{sizeof(T)};
  return problem_.block.is_element() && matrix_.grid().splits.y == 1 && out.row_stride >= kPage &&
         rows_are_aligned(out, kLine) && bytes >= std::max(cpu_.l2.value, cpu_.l3.value);
}

template <class T>
bool HostProduct<T>::product(const ProductCall<T>& call) const {
  if constexpr (std::is_same_v<T, float>) {
    const BatchProduct batch{matrix_, values_, problem_, cpu_};
    if (batch.takes(call.in)) return batch.product(call);
  }
  ProductScratch<T>& scratch = call.scratch;
  scratch.columns = operand_columns(cells_, problem_, call.in, cpu_);
  scratch.streams = streams_results(call.in, call.out);
  scratch.begin(problem_.blocks * problem_.block.area() * call.in.cols, call.executor.threads(),
                matrix_.x_range(0).size() * scratch.sums_stride());
  const bool wide = is_wide() && (narrow_kernel_ == nullptr || call.in.cols <= kMostWideColumns);
  const bool runs = wide ? run_panels(scratch.wide_in, call) : run_panels(scratch.in, call);
  scratch.clock.add_to(call.times, scratch.threads);
  return runs;
}

template class HostProduct<float>;
template class HostProduct<Half>;
template class HostProduct<BFloat16>;

}  // namespace tessera::host::internal
