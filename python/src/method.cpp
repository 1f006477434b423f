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

}  // namespace

std::string text_of(py::handle object, const char* name) {
  if (!py::isinstance<py::str>(object))
    throw py::type_error(fmt::format("{} is of type {}; pass a text", name, type_name(object)));
  return object.cast<std::string>();
}

std::string path_of(py::handle object) {
  const std::string path = py::module_::import("os").attr("fsencode")(object).cast<std::string>();
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
    given.push_back(fmt::format("{}={}", py::str(name).cast<std::string>(), type_name(object)));
  throw py::type_error(
      fmt::format("pass {}; it was called with ({}){}", usage, fmt::join(given, ", "),
                  is_method ? ", or on an object whose __init__ was not called" : ""));
}

}  // namespace tessera::python
