#include "tessera/python/src/files.hpp"

#include <pybind11/numpy.h>

#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/read_options.hpp"
#include "tessera/io/write.hpp"
#include "tessera/python/src/csr.hpp"
#include "tessera/python/src/method.hpp"
#include "tessera/sparse/convert.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {
namespace {

py::tuple read(const py::object& file) {
  const std::string path = path_of(file);
  const sparse::Csr<float> matrix = [&] {
    const py::gil_scoped_release release;
    // Places that are given twice are added up, as they are in arrays (csr.cpp).
    return sparse::cast<float>(io::read_matrix(path, {.duplicates = sparse::Duplicates::Sum,
                                                      .precision = io::Precision::Float,
                                                      .keeps_order = false})
                                   .matrix);
  }();
  return py::make_tuple(arrays_from_csr(matrix), py::make_tuple(matrix.rows, matrix.cols));
}

void write(const py::object& file, const py::tuple& arrays) {
  const std::string path = path_of(file);
  const sparse::Csr<float> matrix = csr_from_arrays(MatrixArrays(arrays));
  const py::gil_scoped_release release;
  if (path.ends_with(".smtx")) return io::write_smtx_file(path, matrix);
  if (path.ends_with(".mtx")) return io::write_mtx_file(path, matrix);
  if (path.ends_with(".npz")) return write_file(path, io::write_npz(matrix));
  throw Error(ErrorCode::InvalidArgument,
              path + ": the ending names no format; use .smtx (pattern only), .mtx or .npz");
}

}  // namespace

void add_files(py::module_& module) {
  module.def("_read", &read, "path"_a);
  module.def("_write", &write, "path"_a, "matrix"_a);
}

}  // namespace tessera::python
