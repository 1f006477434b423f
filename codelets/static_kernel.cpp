#include "tessera/codelets/static_kernel.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "tessera/base/dims.hpp"
#include "tessera/codelets/cast.hpp"
#include "tessera/codelets/cost/static_split.hpp"
#include "tessera/codelets/internal/arithmetic.hpp"
#include "tessera/codelets/internal/fast/term_rows.hpp"
#include "tessera/codelets/internal/fast/vector_kernels.hpp"
#include "tessera/codelets/internal/operands.hpp"
#include "tessera/codelets/internal/static_walk.hpp"

namespace tessera::codelets {
namespace {

using internal::StaticRow, internal::StaticWorker;

// Columns that are decoded at a time.
constexpr std::int64_t kMostColumns = 256;

// Floats that are summed before they are cast.
constexpr std::int64_t kMostSums = internal::kMostBlockValues;

// Words that are numbers of rows already.
constexpr internal::RowCode kRowNumbers{.mask = std::numeric_limits<std::uint32_t>::max(),
                                        .step = sizeof(std::uint32_t),
                                        .shift = 0,
                                        .inverse = 1,
                                        .scale = 1};

// Finds the operand rows of a tile's block columns.
template <class Word>
class RowsOfColumns {
 public:
  RowsOfColumns(const StaticForm& form, std::span<const std::int32_t> places)
      : code_(internal::row_code<Word>(internal::column_scale(form))),
        side_(static_cast<std::uint32_t>(form.block.cols)),
        places_(places) {}

  // Decodes the columns of a row and calls use(span of first operand rows, first block) for runs of
  // at most `most` blocks.
  template <class Use>
  void for_each_run(const StaticRow<Word>& row, std::int64_t most, Use&& use) const {
    std::array<std::uint32_t, kMostColumns> columns;
    for (std::int64_t done = 0; done < row.blocks; done += most) {
      const std::int64_t count = std::min(most, row.blocks - done);
      for (std::int64_t i = 0; i < count; ++i)
        columns[std::size_t(i)] =
            place((std::uint32_t{row.columns[done + i]} >> code_.shift) * code_.inverse) * side_;
      use(std::span<const std::uint32_t>(columns.data(), std::size_t(count)), row.first + done);
    }
  }

 private:
  std::uint32_t place(std::uint32_t column) const {
    return places_.empty() ? column : static_cast<std::uint32_t>(places_[column]);
  }

  internal::RowCode code_;
  std::uint32_t side_;
  std::span<const std::int32_t> places_;
};

template <class T>
void cast_row(const float* from, std::int64_t count, T* to) {
  if constexpr (std::is_same_v<T, float>)
    std::copy_n(from, count, to);
  else
    cast_floats(from, count, to);
}

// Returns a row of elements in these columns, for kernels of buckets.
internal::TermRow terms_of(std::span<const std::uint32_t> columns) {
  return {0, std::ssize(columns), 0, reinterpret_cast<const std::byte*>(columns.data())};
}

// The sums of one row of blocks for some batch columns: of elements or of blocks.
template <class T>
void add_run(const StaticForm& form, const KernelArgs& args, std::span<const std::uint32_t> columns,
             std::int64_t first, Range z, float* sums, std::int64_t stride, bool replaces) {
  const T* in = internal::rows_of<T>(args.in).data + z.begin;
  const T* values = internal::values_of<T>(args) + first * form.block.area();
  if (form.block.is_element()) {
    const internal::TermRow row = terms_of(columns);
    internal::gather_sums(internal::ElementSums<T>{.rows = {&row, 1},
                                                   .code = kRowNumbers,
                                                   .values = values,
                                                   .in = in,
                                                   .in_stride = args.in.row_stride,
                                                   .out = sums,
                                                   .out_stride = stride,
                                                   .z = z.size(),
                                                   .replaces = replaces});
    return;
  }
  internal::block_sums(internal::BlockSums<T>{.row = 0,
                                              .columns = columns,
                                              .values = values,
                                              .rows = form.block.rows,
                                              .cols = form.block.cols,
                                              .in = in,
                                              .in_stride = args.in.row_stride,
                                              .out = sums,
                                              .out_stride = stride,
                                              .z = z.size(),
                                              .replaces = replaces});
}

// Writes the batch columns z of one row of blocks. Floats are summed in place, other types in a
// buffer of floats.
template <class T, class Word>
void write_row(const StaticForm& form, const KernelArgs& args, const RowsOfColumns<Word>& rows,
               const StaticRow<Word>& row, Range z) {
  const auto out = internal::rows_of<T>(args.out);
  const std::int64_t height = form.block.rows, most = kMostSums / height;
  std::array<float, std::is_same_v<T, float> ? 1 : kMostSums> buffer;
  const std::int64_t piece_size = std::is_same_v<T, float> ? z.size() : most;
  for (std::int64_t begin = z.begin; begin < z.end; begin += piece_size) {
    const Range piece{begin, std::min(begin + piece_size, z.end)};
    float* sums = buffer.data();
    std::int64_t stride = piece.size();
    if constexpr (std::is_same_v<T, float>) {
      sums = out.row(row.row * height) + piece.begin;
      stride = out.stride;
    }
    rows.for_each_run(row, kMostColumns, [&](auto columns, std::int64_t first) {
      add_run<T>(form, args, columns, first, piece, sums, stride, first == row.first);
    });
    if constexpr (!std::is_same_v<T, float>)
      for (std::int64_t i = 0; i < height; ++i)
        cast_row(sums + i * stride, piece.size(), out.row(row.row * height + i) + piece.begin);
  }
}

// Rounds every product and every sum to half.
template <class Word>
void write_half_blocks(const StaticForm& form, const KernelArgs& args,
                       const RowsOfColumns<Word>& rows, const StaticRow<Word>& row, Range z) {
  const auto in = internal::rows_of<Half>(args.in);
  const auto out = internal::rows_of<Half>(args.out);
  const auto [height, width] = form.block;
  for (std::int64_t i = 0; i < height; ++i)
    std::fill_n(out.row(row.row * height + i) + z.begin, z.size(), Half());
  rows.for_each_run(row, kMostColumns, [&](auto columns, std::int64_t first) {
    const Half* values = internal::values_of<Half>(args) + first * form.block.area();
    for (const std::uint32_t column : columns)
      for (std::int64_t i = 0; i < height; ++i)
        for (std::int64_t j = 0; j < width; ++j)
          internal::add_scaled_row(out.row(row.row * height + i) + z.begin, *values++,
                                   in.row(column + j) + z.begin, z.size());
  });
}

template <class T, class Word>
void run_forward(const StaticForm& form, const KernelArgs& args, const StaticPlaces& places) {
  const Word* words = internal::words_of<Word>(args);
  const RowsOfColumns<Word> rows(form, places.in);
  if (form.block.is_element()) {
    for (std::int64_t i = 0; i < form.workers; ++i) {
      const StaticWorker worker = internal::static_worker(words, i);
      const Range z{worker.first_z, worker.first_z + worker.z};
      internal::for_each_static_row(form, words, worker, [&](const StaticRow<Word>& row) {
        write_row<T>(form, args, rows, row, z);
      });
    }
    return;
  }
  const internal::StaticZ workers = internal::static_z(form, words);
  const Range z{workers.begin, workers.begin + workers.size};
  internal::for_each_static_block_row(form, words, [&](const StaticRow<Word>& row) {
    if constexpr (std::is_same_v<T, Half>)
      write_half_blocks(form, args, rows, row, z);
    else
      write_row<T>(form, args, rows, row, z);
  });
}

// Calls visit(row) for every row once; of two workers that share the rows only the first.
template <class Word, class Visit>
void for_each_row_once(const StaticForm& form, const Word* words, Visit&& visit) {
  if (!form.block.is_element()) {
    internal::for_each_static_block_row(form, words, visit);
    return;
  }
  for (std::int64_t i = 0; i < form.workers; ++i) {
    const StaticWorker worker = internal::static_worker(words, i);
    if (worker.first_z == 0) internal::for_each_static_row(form, words, worker, visit);
  }
}

template <class T>
void write_dots(const StaticForm& form, const KernelArgs& args, std::int64_t row,
                std::span<const std::uint32_t> columns, float* gradients) {
  const T* q_grad = internal::rows_of<T>(args.in).row(row * form.block.rows);
  const T* s = internal::rows_of<T>(args.in_s).data;
  if (form.block.is_element()) {
    const internal::TermRow terms = terms_of(columns);
    internal::element_dots(internal::ElementDots<T>{.rows = {&terms, 1},
                                                    .code = kRowNumbers,
                                                    .q_grad = q_grad,
                                                    .q_grad_stride = args.in.row_stride,
                                                    .s = s,
                                                    .s_stride = args.in_s.row_stride,
                                                    .gradients = gradients,
                                                    .z = args.in.z,
                                                    .replaces = true});
    return;
  }
  internal::block_dots(internal::BlockDots<T>{.row = 0,
                                              .columns = columns,
                                              .gradients = gradients,
                                              .rows = form.block.rows,
                                              .cols = form.block.cols,
                                              .q_grad = q_grad,
                                              .q_grad_stride = args.in.row_stride,
                                              .s = s,
                                              .s_stride = args.in_s.row_stride,
                                              .z = args.in.z,
                                              .replaces = true});
}

template <class T, class Word>
void run_gradient(const StaticForm& form, const KernelArgs& args, const StaticPlaces& places) {
  const RowsOfColumns<Word> rows(form, places.in_s);
  const std::int64_t area = form.block.area(), most = std::min(kMostColumns, kMostSums / area);
  std::array<float, kMostSums> buffer;
  for_each_row_once(form, internal::words_of<Word>(args), [&](const StaticRow<Word>& row) {
    const std::int64_t place = places.in.empty() ? row.row : places.in[std::size_t(row.row)];
    rows.for_each_run(row, most, [&](auto columns, std::int64_t first) {
      write_dots<T>(form, args, place, columns, buffer.data());
      cast_row(buffer.data(), std::ssize(columns) * area,
               static_cast<T*>(args.gradients) + first * area);
    });
  });
}

template <class Word>
Cycles forward_cycles(const StaticForm& form, const Word* words) {
  const StaticKernel kernel{form.block, form.type};
  if (form.block.is_element()) {
    Cycles slowest;
    for (std::int64_t i = 0; i < form.workers; ++i) {
      const StaticWorker worker = internal::static_worker(words, i);
      if (worker.rows == 0) continue;
      const std::int64_t blocks =
          internal::for_each_static_row(form, words, worker, [](const auto&) {});
      slowest = std::max(slowest, static_worker_cycles(kernel, worker.z)(worker.rows, blocks));
    }
    return form.workers * slowest;
  }
  std::int64_t rows = 0;
  const std::int64_t blocks =
      internal::for_each_static_block_row(form, words, [&](const auto&) { ++rows; });
  return static_block_cycles(kernel, rows, blocks, internal::static_z(form, words).size,
                             form.workers);
}

template <class Word>
Cycles gradient_cycles(const StaticForm& form, const Word* words) {
  return static_gradient_cycles(
      {form.block, form.type}, form.z, form.workers, [&](const auto& visit) {
        for_each_row_once(form, words, [&](const StaticRow<Word>& row) { visit(row.blocks); });
      });
}

}  // namespace

void run_static(const StaticForm& form, Operation operation, const KernelArgs& args,
                const StaticPlaces& places) noexcept {
  internal::with_word(form, [&]<class Word>(Word) {
    with_type(form.type, [&]<class T>(T) {
      if (operation == Operation::GradW)
        run_gradient<T, Word>(form, args, places);
      else
        run_forward<T, Word>(form, args, places);
    });
  });
}

Cycles static_cycles(const StaticForm& form, Operation operation, const void* words) {
  return internal::with_word(form, [&]<class Word>(Word) {
    const Word* typed = static_cast<const Word*>(words);
    return operation == Operation::GradW ? gradient_cycles(form, typed)
                                         : forward_cycles(form, typed);
  });
}

}  // namespace tessera::codelets
