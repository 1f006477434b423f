#include "tessera/python/src/files.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/io/array.hpp"
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

// Returns the bytes of an object with a buffer of them, which is not copied.
std::string_view bytes_of(const py::buffer_info& buffer) {
  return {static_cast<const char*>(buffer.ptr), std::size_t(buffer.size * buffer.itemsize)};
}

// Returns (name, type, shape, first byte, byte after the last one) of each tensor of a safetensors
// file, in the order of their data.
py::list list_tensors(const py::buffer& file, const py::object& path) {
  const std::string name = path_of(path);
  const py::buffer_info buffer = file.request();
  const std::string_view bytes = bytes_of(buffer);
  const std::int64_t data = io::safetensors_data_begin(bytes, name);
  py::list tensors;
  for (const io::TensorInfo& t : io::list_safetensors(bytes, name))
    tensors.append(py::make_tuple(t.name, std::string(io::to_string(t.type)),
                                  py::tuple(py::cast(t.shape)), data + t.begin, data + t.end));
  return tensors;
}

io::ElementType element_type(const std::string& name) {
  using enum io::ElementType;
  for (const auto type : {F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool})
    if (io::to_string(type) == name) return type;
  throw Error(ErrorCode::InvalidArgument, name + " is no type of safetensors");
}

// Writes tensors (name, type, shape, bytes) as a safetensors file.
void write_tensors(const py::object& file, const py::list& tensors) {
  const std::string path = path_of(file);
  std::vector<io::NamedTensor> all;
  for (const py::handle given : tensors) {
    const auto tensor = py::cast<py::tuple>(given);
    all.push_back({text_of(tensor[0], "the name of a tensor"),
                   element_type(tensor[1].cast<std::string>()),
                   tensor[2].cast<std::vector<std::int64_t>>(), tensor[3].cast<std::string>()});
  }
  const py::gil_scoped_release release;
  write_file(path, io::write_safetensors(all, {}));
}

}  // namespace

void add_files(py::module_& module) {
  module.def("_path", [](const py::object& path) { return py::bytes(path_of(path)); }, "path"_a);
  module.def("_read", &read, "path"_a);
  module.def("_list_tensors", &list_tensors, "file"_a, "path"_a);
  module.def("_write_tensors", &write_tensors, "path"_a, "tensors"_a);
  module.def("_write", &write, "path"_a, "matrix"_a);
}

}  // namespace tessera::python
