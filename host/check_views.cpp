#include "tessera/host/internal/check_views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <type_traits>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/codelets/place_sums.hpp"
#include "tessera/codelets/reduce.hpp"

namespace tessera::host::internal {
namespace {

// The names of a list's parts, for messages.
struct ListNames {
  std::string_view call, begin, major;
};

[[noreturn]] void bad_list(std::string_view call, const std::string& what) {
  throw Error(ErrorCode::BadInput, fmt::format("{}: {}", call, what));
}

void check_side(std::string_view call, std::int64_t side, std::string_view name) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (side > kMost)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("{}: A has {} {}; the most are 2^31", call, side, name));
}

void check_whole_blocks(std::string_view call, std::int64_t rows, std::int64_t cols,
                        BlockShape block) {
  if (block.rows < 1 || block.cols < 1 || rows < 0 || cols < 0 || rows % block.rows != 0 ||
      cols % block.cols != 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: A is {} x {} in blocks of {} x {}; it must consist of whole "
                            "blocks",
                            call, rows, cols, block.rows, block.cols));
  check_side(call, rows, "rows");
  check_side(call, cols, "columns");
}

void check_values(std::string_view call, Values read, std::int64_t values, std::int64_t places,
                  std::int64_t area) {
  if (read == Values::Read && values != places * area)
    bad_list(call, fmt::format("there are {} values; {} places of {} need {}", values, places, area,
                               places * area));
}

template <class Position>
void check_begin(const ListNames& names, std::span<const Position> begin, std::int64_t count,
                 std::int64_t places) {
  if (std::ssize(begin) != count + 1)
    bad_list(names.call, fmt::format("{} has {} positions; {} {}s need one more than they are",
                                     names.begin, begin.size(), count, names.major));
  if (std::int64_t(begin.front()) != 0 || std::int64_t(begin.back()) != places)
    bad_list(names.call, fmt::format("{} goes from {} to {}; it must go from 0 to the {} places",
                                     names.begin, begin.front(), begin.back(), places));
  // Without a way out of the loop, and with one type, the compiler compares several at once.
  Position descents = 0;
  for (std::size_t i = 1; i < begin.size(); ++i) descents |= Position(begin[i] < begin[i - 1]);
  if (descents == 0) return;
  const auto descent = std::ranges::adjacent_find(begin, std::ranges::greater());
  bad_list(names.call, fmt::format("{} descends after {} {}", names.begin, names.major,
                                   descent - begin.begin()));
}

// Returns true if all numbers are in 0 .. count - 1. A negative number is a large one without its
// sign.
template <class Index>
bool are_below(std::span<const Index> list, std::int64_t count) {
  using Unsigned = std::conditional_t<sizeof(Index) == 4, std::uint32_t, std::uint64_t>;
  const auto limit = Unsigned(std::min<std::int64_t>(count, std::int64_t{1} << 31));
  return list.empty() || codelets::largest(std::span<const Unsigned>(
                             reinterpret_cast<const Unsigned*>(list.data()), list.size())) < limit;
}

// The search runs on all threads; only a list that is refused is read again.
template <class Index>
void check_numbers(std::string_view call, std::span<const Index> list, std::string_view name,
                   std::int64_t count, Executor& executor) {
  using Unsigned = std::make_unsigned_t<Index>;
  constexpr std::int64_t kChunk = 1 << 14;
  const std::int64_t places = std::ssize(list);
  const auto limit = Unsigned(std::min<std::int64_t>(count, std::int64_t{1} << 31));
  std::atomic<bool> is_outside = false;
  executor.for_each(ceil_div(places, kChunk), [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * kChunk, size = std::min(kChunk, places - begin);
    if (!are_below(list.subspan(std::size_t(begin), std::size_t(size)), count)) is_outside = true;
  });
  for (std::int64_t i = 0; is_outside && i < places; ++i)
    if (Unsigned(list[std::size_t(i)]) >= limit)
      bad_list(call, fmt::format("place {} is in {} {}; {}s must be in {}", i, name,
                                 list[std::size_t(i)], name, range_of_indices(count)));
}

}  // namespace

template <class T, class Index, class Position>
void check_all_but_columns(std::string_view call, const CompressedRows<T, Index, Position>& a,
                           Values values) {
  check_whole_blocks(call, a.rows, a.cols, a.block);
  if (sizeof(T) < sizeof(float) && a.block.area() > codelets::kMostPlaceBlock)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("{}: a block has {} values of 16 bits; the most are {}", call,
                            a.block.area(), codelets::kMostPlaceBlock));
  const std::int64_t places = std::ssize(a.col);
  check_begin(ListNames{call, "row_begin", "block row"}, a.row_begin, a.rows / a.block.rows,
              places);
  check_values(call, values, std::ssize(a.values), places, a.block.area());
}

template <class T, class Index, class Position>
bool columns_are_inside(const CompressedRows<T, Index, Position>& a, Range places) {
  return are_below(a.col.subspan(std::size_t(places.begin), std::size_t(places.size())),
                   a.cols / a.block.cols);
}

template <class T, class Index, class Position>
void check_view(std::string_view call, const CompressedRows<T, Index, Position>& a, Values values,
                Executor& executor) {
  check_all_but_columns(call, a, values);
  check_numbers(call, a.col, "block column", a.cols / a.block.cols, executor);
}

template <class T, class Index, class Position>
void check_view(std::string_view call, const CompressedColumns<T, Index, Position>& a,
                Values values, Executor& executor) {
  check_whole_blocks(call, a.rows, a.cols, {1, 1});
  check_begin(ListNames{call, "col_begin", "column"}, a.col_begin, a.cols, std::ssize(a.row));
  check_values(call, values, std::ssize(a.values), std::ssize(a.row), 1);
  check_numbers(call, a.row, "row", a.rows, executor);
}

template <class T, class Index>
void check_view(std::string_view call, const Coordinates<T, Index>& a, Values values,
                Executor& executor) {
  check_whole_blocks(call, a.rows, a.cols, {1, 1});
  if (a.row.size() != a.col.size())
    bad_list(call, fmt::format("row has {} places and col has {}; both must have the same",
                               a.row.size(), a.col.size()));
  check_values(call, values, std::ssize(a.values), std::ssize(a.row), 1);
  check_numbers(call, a.row, "row", a.rows, executor);
  check_numbers(call, a.col, "column", a.cols, executor);
}

template <class T, class Index>
std::vector<std::int64_t> row_positions(const Coordinates<T, Index>& a) {
  if (!std::ranges::is_sorted(a.row)) return {};
  std::vector<std::int64_t> begin(std::size_t(a.rows) + 1);
  for (const Index row : a.row) ++begin[std::size_t(row) + 1];
  for (std::size_t r = 1; r < begin.size(); ++r) begin[r] += begin[r - 1];
  return begin;
}

#define TESSERA_CHECK_LISTS(T, Index, Position)                                                    \
  template void check_all_but_columns(std::string_view, const CompressedRows<T, Index, Position>&, \
                                      Values);                                                     \
  template bool columns_are_inside(const CompressedRows<T, Index, Position>&, Range);              \
  template void check_view(std::string_view, const CompressedRows<T, Index, Position>&, Values,    \
                           Executor&);                                                             \
  template void check_view(std::string_view, const CompressedColumns<T, Index, Position>&, Values, \
                           Executor&);
#define TESSERA_CHECK_PLACES(T, Index)                                                         \
  template void check_view(std::string_view, const Coordinates<T, Index>&, Values, Executor&); \
  template std::vector<std::int64_t> row_positions(const Coordinates<T, Index>&);
#define TESSERA_CHECK_VIEWS(T)                       \
  TESSERA_CHECK_LISTS(T, std::int32_t, std::int32_t) \
  TESSERA_CHECK_LISTS(T, std::int32_t, std::int64_t) \
  TESSERA_CHECK_LISTS(T, std::int64_t, std::int64_t) \
  TESSERA_CHECK_PLACES(T, std::int32_t)              \
  TESSERA_CHECK_PLACES(T, std::int64_t)
TESSERA_CHECK_VIEWS(float)
TESSERA_CHECK_VIEWS(Half)
TESSERA_CHECK_VIEWS(BFloat16)
#undef TESSERA_CHECK_LISTS
#undef TESSERA_CHECK_PLACES
#undef TESSERA_CHECK_VIEWS

}  // namespace tessera::host::internal
