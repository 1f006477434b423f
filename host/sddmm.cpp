#include "tessera/host/sddmm.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/host/internal/check_views.hpp"
#include "tessera/host/internal/list_footprints.hpp"
#include "tessera/host/internal/place_gradient.hpp"
#include "tessera/host/internal/share_work.hpp"
#include "tessera/host/internal/strided.hpp"

namespace tessera::host {
namespace {

using internal::DotOperands;
using internal::PlaceGradient;
using internal::PlaceRows;

[[noreturn]] void refuse_sddmm(const std::string& what) {
  throw Error(ErrorCode::InvalidArgument, "sddmm: " + what);
}

// The size of a pattern.
struct PatternSize {
  std::int64_t rows = 0, cols = 0, values = 0;
};

// The output may be the values of the pattern, which are not read, but not its other lists.
template <class T, class Out>
void check_dense(const PatternSize& pattern, MatrixView<const T> a, MatrixView<const T> b,
                 std::span<Out> out, const internal::ListFootprints& lists) {
  if (a.rows != pattern.rows || b.cols != pattern.cols || a.cols != b.rows)
    refuse_sddmm(
        fmt::format("the pattern is {} x {}, A {} x {} and B {} x {}; A must have the rows of the "
                    "pattern, B its columns, and A as many columns as B has rows",
                    pattern.rows, pattern.cols, a.rows, a.cols, b.rows, b.cols));
  if (std::ssize(out) != pattern.values)
    refuse_sddmm(fmt::format("the output has space for {} numbers; the pattern has {} values",
                             out.size(), pattern.values));
  check_memory("sddmm", footprint("the output", out),
               std::array{footprint("A", a), footprint("B", b), lists[0], lists[1]});
}

// The numbers of a call on their way to the output.
template <class Out>
class Output {
 public:
  Output(std::span<Out> out, const SddmmOptions& options, Executor& executor)
      : out_(out), options_(options), sums_(std::size_t(executor.threads())) {}

  // Calls compute(sums, adds), which sets the sums of these values or adds them to the old ones,
  // and finishes the values. Allocates if no values of this thread before were as many.
  template <class Compute>
  void write(std::int64_t thread, Range values, Compute&& compute) {
    if (values.size() == 0) return;
    const std::span<Out> own = out_.subspan(std::size_t(values.begin), std::size_t(values.size()));
    if constexpr (std::is_same_v<Out, float>) {
      if (options_.alpha == 1 && (options_.beta == 0 || options_.beta == 1))
        return compute(own, options_.beta == 1);
    }
    AlignedVector<float>& sums = sums_[std::size_t(thread)];
    internal::grow(sums, own.size());
    compute(std::span<float>(sums.data(), own.size()), false);
    finish(sums.data(), own);
  }

 private:
  void finish(const float* sums, std::span<Out> own) const {
    if (options_.beta == 0)
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = Out(options_.alpha * sums[i]);
    else
      for (std::size_t i = 0; i < own.size(); ++i)
        own[i] = Out(options_.alpha * sums[i] + options_.beta * float(own[i]));
  }

  std::span<Out> out_;
  SddmmOptions options_;
  std::vector<AlignedVector<float>> sums_;  // for each thread
};

// Sampled sums of no terms.
template <class Out>
void scale_by_beta(std::span<Out> out, float beta) {
  for (Out& number : out) number = beta == 0 ? Out(0.0f) : Out(beta * float(number));
}

template <class T, class Index, class Position, class Out>
void run_rows(const CompressedRows<T, Index, Position>& pattern, const DotOperands<T>& batch,
              std::span<Out> out, Executor& executor, const SddmmOptions& options) {
  if (batch.s.cols == 0) return scale_by_beta(out, options.beta);
  const PlaceGradient<T, Index> all(pattern.block, std::ssize(pattern.col), batch, executor);
  Output<Out> output(out, options, executor);
  const std::int64_t area = pattern.block.area();
  internal::for_each_rows(
      std::ssize(pattern.row_begin) - 1, std::ssize(out) * batch.s.cols, executor,
      [&](std::int64_t thread, Range rows) {
        const std::int64_t first = pattern.row_begin[std::size_t(rows.begin)];
        const std::int64_t end = pattern.row_begin[std::size_t(rows.end)];
        output.write(thread, {first * area, end * area}, [&](std::span<float> sums, bool adds) {
          all.run(PlaceRows<Index, Position>(pattern.row_begin, pattern.col, rows), sums, first,
                  adds);
        });
      });
}

// Places of one row that follow one another share its elements of A.
template <class T, class Index, class Out>
void run_places(const Coordinates<T, Index>& pattern, const DotOperands<T>& batch,
                std::span<Out> out, Executor& executor, const SddmmOptions& options) {
  if (batch.s.cols == 0) return scale_by_beta(out, options.beta);
  constexpr std::int64_t kPlaces = 4096;
  const std::int64_t places = std::ssize(pattern.row);
  const PlaceGradient<T, Index> all({1, 1}, places, batch, executor);
  Output<Out> output(out, options, executor);
  internal::SharedParts parts(places, kPlaces);
  const auto add_runs = [&](Range part, std::int64_t panel, std::span<float> sums, bool adds) {
    for (auto i = part.begin, end = i; i < part.end; i = end) {
      const Index row = pattern.row[std::size_t(i)];
      while (end < part.end && pattern.row[std::size_t(end)] == row) ++end;
      all.add(panel, row, pattern.col.subspan(std::size_t(i), std::size_t(end - i)),
              sums.data() + (i - part.begin), adds || panel > 0);
    }
  };
  executor.for_each(executor.threads(), [&](std::int64_t thread) {
    while (const auto part = parts.next())
      output.write(thread, *part, [&](std::span<float> sums, bool adds) {
        for (std::int64_t panel = 0; panel < all.panels(); ++panel)
          add_runs(*part, panel, sums, adds);
      });
  });
}

}  // namespace

template <class T, class Index, class Position, class Out>
void sddmm(const CompressedRows<T, Index, Position>& pattern, MatrixView<const T> a,
           MatrixView<const T> b, std::span<Out> out, Executor& executor,
           const SddmmOptions& options) {
  const DefaultFloatMode mode;
  internal::check_view("sddmm", pattern, internal::Values::NotRead, executor);
  check_dense({pattern.rows, pattern.cols, std::ssize(pattern.col) * pattern.block.area()}, a, b,
              out, internal::lists_of(pattern));
  run_rows(pattern, {a, b.transposed()}, out, executor, options);
}

// The pattern of the transpose has compressed rows, and its sums have the same terms.
template <class T, class Index, class Position, class Out>
void sddmm(const CompressedColumns<T, Index, Position>& pattern, MatrixView<const T> a,
           MatrixView<const T> b, std::span<Out> out, Executor& executor,
           const SddmmOptions& options) {
  const DefaultFloatMode mode;
  internal::check_view("sddmm", pattern, internal::Values::NotRead, executor);
  check_dense({pattern.rows, pattern.cols, std::ssize(pattern.row)}, a, b, out,
              internal::lists_of(pattern));
  const CompressedRows<T, Index, Position> transpose{pattern.cols,      pattern.rows, {1, 1},
                                                     pattern.col_begin, pattern.row,  {}};
  run_rows(transpose, {b.transposed(), a}, out, executor, options);
}

template <class T, class Index, class Out>
void sddmm(const Coordinates<T, Index>& pattern, MatrixView<const T> a, MatrixView<const T> b,
           std::span<Out> out, Executor& executor, const SddmmOptions& options) {
  const DefaultFloatMode mode;
  internal::check_view("sddmm", pattern, internal::Values::NotRead, executor);
  check_dense({pattern.rows, pattern.cols, std::ssize(pattern.row)}, a, b, out,
              internal::lists_of(pattern));
  const std::vector<std::int64_t> row_begin = internal::row_positions(pattern);
  if (row_begin.empty())
    return run_places(pattern, DotOperands<T>{a, b.transposed()}, out, executor, options);
  const CompressedRows<T, Index, std::int64_t> rows{pattern.rows, pattern.cols, {1, 1},
                                                    row_begin,    pattern.col,  {}};
  run_rows(rows, {a, b.transposed()}, out, executor, options);
}

#define TESSERA_SDDMM_LISTS(T, Out, Index, Position)                                        \
  template void sddmm(const CompressedRows<T, Index, Position>&, MatrixView<const T>,       \
                      MatrixView<const T>, std::span<Out>, Executor&, const SddmmOptions&); \
  template void sddmm(const CompressedColumns<T, Index, Position>&, MatrixView<const T>,    \
                      MatrixView<const T>, std::span<Out>, Executor&, const SddmmOptions&);
#define TESSERA_SDDMM_PLACES(T, Out, Index)                                                   \
  template void sddmm(const Coordinates<T, Index>&, MatrixView<const T>, MatrixView<const T>, \
                      std::span<Out>, Executor&, const SddmmOptions&);
#define TESSERA_SDDMM(T, Out)                             \
  TESSERA_SDDMM_LISTS(T, Out, std::int32_t, std::int32_t) \
  TESSERA_SDDMM_LISTS(T, Out, std::int32_t, std::int64_t) \
  TESSERA_SDDMM_LISTS(T, Out, std::int64_t, std::int64_t) \
  TESSERA_SDDMM_PLACES(T, Out, std::int32_t)              \
  TESSERA_SDDMM_PLACES(T, Out, std::int64_t)
TESSERA_SDDMM(float, float)
TESSERA_SDDMM(Half, Half)
TESSERA_SDDMM(Half, float)
TESSERA_SDDMM(BFloat16, BFloat16)
TESSERA_SDDMM(BFloat16, float)
#undef TESSERA_SDDMM_LISTS
#undef TESSERA_SDDMM_PLACES
#undef TESSERA_SDDMM

}  // namespace tessera::host
