#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/io/internal/mtx_entries.hpp"
#include "tessera/io/internal/mtx_rows.hpp"
#include "tessera/io/internal/read_mtx_source.hpp"
#include "tessera/io/internal/sort_rows.hpp"
#include "tessera/io/internal/text_source.hpp"
#include "tessera/io/read.hpp"
#include "tessera/io/read_options.hpp"

namespace tessera::io {
namespace {

using internal::MtxBatch;
using internal::MtxEntries;
using internal::RowCounts;
using internal::RowFiller;

// Reads the file once. The matrix is complete if its entries are in order; else it has only the
// row pointers.
sparse::Csr<double> read_in_order(MtxEntries& entries) {
  const internal::MtxHeader& header = entries.header();
  sparse::Csr<double> matrix{.rows = header.rows, .cols = header.cols};
  RowCounts counts(header.rows);
  if (!header.is_array) {
    // The file is long enough for them. Pages that are not written take no memory.
    matrix.col.reserve(static_cast<std::size_t>(header.entries));
    matrix.values.reserve(static_cast<std::size_t>(header.entries));
  }
  entries.read([&](const MtxBatch& batch) {
    counts.add(batch);
    if (counts.is_in_order()) {
      matrix.col.insert(matrix.col.end(), batch.col.begin(), batch.col.end());
      matrix.values.insert(matrix.values.end(), batch.value.begin(), batch.value.end());
    } else if (!matrix.col.empty()) {
      std::vector<std::int32_t>().swap(matrix.col);
      std::vector<double>().swap(matrix.values);
    }
  });
  matrix.row_begin = std::move(counts).take_row_begin();
  return matrix;
}

bool is_complete(const sparse::Csr<double>& matrix) {
  return std::ssize(matrix.col) == matrix.row_begin.back();
}

// Returns whether no entry has a mirror image.
bool is_as_stored(const sparse::Csr<double>& matrix, const internal::MtxHeader& header) {
  return header.is_array || std::ssize(matrix.col) == header.entries;
}

// Reads the file again and moves each entry to its row; `carried` gets numbers of the entries, as
// `number_of` names them, and moves along when rows are sorted.
template <class Carried, class NumberOf>
void fill_rows(MtxEntries& entries, sparse::Csr<double>& matrix, std::vector<Carried>& carried,
               NumberOf number_of) {
  matrix.col.resize(static_cast<std::size_t>(matrix.row_begin.back()));
  carried.resize(matrix.col.size());
  RowFiller filler(matrix.row_begin, {0, matrix.rows}, entries);
  entries.read([&](const MtxBatch& batch) {
    filler.add(batch, [&](std::size_t to, std::size_t i) {
      matrix.col[to] = batch.col[i];
      carried[to] = number_of(batch, i);
    });
  });
  filler.check_full();
  internal::sort_rows(matrix.row_begin, std::span(matrix.col), std::span(carried),
                      entries.executor());
}

// Numbers the entries of a file from 0. An entry and its mirror image are neighbours on one line.
class EntryNumbers {
 public:
  std::int64_t operator()(const MtxBatch& batch, std::size_t i) {
    const std::int64_t line = batch.lines_before + batch.line[i];
    number_ += line != std::exchange(last_line_, line);
    return number_;
  }

 private:
  std::int64_t number_ = -1, last_line_ = -1;
};

// Adds up the neighbours of sorted rows that have one place.
void sum_twins(sparse::Csr<double>& matrix) {
  std::size_t to = 0, from = 0;
  for (std::size_t r = 0; r + 1 < matrix.row_begin.size(); ++r) {
    const auto first = to;
    for (const auto end = static_cast<std::size_t>(matrix.row_begin[r + 1]); from < end; ++from) {
      const bool is_twin = to > first && matrix.col[to - 1] == matrix.col[from];
      if (is_twin) {
        matrix.values[to - 1] += matrix.values[from];
      } else {
        matrix.col[to] = matrix.col[from];
        matrix.values[to++] = matrix.values[from];
      }
    }
    matrix.row_begin[r + 1] = static_cast<std::int64_t>(to);
  }
  matrix.col.resize(to);
  matrix.values.resize(to);
}

}  // namespace

ReadMatrix internal::read_mtx_source(const TextSource& text, std::string_view name,
                                     const ReadOptions& options) {
  MtxEntries entries(text, name, options.precision);
  ReadMatrix result{read_in_order(entries), entries.header().has_values(), {}};
  sparse::Csr<double>& matrix = result.matrix;
  const bool sums = options.duplicates == sparse::Duplicates::Sum;
  const bool needs_order = !result.has_values && !sums && options.keeps_order;
  if (is_complete(matrix) && (!needs_order || is_as_stored(matrix, entries.header())))
    return result;
  if (!needs_order)
    fill_rows(entries, matrix, matrix.values,
              [](const MtxBatch& batch, std::size_t i) { return batch.value[i]; });
  else
    fill_rows(entries, matrix, result.entry_of_value, EntryNumbers());
  if (sums)
    sum_twins(matrix);
  else if (const auto twins = find_twins(matrix.row_begin, matrix.col))
    refuse_twins(entries, *twins);
  if (!result.has_values) matrix.values.assign(matrix.col.size(), 1.0);
  return result;
}

ReadMatrix read_mtx(std::string_view text, std::string_view name) {
  return read_mtx(text, name, ReadOptions{});
}

ReadMatrix read_mtx(std::string_view text, std::string_view name, const ReadOptions& options) {
  return internal::read_mtx_source(internal::TextInMemory(text), name, options);
}

}  // namespace tessera::io
