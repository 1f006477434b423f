#include "tessera/host/spmm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/codelets/place_sums.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/internal/epilogue.hpp"
#include "tessera/host/internal/panels.hpp"

namespace tessera::host {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::InvalidArgument, "spmm: " + what);
}

template <class T, class Index, class Position>
void check_sizes(const CompressedRows<T, Index, Position>& a, MatrixView<const T> b,
                 MatrixView<T> c, const SpmmOptions& options) {
  if (a.block.rows < 1 || a.block.cols < 1 || a.rows < 0 || a.cols < 0 ||
      a.rows % a.block.rows != 0 || a.cols % a.block.cols != 0)
    refuse(fmt::format("A is {} x {} in blocks of {} x {}; it must consist of whole blocks", a.rows,
                       a.cols, a.block.rows, a.block.cols));
  if (b.rows != a.cols || c.rows != a.rows || b.cols != c.cols)
    refuse(
        fmt::format("A is {} x {}, B {} x {} and C {} x {}; B must have the columns of A as "
                    "rows, and C the rows of A and the columns of B",
                    a.rows, a.cols, b.rows, b.cols, c.rows, c.cols));
  if (!options.bias.empty() && std::ssize(options.bias) != a.rows)
    refuse(fmt::format("the bias has {} numbers; A has {} rows", options.bias.size(), a.rows));
  if (a.cols > std::int64_t{1} << 31)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("spmm: A has {} columns; the most are 2^31", a.cols));
  if (sizeof(T) < sizeof(float) && a.block.area() > codelets::kMostPlaceBlock)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("spmm: a block has {} values of 16 bits; the most are {}",
                            a.block.area(), codelets::kMostPlaceBlock));
}

template <class T, class Index, class Position>
void check_lists(const CompressedRows<T, Index, Position>& a, Executor& executor) {
  const auto bad = [](const std::string& what) {
    throw Error(ErrorCode::BadInput, "spmm: " + what);
  };
  const std::int64_t places = std::ssize(a.col);
  if (std::ssize(a.row_begin) != a.rows / a.block.rows + 1)
    bad(fmt::format("row_begin has {} positions; {} block rows need one more than they are",
                    a.row_begin.size(), a.rows / a.block.rows));
  if (std::int64_t(a.row_begin.front()) != 0 || std::int64_t(a.row_begin.back()) != places)
    bad(fmt::format("row_begin goes from {} to {}; it must go from 0 to the {} places",
                    a.row_begin.front(), a.row_begin.back(), places));
  const auto descent = std::ranges::adjacent_find(a.row_begin, std::ranges::greater());
  if (descent != a.row_begin.end())
    bad(fmt::format("row_begin descends after block row {}", descent - a.row_begin.begin()));
  if (std::ssize(a.values) != places * a.block.area())
    bad(fmt::format("there are {} values; {} places of {} need {}", a.values.size(), places,
                    a.block.area(), places * a.block.area()));
  constexpr std::int64_t kChunk = 1 << 14;
  const auto blocks = static_cast<std::make_unsigned_t<Index>>(a.cols / a.block.cols);
  std::atomic<bool> is_outside = false;
  executor.for_each(ceil_div(places, kChunk), [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * kChunk, end = std::min(begin + kChunk, places);
    unsigned found = 0;  // without a branch, so that compilers compare several at once
    for (std::int64_t i = begin; i < end; ++i)
      found |= static_cast<std::make_unsigned_t<Index>>(a.col[std::size_t(i)]) >= blocks;
    if (found != 0) is_outside = true;
  });
  for (std::int64_t i = 0; is_outside && i < places; ++i)
    if (static_cast<std::make_unsigned_t<Index>>(a.col[std::size_t(i)]) >= blocks)
      bad(fmt::format("place {} is in block column {}; columns must be in 0..{}", i,
                      a.col[std::size_t(i)], std::int64_t(blocks) - 1));
}

// Returns the panels of B. With blocks they are those of a layer. With elements a panel of all rows
// of B fits in half of the second-level cache, because every row of A reads it, and is copied,
// because rows that are far apart fall into few sets of a cache. A matrix of few values reads B
// where it is: the copy would take longer than the product.
template <class T, class Index, class Position>
HostColumns panels_of(const CompressedRows<T, Index, Position>& a, std::int64_t z) {
  static const HostCpu cpu = read_host_cpu();
  if (!a.block.is_element()) {
    const HostCells cells =
        product_cells({{1, a.rows, a.cols, z}, a.block, std::ssize(a.col), data_type_of<T>()}, cpu);
    return {cells.z, cells.z, cells.pack};
  }
  constexpr std::int64_t kVector = 16, kMostColumns = 64, kFewValues = 2;
  if (std::ssize(a.col) < kFewValues * a.cols) return {std::max<std::int64_t>(z, 1), z, false};
  const std::int64_t row_bytes = std::max<std::int64_t>(a.cols, 1) * std::int64_t(sizeof(T));
  const std::int64_t fitting = cpu.l2.value / 2 / row_bytes / kVector * kVector;
  const std::int64_t width = std::clamp(fitting, 2 * kVector, kMostColumns);
  return {std::min(std::max<std::int64_t>(z, 1), width), std::min(z, width), width < z};
}

// A product while it runs.
template <class T, class Index, class Position>
class Product {
 public:
  Product(const CompressedRows<T, Index, Position>& a, MatrixView<const T> b, MatrixView<T> c,
          Executor& executor, const SpmmOptions& options)
      : a_(a), c_(c), executor_(executor), options_(options) {
    const HostColumns columns = panels_of(a, b.cols);
    width_ = columns.width;
    b_.set_rows(a.cols);
    b_.begin(b, columns);
    const bool plain = options.alpha == 1 && (options.beta == 0 || options.beta == 1);
    in_place_ = std::is_same_v<T, float> && plain && c.rows_are_contiguous();
    block_rows_ = std::max<std::int64_t>(kRows / a.block.rows, 1);
    if (!in_place_)
      scratch_.assign(std::size_t(executor.threads()),
                      AlignedVector<float>(std::size_t(block_rows_ * a.block.rows * width_)));
  }

  void run() {
    const std::int64_t rows = std::ssize(a_.row_begin) - 1;
    for (std::int64_t panel = 0; panel < b_.count(); ++panel) {
      b_.read({panel, panel + 1}, executor_);
      std::atomic<std::int64_t> next = 0;
      executor_.for_each(executor_.threads(), [&](std::int64_t thread) {
        for (auto first = block_rows_ * next++; first < rows; first = block_rows_ * next++)
          run_rows(panel, {first, std::min(first + block_rows_, rows)}, thread);
      });
    }
  }

 private:
  static constexpr std::int64_t kRows = 64;  // that a thread takes at once

  void run_rows(std::int64_t panel, Range block_rows, std::int64_t thread) {
    const Range rows{block_rows.begin * a_.block.rows, block_rows.end * a_.block.rows};
    const Range cols = b_.columns(panel);
    const MatrixView<T> part = c_.sub(rows, cols);
    float* sums = nullptr;
    std::int64_t stride = width_;
    if constexpr (std::is_same_v<T, float>) {
      if (in_place_) sums = part.data, stride = part.row_stride;
    }
    if (!in_place_) sums = scratch_[std::size_t(thread)].data();
    const codelets::Operand in = b_.panel(panel, {0, a_.cols});
    codelets::place_sums(codelets::PlaceSums<T, Index, Position>{
        .block = a_.block,
        .row_begin =
            a_.row_begin.subspan(std::size_t(block_rows.begin), std::size_t(block_rows.size()) + 1),
        .col = a_.col.data(),
        .values = a_.values.data(),
        .in = static_cast<const T*>(in.data),
        .in_stride = in.row_stride,
        .out = sums,
        .out_stride = stride,
        .z = cols.size(),
        .replaces = !in_place_ || options_.beta == 0});
    if (!in_place_) scale(sums, part);
    const internal::Epilogue<T> after{.bias = options_.bias, .relu = options_.relu};
    if (!after.empty()) after.apply(sums, stride, rows, cols);
    if (!in_place_) internal::copy_from_rows<T>(sums, stride, part);
  }

  void scale(float* sums, MatrixView<const T> before) const {
    if (options_.alpha == 1 && options_.beta == 0) return;
    for (std::int64_t r = 0; r < before.rows; ++r, sums += width_)
      for (std::int64_t z = 0; z < before.cols; ++z) {
        sums[z] *= options_.alpha;
        if (options_.beta != 0) sums[z] += options_.beta * float(before(r, z));
      }
  }

  const CompressedRows<T, Index, Position>& a_;
  const MatrixView<T> c_;
  Executor& executor_;
  const SpmmOptions& options_;
  internal::HostPanels<T> b_{internal::HostPanels<T>::Kept::One};
  std::int64_t width_ = 1, block_rows_ = 1;
  bool in_place_ = false;
  std::vector<AlignedVector<float>> scratch_;  // for each thread
};

}  // namespace

template <class T, class Index, class Position>
void spmm(const CompressedRows<T, Index, Position>& a, MatrixView<const T> b, MatrixView<T> c,
          Executor& executor, const SpmmOptions& options) {
  check_sizes(a, b, c, options);
  check_lists(a, executor);
  check_no_overlap("spmm", footprint("C", MatrixView<const T>(c)),
                   std::array{footprint("B", b), footprint("the values of A", a.values),
                              footprint("the bias", options.bias)});
  if (c.rows == 0 || c.cols == 0) return;
  Product<T, Index, Position>(a, b, c, executor, options).run();
}

#define TESSERA_SPMM_FOR(T, Index, Position)                                         \
  template void spmm(const CompressedRows<T, Index, Position>&, MatrixView<const T>, \
                     MatrixView<T>, Executor&, const SpmmOptions&);
#define TESSERA_SPMM(T)                           \
  TESSERA_SPMM_FOR(T, std::int32_t, std::int32_t) \
  TESSERA_SPMM_FOR(T, std::int32_t, std::int64_t) \
  TESSERA_SPMM_FOR(T, std::int64_t, std::int64_t)
TESSERA_SPMM(float)
TESSERA_SPMM(Half)
TESSERA_SPMM(BFloat16)
#undef TESSERA_SPMM_FOR
#undef TESSERA_SPMM

}  // namespace tessera::host
