#include "tessera/host/internal/packed.hpp"

#include <algorithm>

#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cast.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/internal/share_work.hpp"
#include "tessera/host/internal/strided.hpp"

namespace tessera::host::internal {
namespace {

using codelets::kPackedChunk;
using codelets::kPackedPadding;
using codelets::kPackedSegment;
using codelets::PackedPositions;

// A unit's rows stay in the second-level cache while they are multiplied with the columns of a
// panel, a few at a time.
constexpr std::int64_t kUnitRows = 16, kPanelColumns = 16;

// Returns true if no element is infinite or NaN.
template <class T>
bool is_finite(std::span<const T> elements) {
  constexpr std::uint16_t kExponent = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;
  bool found = false;
  for (const T element : elements) found |= (element.bits & kExponent) == kExponent;
  return !found;
}

// Returns the values of the fullest row of a segment.
std::int64_t fullest_segment(const sparse::Csr<float>& m) {
  std::int64_t fullest = 0;
  for (std::int64_t r = 0; r < m.rows; ++r) {
    std::int64_t count = 0, segment = -1;
    for (auto i = m.row_begin[std::size_t(r)]; i < m.row_begin[std::size_t(r) + 1]; ++i) {
      const std::int64_t here = m.col[std::size_t(i)] / kPackedSegment;
      count = here == segment ? count + 1 : 1;
      segment = here;
      fullest = std::max(fullest, count);
    }
  }
  return fullest;
}

}  // namespace

template <class T>
void HostPacked<T>::set_masks(const sparse::Csr<float>& m) {
  const std::int64_t chunks = ceil_div(cols_, kPackedChunk);
  masks_.assign(std::size_t(rows_ * chunks), 0);
  executor_->for_each(rows_, [&](std::int64_t r) {
    for (auto i = row_begin_[std::size_t(r)]; i < row_begin_[std::size_t(r) + 1]; ++i) {
      const std::int64_t col = m.col[std::size_t(i)];
      masks_[std::size_t(r * chunks + col / kPackedChunk)] |= std::uint32_t{1}
                                                              << col % kPackedChunk;
    }
  });
}

template <class T>
void HostPacked<T>::set_offsets(const sparse::Csr<float>& m) {
  const std::int64_t segments = ceil_div(cols_, kPackedSegment);
  counts_.assign(std::size_t(rows_ * segments), 0);
  offsets_.assign(m.col.size() + std::size_t(kPackedPadding), 0);
  executor_->for_each(rows_, [&](std::int64_t r) {
    for (auto i = row_begin_[std::size_t(r)]; i < row_begin_[std::size_t(r) + 1]; ++i) {
      const std::int64_t col = m.col[std::size_t(i)];
      ++counts_[std::size_t(r * segments + col / kPackedSegment)];
      offsets_[std::size_t(i)] = static_cast<std::uint8_t>(col % kPackedSegment);
    }
  });
}

template <class T>
void HostPacked<T>::set_pattern(const sparse::Csr<float>& matrix) {
  rows_ = matrix.rows;
  cols_ = matrix.cols;
  stride_ = round_up(cols_, kPackedSegment);
  row_begin_.assign(matrix.row_begin.begin(), matrix.row_begin.end());
  const bool fits_bytes = fullest_segment(matrix) <= codelets::kMostPackedCount;
  positions_ = fits_bytes ? packed_positions(rows_, cols_, matrix.blocks()) : PackedPositions::Bits;
  masks_.clear();
  counts_.clear();
  offsets_.clear();
  if (positions_ == PackedPositions::Bits)
    set_masks(matrix);
  else
    set_offsets(matrix);
  values_.assign(matrix.values.size() + std::size_t(kPackedPadding), T());
}

template <class T>
void HostPacked<T>::set_values(std::span<const float> values) {
  constexpr std::int64_t kChunk = 1 << 14;
  executor_->for_each(ceil_div(std::ssize(values), kChunk), [&](std::int64_t i) {
    const std::int64_t first = i * kChunk;
    codelets::cast_floats(values.data() + first, std::min(kChunk, std::ssize(values) - first),
                          values_.data() + first);
  });
}

// Copies the transposed columns of a panel: [columns][stride_], 0 behind the operand's rows.
template <class T>
void HostPacked<T>::read_panel(MatrixView<const T> in, Scratch& scratch) const {
  grow(scratch.transposed, std::size_t(in.cols * stride_));
  copy_to_rows<T>(in.transposed(), scratch.transposed.data(), stride_);
  for (std::int64_t j = 0; j < in.cols; ++j)
    std::fill(scratch.transposed.data() + j * stride_ + in.rows,
              scratch.transposed.data() + (j + 1) * stride_, T());
}

template <class T>
void HostPacked<T>::run_unit(Range rows, bool is_finite, Scratch& scratch, std::int64_t width,
                             float* sums) const {
  const std::int64_t chunks = ceil_div(cols_, kPackedChunk);
  const std::int64_t segments = ceil_div(cols_, kPackedSegment);
  const bool bits = positions_ == PackedPositions::Bits;
  for (std::int64_t j = 0; j < width; j += codelets::kMostPackedColumns) {
    const codelets::PackedSums<T> part{
        .positions = positions_,
        .rows = rows.size(),
        .cols = cols_,
        .row_begin = row_begin_.data() + rows.begin,
        .values = values_.data(),
        .masks = bits ? masks_.data() + rows.begin * chunks : nullptr,
        .counts = bits ? nullptr : counts_.data() + rows.begin * segments,
        .offsets = bits ? nullptr : offsets_.data(),
        .in = scratch.transposed.data() + j * stride_,
        .in_stride = stride_,
        .out = sums + j,
        .out_stride = kPanelColumns,
        .z = std::min(codelets::kMostPackedColumns, width - j)};
    if (is_finite)
      codelets::packed_sums(part);
    else
      codelets::packed_sums_plainly(part);
  }
}

template <class T>
void HostPacked<T>::run_panel(Range cols, const ProductCall<T>& call) const {
  Scratch& scratch = call.scratch;
  const bool finite = is_finite<T>({scratch.transposed.data(), std::size_t(cols.size() * stride_)});
  SharedParts parts(rows_, kUnitRows);
  const std::int64_t sums = row_begin_.back() * cols.size();
  share_units(call.executor, sums, [&](std::int64_t thread) {
    typename Scratch::Thread& own = scratch.threads[std::size_t(thread)];
    while (const auto part = parts.next()) {
      const Range rows = *part;
      {
        const PassClock::Part kernels(scratch.clock, own.kernel_seconds);
        run_unit(rows, finite, scratch, cols.size(), own.sums.data());
      }
      if (!call.after.empty()) call.after.apply(own.sums.data(), kPanelColumns, rows, cols);
      copy_from_rows<T>(own.sums.data(), kPanelColumns, call.out.sub(rows, cols));
    }
  });
}

template <class T>
bool HostPacked<T>::product(const ProductCall<T>& call) const {
  const MatrixView<const T>& in = call.in;
  Scratch& scratch = call.scratch;
  scratch.begin(row_begin_.back() * in.cols, call.executor.threads(), kUnitRows * kPanelColumns);
  bool runs = true;
  for (std::int64_t first = 0; first < in.cols; first += kPanelColumns) {
    runs = call.control.begin("panel of columns");
    if (!runs) break;
    const Range cols{first, std::min(first + kPanelColumns, in.cols)};
    {
      const PassClock::Part copies(scratch.clock, call.times.copy_seconds);
      read_panel(in.sub({0, in.rows}, cols), scratch);
    }
    run_panel(cols, call);
  }
  scratch.clock.add_to(call.times, scratch.threads);
  return runs;
}

template <class T>
std::int64_t HostPacked<T>::bytes() const {
  return list_bytes(row_begin_) + list_bytes(values_) + list_bytes(masks_) + list_bytes(counts_) +
         list_bytes(offsets_);
}

template class HostPacked<Half>;
template class HostPacked<BFloat16>;

}  // namespace tessera::host::internal
