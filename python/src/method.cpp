#include "tessera/python/src/method.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/printable.hpp"

namespace py = pybind11;

namespace tessera::python {
namespace {

std::string type_name(py::handle object) {
  return py::str(py::type::handle_of(object).attr("__name__")).cast<std::string>();
}

// Returns the text that a message has for an object: short, and without lone surrogates.
std::string shown(py::handle object) {
  return py::module_::import("reprlib").attr("repr")(object).cast<std::string>();
}

// Returns a path as bytes. Python keeps bytes that are no text in one half of the surrogates; the
// other ones are in no name of a file.
py::object encoded_path(py::handle object) {
  try {
    return py::module_::import("os").attr("fsencode")(object);
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_UnicodeEncodeError)) throw;
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("the path {} has a lone surrogate; no file has such a name", shown(object)));
  }
}

}  // namespace

std::string text_of(py::handle object, const char* name) {
  if (!py::isinstance<py::str>(object))
    throw py::type_error(fmt::format("{} is of type {}; pass a text", name, type_name(object)));
  Py_ssize_t bytes = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(object.ptr(), &bytes);
  if (text == nullptr) {
    PyErr_Clear();
    throw py::type_error(
        fmt::format("{} is {}, which has a lone surrogate; pass a text of whole characters", name,
                    shown(object)));
  }
  return {text, std::size_t(bytes)};
}

std::string path_of(py::handle object) {
  const std::string path = encoded_path(object).cast<std::string>();
  if (path.find('\0') != std::string::npos)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the path {} has a NUL; a path ends there", printable(path)));
  return path;
}

void refuse_arguments(const std::string& usage, const py::args& args, const py::kwargs& keywords,
                      bool is_method) {
  std::vector<std::string> given;
  for (const py::handle object : args) given.push_back(type_name(object));
  for (const auto& [name, object] : keywords)
    given.push_back(
        fmt::format("{}={}", name.attr("encode")("utf-8", "backslashreplace").cast<std::string>(),
                    type_name(object)));
  throw py::type_error(
      fmt::format("pass {}; it was called with ({}){}", usage, fmt::join(given, ", "),
                  is_method ? ", or on an object whose __init__ was not called" : ""));
}

}  // namespace tessera::python
