#include "tessera/python/src/csr.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/sparse/check.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/rules.hpp"

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

// Returns the arrays of the format's names. Those of compressed columns make the transpose.
sparse::Csr<float> compressed_rows(const MatrixArrays& from) {
  const bool is_transposed = from.format == "csc";
  sparse::Csr<float> matrix;
  matrix.rows = is_transposed ? from.cols : from.rows;
  matrix.cols = is_transposed ? from.rows : from.cols;
  matrix.block = from.block;
  matrix.row_begin = widen(from.first, "indptr");
  matrix.col = narrow(from.second, "indices");
  const std::span<const float> values = elements<float>(from.data);
  matrix.values.assign(values.begin(), values.end());
  return matrix;
}

// Throws what `rule` says of a matrix of compressed_rows in the names that SciPy and torch use.
template <class Rule>
void require(const MatrixArrays& from, const sparse::Csr<float>& matrix, Rule&& rule) {
  sparse::Compressed arrays = sparse::as_compressed(matrix);
  arrays.begin_name = "indptr";
  arrays.index_name = "indices";
  if (from.format == "csc") std::swap(arrays.line, arrays.cross);
  sparse::throw_problem(from.format == "csc" ? "CSC" : "CSR", from.rows, from.cols, rule(arrays));
}

// Describes the first coordinate that is not below `count`; `line` is "row" or "column".
std::string side_problem(std::span<const std::int32_t> side, const char* name, const char* line,
                         std::int64_t count) {
  const auto outside = std::ranges::find_if(side, [&](auto i) { return i < 0 || i >= count; });
  if (outside == side.end()) return {};
  return fmt::format("{}[{}] names {} {}; the matrix has {} {}s, counted from 0", name,
                     outside - side.begin(), line, *outside, count, line);
}

std::string problem_of(const sparse::Coo<float>& matrix) {
  std::string problem = sparse::size_problem(matrix.rows, matrix.cols, {});
  if (problem.empty() && matrix.row.size() != matrix.col.size())
    return fmt::format("row has {} places and col has {}; both need the same", matrix.row.size(),
                       matrix.col.size());
  if (problem.empty()) problem = side_problem(matrix.row, "row", "row", matrix.rows);
  if (problem.empty()) problem = side_problem(matrix.col, "col", "column", matrix.cols);
  if (!problem.empty()) return problem;
  return sparse::value_problem(std::ssize(matrix.row), {}, std::ssize(matrix.values));
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

sparse::Csr<float> csr_from_places(const MatrixArrays& from) {
  const std::span<const float> values = elements<float>(from.data);
  const sparse::Coo<float> places = {.rows = from.rows,
                                     .cols = from.cols,
                                     .block = {},
                                     .row = narrow(from.first, "row"),
                                     .col = narrow(from.second, "col"),
                                     .values = {values.begin(), values.end()}};
  const py::gil_scoped_release release;
  sparse::throw_problem("COO", from.rows, from.cols, problem_of(places));
  return sparse::to_csr(places, sparse::Duplicates::Sum);
}

// Returns true for an array of NumPy's own class whose elements follow one another as this computer
// stores them. `dimensions` 0 allows any number of them above 0.
bool is_plain(py::handle array, int dimensions) {
  using py::detail::npy_api;
  constexpr int kWhole = npy_api::NPY_ARRAY_C_CONTIGUOUS_ | npy_api::NPY_ARRAY_ALIGNED_;
  if (Py_TYPE(array.ptr()) != npy_api::get().PyArray_Type_) return false;
  const auto* const fields = py::detail::array_proxy(array.ptr());
  const bool fits = dimensions == 0 ? fields->nd > 0 : fields->nd == dimensions;
  return fits && (fields->flags & kWhole) == kWhole &&
         py::detail::array_descriptor_proxy(fields->descr)->byteorder != '>';
}

// Returns NumPy's number of the type of an array's elements.
int type_number(py::handle array) {
  return py::detail::array_descriptor_proxy(py::detail::array_proxy(array.ptr())->descr)->type_num;
}

bool is_side(py::handle number) {
  if (!PyLong_CheckExact(number.ptr())) return false;
  int overflow = 0;
  const long long side = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  return overflow == 0 && side >= 0 && side <= kMostIndex;
}

bool is_pair_of_sides(py::handle shape) {
  return PyTuple_CheckExact(shape.ptr()) && PyTuple_GET_SIZE(shape.ptr()) == 2 &&
         is_side(PyTuple_GET_ITEM(shape.ptr(), 0)) && is_side(PyTuple_GET_ITEM(shape.ptr(), 1));
}

// The names of attributes, as Python looks them up. They are kept for the process.
struct Names {
  PyObject* format = PyUnicode_InternFromString("format");
  PyObject* to_csr = PyUnicode_InternFromString("tocsr");
  PyObject* from_pydata = PyUnicode_InternFromString("to_scipy_sparse");
  PyObject* indptr = PyUnicode_InternFromString("indptr");
  PyObject* indices = PyUnicode_InternFromString("indices");
  PyObject* data = PyUnicode_InternFromString("data");
  PyObject* shape = PyUnicode_InternFromString("shape");
};

// Returns the format in which MatrixArrays takes the arrays of a format of SciPy, or no object for
// a format without compressed rows or columns.
py::object compressed_format(py::handle format) {
  if (!PyUnicode_CheckExact(format.ptr())) return {};
  const auto is = [&](const char* name) {
    return PyUnicode_CompareWithASCIIString(format.ptr(), name) == 0;
  };
  if (is("csr") || is("csc")) return py::reinterpret_borrow<py::object>(format);
  return is("bsr") ? py::str("csr") : py::object();
}

template <class To, class From>
py::array copy_as(const std::vector<From>& from) {
  py::array_t<To> to(py::ssize_t(from.size()));
  std::transform(from.begin(), from.end(), to.mutable_data(), [](From v) { return To(v); });
  return to;
}

}  // namespace

MatrixArrays::MatrixArrays(const py::tuple& matrix)
    : format(matrix[0].cast<std::string>()),
      first(matrix[1].cast<py::array>()),
      second(matrix[2].cast<py::array>()),
      data(matrix[3].cast<py::array>()) {
  std::tie(rows, cols) = matrix[4].cast<std::pair<std::int64_t, std::int64_t>>();
  const bool has_blocks = data.ndim() == 3 && (format == "csr" || format == "bsr");
  if (data.ndim() != 1 && !has_blocks)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the data of a {} matrix has {} dimensions; it has 1, or 3 for blocks "
                            "of bsr",
                            format, data.ndim()));
  if (has_blocks) block = {data.shape(1), data.shape(2)};
}

py::object ready_arrays(const py::type& type, py::handle format, py::handle first,
                        py::handle second, py::handle data, py::handle shape) {
  using py::detail::npy_api;
  if (!is_plain(first, 1) || !is_plain(second, 1) || !is_plain(data, 0) || !is_pair_of_sides(shape))
    return py::none();
  const int index = type_number(first);
  if (index != type_number(second) || type_number(data) != npy_api::NPY_FLOAT_) return py::none();
  if (index != npy_api::NPY_INT32_ && index != npy_api::NPY_INT64_) return py::none();
  const std::array parts = {format, first, second, data, shape};
  auto* const tuple = reinterpret_cast<PyTypeObject*>(type.ptr());
  if (PyType_IsSubtype(tuple, &PyTuple_Type) == 0) throw py::type_error("Matrix is a tuple");
  auto made = py::reinterpret_steal<py::object>(tuple->tp_alloc(tuple, std::ssize(parts)));
  if (!made) throw py::error_already_set();
  for (std::size_t i = 0; i < parts.size(); ++i)
    PyTuple_SET_ITEM(made.ptr(), py::ssize_t(i), parts[i].inc_ref().ptr());
  return made;
}

py::object ready_matrix(const py::type& type, py::handle matrix) {
  static const Names names;
  PyTypeObject* const kind = Py_TYPE(matrix.ptr());
  if (_PyType_Lookup(kind, names.format) == nullptr ||
      _PyType_Lookup(kind, names.to_csr) == nullptr ||
      _PyType_Lookup(kind, names.from_pydata) != nullptr)
    return py::none();
  const auto field = [&](PyObject* name) { return py::getattr(matrix, name, py::none()); };
  const py::object format = compressed_format(field(names.format));
  if (!format) return py::none();
  return ready_arrays(type, format, field(names.indptr), field(names.indices), field(names.data),
                      field(names.shape));
}

void add_csr(py::module_& module) {
  module.def("_ready_arrays", &ready_arrays);
  module.def("_ready_matrix", &ready_matrix);
}

sparse::Csr<float> csr_from_arrays(const MatrixArrays& from) {
  if (from.format == "coo") return csr_from_places(from);
  sparse::Csr<float> matrix = compressed_rows(from);
  const py::gil_scoped_release release;
  sparse::throw_problem("matrix", from.rows, from.cols,
                        sparse::size_problem(from.rows, from.cols, from.block));
  require(from, matrix, [&](const sparse::Compressed& arrays) {
    const std::string problem = sparse::pointer_problem(arrays);
    if (!problem.empty()) return problem;
    return sparse::value_problem(matrix.blocks(), matrix.block, std::ssize(matrix.values));
  });
  if (!columns_are_legal(matrix)) {
    require(from, matrix, &sparse::range_problem);
    matrix = sparse::sort_columns(matrix, sparse::Duplicates::Sum);
  }
  return from.format == "csc" ? sparse::transpose(matrix) : matrix;
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
