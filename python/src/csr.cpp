#include "tessera/python/src/csr.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"

namespace py = pybind11;

namespace tessera::python {
namespace {

constexpr std::int64_t kMostIndex = std::numeric_limits<std::int32_t>::max();

// Returns the elements of a contiguous array of T.
template <class T>
std::span<const T> elements(const py::array& array) {
  return {static_cast<const T*>(array.data()), std::size_t(array.size())};
}

// Calls run(span) with the elements, which are int32 or int64 by the package's own conversion.
template <class Run>
auto with_indices(const py::array& array, const char* name, Run&& run) {
  if (array.dtype().kind() == 'i' && array.itemsize() == 4)
    return run(elements<std::int32_t>(array));
  if (array.dtype().kind() == 'i' && array.itemsize() == 8)
    return run(elements<std::int64_t>(array));
  throw py::type_error(fmt::format("{} is {}; indices are int32 or int64", name,
                                   py::str(array.dtype()).cast<std::string>()));
}

// Returns indices as 32 bits. An index that does not fit is refused here, others by sparse::check.
std::vector<std::int32_t> narrow(const py::array& array, const char* name) {
  return with_indices(array, name, [&]<class T>(std::span<const T> from) {
    if constexpr (sizeof(T) > sizeof(std::int32_t))
      for (std::size_t i = 0; i < from.size(); ++i)
        if (from[i] < -kMostIndex || from[i] > kMostIndex)
          throw Error(ErrorCode::BadInput, fmt::format("{}[{}] is {}; indices are 0 .. {}", name, i,
                                                       from[i], kMostIndex));
    return std::vector<std::int32_t>(from.begin(), from.end());
  });
}

std::vector<std::int64_t> widen(const py::array& array, const char* name) {
  return with_indices(array, name, [](const auto& from) {
    return std::vector<std::int64_t>(from.begin(), from.end());
  });
}

BlockShape block_of(const py::array& data) {
  if (data.ndim() == 1) return {1, 1};
  if (data.ndim() == 3) return {data.shape(1), data.shape(2)};
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("weights: data has {} dimensions; it has 1, or 3 for blocks", data.ndim()));
}

// Returns true if the columns of every row ascend and are inside the matrix.
bool columns_are_legal(const sparse::Csr<float>& matrix) {
  for (std::int64_t r = 0; r < matrix.block_rows(); ++r) {
    const std::int64_t begin = matrix.row_begin[std::size_t(r)];
    const auto length = std::size_t(matrix.row_begin[std::size_t(r) + 1] - begin);
    if (!sparse::is_legal_row({matrix.col.data() + begin, length}, matrix.block_cols()))
      return false;
  }
  return true;
}

template <class To, class From>
py::array copy_as(const std::vector<From>& from) {
  py::array_t<To> to(py::ssize_t(from.size()));
  std::transform(from.begin(), from.end(), to.mutable_data(), [](From v) { return To(v); });
  return to;
}

}  // namespace

sparse::Csr<float> csr_from_arrays(const py::array& indptr, const py::array& indices,
                                   const py::array& data, std::int64_t rows, std::int64_t cols) {
  sparse::Csr<float> matrix;
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.block = block_of(data);
  matrix.row_begin = widen(indptr, "indptr");
  matrix.col = narrow(indices, "indices");
  const std::span<const float> values = elements<float>(data);
  matrix.values.assign(values.begin(), values.end());
  const py::gil_scoped_release release;
  sparse::check_all_but_columns(matrix);
  if (columns_are_legal(matrix)) return matrix;
  return sparse::sort_columns(matrix, sparse::Duplicates::Sum);
}

py::tuple arrays_from_csr(const sparse::Csr<float>& matrix) {
  std::vector<py::ssize_t> shape = {py::ssize_t(matrix.blocks())};
  if (!matrix.block.is_element())
    shape.insert(shape.end(), {py::ssize_t(matrix.block.rows), py::ssize_t(matrix.block.cols)});
  py::array_t<float> data(shape);
  std::copy(matrix.values.begin(), matrix.values.end(), data.mutable_data());
  if (matrix.blocks() > kMostIndex)
    return py::make_tuple(copy_as<std::int64_t>(matrix.row_begin),
                          copy_as<std::int64_t>(matrix.col), data);
  return py::make_tuple(copy_as<std::int32_t>(matrix.row_begin), copy_as<std::int32_t>(matrix.col),
                        data);
}

std::vector<sparse::BlockAt> places(const py::array& rows, const py::array& cols,
                                    const char* name) {
  const std::vector<std::int32_t> row = narrow(rows, name), col = narrow(cols, name);
  if (row.size() != col.size())
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: {} rows but {} columns; give one of each for every place", name,
                            row.size(), col.size()));
  std::vector<sparse::BlockAt> all(row.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {row[i], col[i]};
  return all;
}

}  // namespace tessera::python
