#include "tessera/host/spmm.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <type_traits>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/codelets/place_sums.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/internal/check_views.hpp"
#include "tessera/host/internal/epilogue.hpp"
#include "tessera/host/internal/panels.hpp"
#include "tessera/host/internal/places_by_row.hpp"
#include "tessera/host/internal/row_product.hpp"
#include "tessera/host/internal/scatter_product.hpp"
#include "tessera/host/internal/share_work.hpp"
#include "tessera/host/internal/spmm_options.hpp"

namespace tessera::host {
namespace {

// Returns the panels of B, which are those of a layer. But a matrix of few values reads B where it
// is, because the copy would take longer than the product, and one column that is added up in lanes
// is copied if it has gaps.
template <class T, class Index, class Position>
HostColumns panels_of(const CompressedRows<T, Index, Position>& a, MatrixView<const T> b) {
  static const HostCpu cpu = read_host_cpu();
  constexpr std::int64_t kFewValues = 2;
  const std::int64_t z = b.cols;
  if (z == 1 && !a.block.is_element() && codelets::sums_blocks_in_lanes(a.block))
    return {1, 1, b.row_stride != 1};
  if (a.block.is_element() && std::ssize(a.col) < kFewValues * a.cols) return {z, z, false};
  constexpr int kThreads = 1;  // panels do not depend on it
  const HostProblem problem{{1, a.rows, a.cols, z}, a.block, std::ssize(a.col), data_type_of<T>()};
  return internal::operand_columns(product_cells(problem, cpu, kThreads), problem, b, cpu);
}

// Places that are not in the order of their rows are added one by one, or sorted for products of so
// many columns. AMD Zen 3, 256 x 256 to 4096 x 4096, density 0.01 and 0.05: sorting takes 5 ns a
// place; compressed columns at z 256 take 1.2 to 1.4 times as long as compressed rows, and 1.7 to
// 2.1 one by one; lists in any order at z 64 1.9 to 2.6, and 2.4 to 5.5 one by one.
constexpr std::int64_t kFewestForColumns = 256, kFewestForLists = 64;

// A product while it runs.
template <class T, class Index, class Position>
class Product {
 public:
  Product(const CompressedRows<T, Index, Position>& a, MatrixView<const T> b, MatrixView<T> c,
          Executor& executor, const SpmmOptions<T>& options)
      : a_(a), c_(c), executor_(executor), after_(internal::epilogue_of<T>(options, c)) {
    const HostColumns columns = panels_of(a, b);
    width_ = columns.computed(columns.width);
    b_.set_rows(a.cols);
    b_.begin(b, columns);
    const bool plain = options.alpha == 1 && (options.beta == 0 || options.beta == 1);
    in_place_ = std::is_same_v<T, float> && plain && c.rows_are_contiguous();
    replaces_ = !in_place_ || options.beta == 0;
    if (in_place_) after_.beta = 0;  // the sums begin with the old values
    block_rows_ = std::max<std::int64_t>(internal::kProductRows / a.block.rows, 1);
    if (!in_place_ || !has_own_columns(b_.count() - 1))  // the last panel may be filled up
      scratch_.assign(std::size_t(executor.threads()),
                      AlignedVector<float>(std::size_t(block_rows_ * a.block.rows * width_)));
  }

  void run() {
    const std::int64_t rows = std::ssize(a_.row_begin) - 1;
    for (std::int64_t panel = 0; panel < b_.count(); ++panel) {
      b_.read({panel, panel + 1}, executor_);
      internal::SharedParts parts(rows, block_rows_);
      const std::int64_t sums = std::ssize(a_.values) * b_.columns(panel).size();
      internal::share_units(executor_, sums, [&](std::int64_t thread) {
        while (const auto part = parts.next()) run_rows(panel, *part, thread);
      });
    }
  }

 private:
  // False: zeros behind the columns of a copied panel are computed, too.
  bool has_own_columns(std::int64_t panel) const {
    return b_.computed(panel) == b_.columns(panel).size();
  }

  // Sets sums to the old values of a part of C, and those of zeros behind its columns to 0.
  void begin_with_old(MatrixView<T> part, std::int64_t computed, float* sums) const {
    for (std::int64_t r = 0; r < part.rows; ++r, sums += width_) {
      for (std::int64_t z = 0; z < part.cols; ++z) sums[z] = float(part(r, z));
      std::fill(sums + part.cols, sums + computed, 0.0f);
    }
  }

  void run_rows(std::int64_t panel, Range block_rows, std::int64_t thread) {
    const Range rows{block_rows.begin * a_.block.rows, block_rows.end * a_.block.rows};
    const Range cols = b_.columns(panel);
    const MatrixView<T> part = c_.sub(rows, cols);
    const bool in_place = in_place_ && has_own_columns(panel);
    float* sums = nullptr;
    std::int64_t stride = width_;
    if constexpr (std::is_same_v<T, float>) {
      if (in_place) sums = part.data, stride = part.row_stride;
    }
    if (!in_place) sums = scratch_[std::size_t(thread)].data();
    if (!in_place && !replaces_) begin_with_old(part, b_.computed(panel), sums);
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
        .z = in.z,
        .replaces = replaces_});
    if (!after_.empty()) after_.apply(sums, stride, rows, cols);
    if (!in_place) internal::copy_from_rows<T>(sums, stride, part);
  }

  const CompressedRows<T, Index, Position>& a_;
  const MatrixView<T> c_;
  Executor& executor_;
  internal::Epilogue<T> after_;
  internal::HostPanels<T> b_{internal::HostPanels<T>::Kept::One};
  std::int64_t width_ = 1, block_rows_ = 1;
  bool in_place_ = false, replaces_ = true;
  std::vector<AlignedVector<float>> scratch_;  // for each thread
};

// A product of elements with one column. It reads values and columns once, so each chunk of columns
// is checked when it is about to be used, and results wait until all are.
template <class T, class Index, class Position>
class VectorProduct {
 public:
  VectorProduct(const CompressedRows<T, Index, Position>& a, MatrixView<const T> b)
      : a_(a), in_(b.data) {
    if (a.rows > std::ssize(few_sums_)) {
      many_sums_.resize(std::size_t(a.rows));
      sums_ = many_sums_.data();
    }
    if (b.row_stride == 1) return;
    for (std::int64_t y = 0; y < b.rows; ++y) copy_.push_back(b(y, 0));
    in_ = copy_.data();
  }
  VectorProduct(const VectorProduct&) = delete;  // sums_ may point into it
  VectorProduct& operator=(const VectorProduct&) = delete;

  void run(MatrixView<T> c, const internal::Epilogue<T>& after, Executor& executor) {
    std::atomic<bool> is_outside = false;
    internal::SharedParts parts(a_.rows, internal::kProductRows);
    internal::share_units(executor, std::ssize(a_.values), [&](std::int64_t) {
      while (const auto rows = parts.next())
        if (!add(*rows)) is_outside = true;
    });
    if (is_outside) internal::check_view("spmm", a_, internal::Values::Read, executor);
    if (!after.empty()) after.apply(sums_, 1, {0, a_.rows}, {0, 1});
    internal::copy_from_rows<T>(sums_, 1, c);
  }

 private:
  bool add(Range rows) {
    const Range places{a_.row_begin[std::size_t(rows.begin)], a_.row_begin[std::size_t(rows.end)]};
    if (!internal::columns_are_inside(a_, places)) return false;
    internal::column_sums(a_, rows, in_, sums_ + rows.begin);
    return true;
  }

  const CompressedRows<T, Index, Position>& a_;
  const T* in_;
  AlignedVector<T> copy_;
  // The results, in memory that is not allocated if there are few: allocating and freeing take a
  // tenth of the smallest products.
  alignas(64) std::array<float, 1024> few_sums_;
  AlignedVector<float> many_sums_;
  float* sums_ = few_sums_.data();
};

}  // namespace

template <class T, class Index, class Position>
void spmm(const CompressedRows<T, Index, Position>& a, MatrixView<const T> b, MatrixView<T> c,
          Executor& executor, const SpmmOptions<T>& options) {
  const DefaultFloatMode mode;
  internal::check_all_but_columns("spmm", a, internal::Values::Read);
  const bool is_vector = c.cols == 1 && a.block.is_element();
  internal::check_operands(a.rows, a.cols, b, c, options, internal::lists_of(a));
  if (!is_vector) internal::check_view("spmm", a, internal::Values::Read, executor);
  if (is_vector)
    return VectorProduct<T, Index, Position>(a, b).run(c, internal::epilogue_of<T>(options, c),
                                                       executor);
  if (c.rows == 0 || c.cols == 0) return;
  Product<T, Index, Position>(a, b, c, executor, options).run();
}

template <class T, class Index, class Position>
void spmm(const CompressedColumns<T, Index, Position>& a, MatrixView<const T> b, MatrixView<T> c,
          Executor& executor, const SpmmOptions<T>& options) {
  const DefaultFloatMode mode;
  internal::check_view("spmm", a, internal::Values::Read, executor);
  internal::check_operands(a.rows, a.cols, b, c, options, internal::lists_of(a));
  if (c.rows == 0 || c.cols == 0) return;
  if (c.cols >= kFewestForColumns) {
    const auto for_each = [&](const auto& visit) {
      for (std::int64_t column = 0; column < a.cols; ++column)
        for (auto i = a.col_begin[std::size_t(column)]; i < a.col_begin[std::size_t(column) + 1];
             ++i)
          visit(i, column);
    };
    const auto sorted =
        internal::places_by_row<T, Index>(a.rows, a.row, a.values, for_each, executor);
    return Product<T, Index, std::int64_t>(sorted.view(a.cols), b, c, executor, options).run();
  }
  const internal::Epilogue<T> after = internal::epilogue_of<T>(options, c);
  const codelets::ScatteredPlaces<T, Index> places{.row = a.row.data(), .values = a.values.data()};
  internal::ScatterProduct<T>({a.rows, a.cols, std::ssize(a.row), b.cols}, b, c, after, executor)
      .run(places, [&](const codelets::ScatteredPlaces<T, Index>& to, Range i) {
        codelets::scatter_columns(to, a.col_begin, i);
      });
}

template <class T, class Index>
void spmm(const Coordinates<T, Index>& a, MatrixView<const T> b, MatrixView<T> c,
          Executor& executor, const SpmmOptions<T>& options) {
  const DefaultFloatMode mode;
  internal::check_view("spmm", a, internal::Values::Read, executor);
  internal::check_operands(a.rows, a.cols, b, c, options, internal::lists_of(a));
  if (c.rows == 0 || c.cols == 0) return;
  const std::vector<std::int64_t> row_begin = internal::row_positions(a);
  if (!row_begin.empty()) {
    const CompressedRows<T, Index, std::int64_t> rows{a.rows,    a.cols, {1, 1},
                                                      row_begin, a.col,  a.values};
    return spmm<T>(rows, b, c, executor, options);
  }
  if (c.cols >= kFewestForLists) {
    const auto for_each = [&](const auto& visit) {
      for (std::size_t i = 0; i < a.col.size(); ++i) visit(std::int64_t(i), a.col[i]);
    };
    const auto sorted =
        internal::places_by_row<T, Index>(a.rows, a.row, a.values, for_each, executor);
    return Product<T, Index, std::int64_t>(sorted.view(a.cols), b, c, executor, options).run();
  }
  const internal::Epilogue<T> after = internal::epilogue_of<T>(options, c);
  const codelets::ScatteredPlaces<T, Index> places{.row = a.row.data(), .values = a.values.data()};
  internal::ScatterProduct<T>({a.rows, a.cols, std::ssize(a.row), b.cols}, b, c, after, executor)
      .run(places, [&](const codelets::ScatteredPlaces<T, Index>& to, Range i) {
        codelets::scatter_places(to, a.col.data(), i);
      });
}

#define TESSERA_SPMM_LISTS(T, Index, Position)                                          \
  template void spmm(const CompressedRows<T, Index, Position>&, MatrixView<const T>,    \
                     MatrixView<T>, Executor&, const SpmmOptions<T>&);                  \
  template void spmm(const CompressedColumns<T, Index, Position>&, MatrixView<const T>, \
                     MatrixView<T>, Executor&, const SpmmOptions<T>&);
#define TESSERA_SPMM_PLACES(T, Index)                                                             \
  template void spmm(const Coordinates<T, Index>&, MatrixView<const T>, MatrixView<T>, Executor&, \
                     const SpmmOptions<T>&);
#define TESSERA_SPMM(T)                             \
  TESSERA_SPMM_LISTS(T, std::int32_t, std::int32_t) \
  TESSERA_SPMM_LISTS(T, std::int32_t, std::int64_t) \
  TESSERA_SPMM_LISTS(T, std::int64_t, std::int64_t) \
  TESSERA_SPMM_PLACES(T, std::int32_t)              \
  TESSERA_SPMM_PLACES(T, std::int64_t)
TESSERA_SPMM(float)
TESSERA_SPMM(Half)
TESSERA_SPMM(BFloat16)
#undef TESSERA_SPMM_LISTS
#undef TESSERA_SPMM_PLACES
#undef TESSERA_SPMM

}  // namespace tessera::host
