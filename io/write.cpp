#include "tessera/io/write.hpp"

#include <fmt/format.h>

#include "tessera/base/file.hpp"
#include "tessera/io/internal/number_text.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::io {
namespace {

using internal::append_number;

}  // namespace

template <class T>
std::string write_smtx(const sparse::Csr<T>& matrix) {
  const sparse::Csr<T> elements = sparse::with_block(matrix, {1, 1});
  std::string text = fmt::format("{}, {}, {}\n", elements.rows, elements.cols, elements.blocks());
  for (const std::int64_t begin : elements.row_begin) append_number(text, begin, ' ');
  text.back() = '\n';
  for (const std::int32_t col : elements.col) append_number(text, col, ' ');
  if (elements.col.empty())
    text += '\n';
  else
    text.back() = '\n';
  return text;
}

template <class T>
std::string write_mtx(const sparse::Csr<T>& matrix, MtxField field) {
  const sparse::Csr<T> elements = sparse::with_block(matrix, {1, 1});
  const bool has_values = field == MtxField::Real;
  std::string text =
      fmt::format("%%MatrixMarket matrix coordinate {} general\n{} {} {}\n",
                  has_values ? "real" : "pattern", elements.rows, elements.cols, elements.blocks());
  for (std::int64_t row = 0; row < elements.rows; ++row)
    for (std::int64_t k = elements.row_begin[row]; k < elements.row_begin[row + 1]; ++k) {
      append_number(text, row + 1, ' ');
      append_number(text, std::int64_t{elements.col[k]} + 1, has_values ? ' ' : '\n');
      if (has_values) append_number(text, elements.values[k], '\n');
    }
  return text;
}

template <class T>
void write_smtx_file(const std::string& path, const sparse::Csr<T>& matrix) {
  write_file(path, write_smtx(matrix));
}

template <class T>
void write_mtx_file(const std::string& path, const sparse::Csr<T>& matrix, MtxField field) {
  write_file(path, write_mtx(matrix, field));
}

std::string write_mask(const sparse::Csr<float>& matrix) {
  sparse::check(matrix);
  std::string text = fmt::format("{} {}\n", matrix.block_rows(), matrix.block_cols());
  for (std::size_t row = 0; row < std::size_t(matrix.block_rows()); ++row) {
    std::string line;
    for (std::int64_t column = 0; column < matrix.block_cols(); ++column) line += "0 ";
    for (auto i = matrix.row_begin[row]; i < matrix.row_begin[row + 1]; ++i)
      line[std::size_t(2 * matrix.col[std::size_t(i)])] = '1';
    line.back() = '\n';
    text += line;
  }
  return text;
}

template std::string write_smtx(const sparse::Csr<float>&);
template std::string write_smtx(const sparse::Csr<double>&);
template std::string write_mtx(const sparse::Csr<float>&, MtxField);
template std::string write_mtx(const sparse::Csr<double>&, MtxField);
template void write_smtx_file(const std::string&, const sparse::Csr<float>&);
template void write_smtx_file(const std::string&, const sparse::Csr<double>&);
template void write_mtx_file(const std::string&, const sparse::Csr<float>&, MtxField);
template void write_mtx_file(const std::string&, const sparse::Csr<double>&, MtxField);

}  // namespace tessera::io
