#include "tessera/codelets/packed_rows.hpp"

#include <bit>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/internal/fast/expanded_sums.hpp"

namespace tessera::codelets {
namespace {

using internal::ExpandedLanes;

// Calls visit(column, lane) for each value of a row, in the order in which they are stored.
template <class T, class Visit>
void visit_bits(const PackedSums<T>& sums, std::int64_t row, Visit&& visit) {
  const std::int64_t chunks = ceil_div(sums.cols, kPackedChunk);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (std::uint32_t left = sums.masks[row * chunks + chunk]; left != 0; left &= left - 1) {
      const int bit = std::countr_zero(left);
      visit(chunk * kPackedChunk + bit, bit);
    }
}
template <class T, class Visit>
void visit_bytes(const PackedSums<T>& sums, std::int64_t row, Visit&& visit) {
  const std::int64_t segments = ceil_div(sums.cols, kPackedSegment);
  const std::uint8_t* offset = sums.offsets + sums.row_begin[row];
  for (std::int64_t segment = 0; segment < segments; ++segment)
    for (int i = 0; i < sums.counts[row * segments + segment]; ++i)
      visit(segment * kPackedSegment + *offset++, i % kPackedChunk);
}

template <class T>
float row_sum(const PackedSums<T>& sums, std::int64_t row, const T* in) {
  ExpandedLanes<T> lanes;
  const T* value = sums.values + sums.row_begin[row];
  const auto add = [&](std::int64_t column, std::int64_t lane) {
    lanes.add(lane, *value++, in[column]);
  };
  if (sums.positions == PackedPositions::Bits)
    visit_bits(sums, row, add);
  else
    visit_bytes(sums, row, add);
  return lanes.sum();
}

}  // namespace

template <class T>
void packed_sums_plainly(const PackedSums<T>& sums) noexcept {
  for (std::int64_t row = 0; row < sums.rows; ++row)
    for (std::int64_t j = 0; j < sums.z; ++j)
      sums.out[row * sums.out_stride + j] = row_sum(sums, row, sums.in + j * sums.in_stride);
}

template <class T>
void packed_sums(const PackedSums<T>& sums) noexcept {
  internal::expanded_sums(sums);
}

template void packed_sums_plainly(const PackedSums<Half>&) noexcept;
template void packed_sums_plainly(const PackedSums<BFloat16>&) noexcept;
template void packed_sums(const PackedSums<Half>&) noexcept;
template void packed_sums(const PackedSums<BFloat16>&) noexcept;

}  // namespace tessera::codelets
