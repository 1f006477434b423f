#include "tessera/sparse/compressed.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/printable.hpp"

namespace tessera::sparse {
namespace {

using Shape = std::vector<std::int64_t>;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::BadInput, message); }

std::int64_t product(const Shape& shape) {
  std::int64_t result = 1;
  for (const std::int64_t length : shape) {
    if (length < 0) refuse(fmt::format("a dimension is {}; the minimum is 0", length));
    result = checked_mul(result, length, "elements of compressed arrays");
  }
  return result;
}

std::int64_t length_of(const GivenIndices& indices) {
  return std::visit([](auto span) { return std::ssize(span); }, indices);
}

void check_types(const CompressedArrays& a) {
  static constexpr std::string_view kNames[] = {"int32", "int64", "uint32", "uint64"};
  const std::size_t crow = a.crow_indices.index(), col = a.col_indices.index();
  if (crow != col)
    refuse(fmt::format("crow_indices and col_indices must have the same dtype; they are {} and {}",
                       kNames[crow], kNames[col]));
  if (crow > 1)
    refuse(fmt::format("crow_indices and col_indices must be an int32 or int64 type, but got {}",
                       kNames[crow]));
}

void check_sizes(const CompressedArrays& a) {
  if (a.block.rows < 1 || a.block.cols < 1)
    refuse(
        fmt::format("blocks of {} x {}; the sides must be at least 1", a.block.rows, a.block.cols));
  if (a.rows < 0 || a.cols < 0)
    refuse(fmt::format("a matrix of {} x {}; the sizes must be at least 0", a.rows, a.cols));
  if (a.rows % a.block.rows != 0 || a.cols % a.block.cols != 0)
    refuse(fmt::format("a matrix of {} x {} must be divisible by blocks of {} x {}", a.rows, a.cols,
                       a.block.rows, a.block.cols));
}

// Returns the number of entries of each matrix after it has checked the shape of the values.
std::int64_t checked_nnz(const CompressedArrays& a) {
  Shape needed = a.batch;
  needed.push_back(a.values_shape.size() > a.batch.size() ? a.values_shape[a.batch.size()] : 0);
  const std::int64_t nnz = needed.back();
  if (!a.block.is_element()) needed.insert(needed.end(), {a.block.rows, a.block.cols});
  needed.insert(needed.end(), a.dense.begin(), a.dense.end());
  if (a.values_shape != needed)
    refuse(fmt::format("values have wrong shape ({}); ({}) is needed",
                       fmt::join(a.values_shape, ", "), fmt::join(needed, ", ")));
  product(needed);
  return nnz;
}

void check_lengths(const CompressedArrays& a, std::int64_t nnz) {
  const std::int64_t matrices = product(a.batch), lines = a.rows / a.block.rows;
  const std::int64_t crow = checked_mul(matrices, lines + 1, "crow_indices");
  if (length_of(a.crow_indices) != crow)
    refuse(fmt::format("crow_indices have wrong shape: {} numbers; {} rows of {} matrices need {}",
                       length_of(a.crow_indices), lines, matrices, crow));
  const std::int64_t col = checked_mul(matrices, nnz, "col_indices");
  if (length_of(a.col_indices) != col)
    refuse(fmt::format("col_indices have wrong shape: {} numbers; nnz {} of {} matrices needs {}",
                       length_of(a.col_indices), nnz, matrices, col));
}

void check_32_bits(const CompressedArrays& a, std::int64_t nnz) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (a.crow_indices.index() != 0) return;
  const auto require = [](std::string_view what, std::int64_t value) {
    if (value > kMost)
      throw Error(
          ErrorCode::LimitExceeded,
          fmt::format("32-bit integer overflow in {}: {}; use 64-bit indices", what, value));
  };
  require("row dimension", a.rows / a.block.rows);
  require("column dimension", a.cols / a.block.cols);
  require("nnz", nnz);
}

// Checks the pointers of one matrix of the batch.
template <class Index>
void check_pointers(std::span<const Index> crow, std::int64_t nnz, std::int64_t ncols) {
  if (crow.front() != 0)
    refuse(fmt::format("`crow_indices[..., 0] == 0` is not satisfied: it is {}.", crow.front()));
  if (crow.back() != Index(nnz))
    refuse(fmt::format("`crow_indices[..., -1] == nnz` is not satisfied: {} and {}.", crow.back(),
                       nnz));
  for (std::size_t i = 1; i < crow.size(); ++i)
    // A subtraction could overflow the index type, so the pointers are compared instead.
    if (crow[i] < crow[i - 1] || std::int64_t(crow[i]) > std::int64_t(crow[i - 1]) + ncols)
      refuse(
          fmt::format("`0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` is not "
                      "satisfied: {} and {} at row {}, ncols is {}.",
                      crow[i - 1], crow[i], i - 1, ncols));
}

template <class Index>
void check_columns(std::span<const Index> crow, std::span<const Index> col, std::int64_t ncols) {
  for (std::size_t i = 0; i < col.size(); ++i)
    if (col[i] < 0 || std::int64_t(col[i]) >= ncols)
      refuse(
          fmt::format("`0 <= col_indices < ncols` is not satisfied: col_indices[{}] is {}, ncols "
                      "is {}.",
                      i, col[i], ncols));
  for (std::size_t r = 0; r + 1 < crow.size(); ++r)
    for (std::int64_t k = std::int64_t(crow[r]) + 1; k < std::int64_t(crow[r + 1]); ++k)
      if (col[k] <= col[k - 1])
        refuse(
            fmt::format("`col_indices[..., crow_indices[..., i - 1]:crow_indices[..., i]] for all "
                        "i = 1, ..., nrows are sorted and distinct along the last dimension "
                        "values` is not satisfied: {} after {} in row {}.",
                        col[k], col[k - 1], r));
}

template <class Index>
void check_matrices(const CompressedArrays& a, std::int64_t nnz) {
  const auto crow = std::get<std::span<const Index>>(a.crow_indices);
  const auto col = std::get<std::span<const Index>>(a.col_indices);
  const std::int64_t ncols = a.cols / a.block.cols;
  const auto pointers = std::size_t(a.rows / a.block.rows + 1);
  for (std::size_t m = 0; m < crow.size() / pointers; ++m) {
    const auto begins = crow.subspan(m * pointers, pointers);
    check_pointers(begins, nnz, ncols);
    check_columns(begins, col.subspan(m * std::size_t(nnz), std::size_t(nnz)), ncols);
  }
}

}  // namespace

std::vector<std::int64_t> compress_indices(std::span<const std::int64_t> rows, std::int64_t lines) {
  if (lines < 0) refuse(fmt::format("compress_indices: {} rows; the minimum is 0", lines));
  checked_int32(lines, "rows of compressed indices");
  std::vector<std::int64_t> begin(1, 0);
  begin.reserve(std::size_t(lines) + 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= lines)
      refuse(fmt::format("compress_indices: rows[{}] is {}; it must be in {}", i, rows[i],
                         range_of_indices(lines)));
    if (i > 0 && rows[i] < rows[i - 1])
      refuse(fmt::format("compress_indices: rows[{}] is {} and comes after {}; rows must ascend", i,
                         rows[i], rows[i - 1]));
    while (std::ssize(begin) <= rows[i]) begin.push_back(std::int64_t(i));
  }
  begin.resize(std::size_t(lines) + 1, std::ssize(rows));
  return begin;
}

void check(const CompressedArrays& arrays) {
  check_types(arrays);
  check_sizes(arrays);
  const std::int64_t nnz = checked_nnz(arrays);
  check_32_bits(arrays, nnz);
  check_lengths(arrays, nnz);
  if (arrays.crow_indices.index() == 0)
    check_matrices<std::int32_t>(arrays, nnz);
  else
    check_matrices<std::int64_t>(arrays, nnz);
}

}  // namespace tessera::sparse
