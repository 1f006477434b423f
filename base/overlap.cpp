#include "tessera/base/overlap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"

namespace tessera {
namespace {

bool is_empty(const Footprint& f) { return f.rows <= 0 || f.cols <= 0; }

// Rounds towards minus infinity; `b` is positive.
std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Returns the range of i in [0, count) for which [i * step, i * step + size) and [begin, end) have
// a byte in common.
Range indices_that_meet(std::int64_t count, std::int64_t step, std::int64_t size,
                        std::int64_t begin, std::int64_t end) {
  if (step == 0) return 0 < end && size > begin ? Range{0, count} : Range{};
  // i * step is in [first, last].
  const std::int64_t first = begin - size + 1, last = end - 1;
  const std::int64_t low = step > 0 ? first : -last, high = step > 0 ? last : -first;
  const std::int64_t width = std::abs(step);
  const std::int64_t from = -floor_div(-low, width), to = floor_div(high, width) + 1;
  return {std::clamp<std::int64_t>(from, 0, count), std::clamp<std::int64_t>(to, 0, count)};
}

// The bytes from the first to the last of `count` elements, seen from element 0.
Range extent(std::int64_t count, std::int64_t step, std::int64_t size) {
  const std::int64_t last = (count - 1) * step;
  return {std::min<std::int64_t>(last, 0), std::max<std::int64_t>(last, 0) + size};
}

Range extent(const Footprint& f) {
  const Range rows = extent(f.rows, f.row_step, 0), cols = extent(f.cols, f.col_step, f.size);
  return {rows.begin + cols.begin, rows.end + cols.end};
}

// Returns true if an element has a byte in [begin, end), which are counted from f.data.
bool meets(const Footprint& f, std::int64_t begin, std::int64_t end) {
  const Range row = extent(f.cols, f.col_step, f.size);
  const Range rows =
      indices_that_meet(f.rows, f.row_step, row.size(), begin - row.begin, end - row.begin);
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const std::int64_t at = r * f.row_step;
    if (indices_that_meet(f.cols, f.col_step, f.size, begin - at, end - at).size() > 0) return true;
  }
  return false;
}

void require_memory(std::string_view call, const Footprint& f) {
  if (f.data == nullptr && !is_empty(f))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: {} has {} x {} elements at a null pointer; pass a view of memory",
                            call, f.name, f.rows, f.cols));
}

bool has_contiguous_rows(const Footprint& f) { return f.cols == 1 || f.col_step == f.size; }

}  // namespace

bool share_bytes(const Footprint& a, const Footprint& b) {
  if (is_empty(a) || is_empty(b)) return false;
  const Range of_a = extent(a), of_b = extent(b);
  const std::less<const std::byte*> before;
  if (!before(a.data + of_a.begin, b.data + of_b.end) ||
      !before(b.data + of_b.begin, a.data + of_a.end))
    return false;
  const std::int64_t apart = a.data - b.data;
  const std::int64_t pieces = has_contiguous_rows(a) ? 1 : a.cols;
  const std::int64_t size = has_contiguous_rows(a) ? a.cols * a.size : a.size;
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t c = 0; c < pieces; ++c) {
      const std::int64_t begin = apart + r * a.row_step + c * a.col_step;
      if (meets(b, begin, begin + size)) return true;
    }
  return false;
}

bool overlaps_itself(const Footprint& f) {
  if (is_empty(f) || (has_contiguous_rows(f) && (f.rows == 1 || f.row_step >= f.cols * f.size)))
    return false;
  if (f.cols > 1 && std::abs(f.col_step) < f.size) return true;
  // Two elements that are `rows` and `cols` apart, where either may be negative, share a byte if
  // their distance is less than the size of one.
  const std::int64_t first = -(f.cols - 1) * f.col_step;
  for (std::int64_t rows = 1; rows < f.rows; ++rows) {
    const std::int64_t at = first + rows * f.row_step;
    const Range cols = indices_that_meet(2 * f.cols - 1, f.col_step, f.size, -at, -at + f.size);
    if (cols.size() > 0) return true;
  }
  return false;
}

void check_memory(std::string_view call, const Footprint& result,
                  std::span<const Footprint> operands) {
  require_memory(call, result);
  for (const Footprint& operand : operands) require_memory(call, operand);
  if (overlaps_itself(result))
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("{}: elements of {} share memory, {} x {} with strides of {} and {} "
                    "bytes; a result needs memory for each element",
                    call, result.name, result.rows, result.cols, result.row_step, result.col_step));
  for (const Footprint& operand : operands)
    if (share_bytes(result, operand))
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: the result {} shares memory with the operand {}; results need "
                              "memory of their own",
                              call, result.name, operand.name));
}

}  // namespace tessera
