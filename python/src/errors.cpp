#include "tessera/python/src/errors.hpp"

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/base/error.hpp"

namespace py = pybind11;

namespace tessera::python {
namespace {

// The exception types live as long as the process, because the translator needs them until its end.
struct ErrorTypes {
  PyObject* base = nullptr;
  PyObject* invalid_argument = nullptr;
  PyObject* bad_input = nullptr;
  PyObject* limit_exceeded = nullptr;
  PyObject* no_solution = nullptr;
  PyObject* check_failed = nullptr;
  PyObject* internal = nullptr;

  PyObject* of(ErrorCode code) const {
    switch (code) {
      case ErrorCode::InvalidArgument:
        return invalid_argument;
      case ErrorCode::BadInput:
        return bad_input;
      case ErrorCode::LimitExceeded:
        return limit_exceeded;
      case ErrorCode::NoSolution:
        return no_solution;
      case ErrorCode::CheckFailed:
        return check_failed;
      case ErrorCode::Internal:
        break;
    }
    return internal;
  }
};

ErrorTypes& error_types() {
  static ErrorTypes types;
  return types;
}

PyObject* add_type(py::module_& module, const char* name, const char* doc, py::handle also) {
  const py::tuple bases = error_types().base == nullptr
                              ? py::make_tuple(also)
                              : py::make_tuple(py::handle(error_types().base), also);
  const std::string full_name = std::string("tessera.") + name;
  PyObject* const type = PyErr_NewExceptionWithDoc(full_name.c_str(), doc, bases.ptr(), nullptr);
  if (type == nullptr) throw py::error_already_set();
  module.add_object(name, py::handle(type));
  return type;
}

void translate(std::exception_ptr failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const Error& error) {
    PyObject* const type = error_types().of(error.code());
    const std::string_view text = error.what();
    // A message may quote what a caller or a file gave: bytes that are no text.
    const auto message = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(text.data(), py::ssize_t(text.size()), "backslashreplace"));
    PyErr_SetObject(type, message.ptr());
  }
}

}  // namespace

void add_errors(py::module_& module) {
  ErrorTypes& types = error_types();
  types.base =
      add_type(module, "Error", "Base of all exceptions of this package.", PyExc_Exception);
  types.invalid_argument = add_type(module, "InvalidArgument",
                                    "The caller asked for something impossible.", PyExc_ValueError);
  types.bad_input = add_type(
      module, "BadInput", "A file or a matrix breaks the rules of its format.", PyExc_ValueError);
  types.limit_exceeded =
      add_type(module, "LimitExceeded",
               "A count does not fit the type or the memory that must hold it.", PyExc_MemoryError);
  types.no_solution = add_type(
      module, "NoSolution",
      "There is no plan. `plan` is the nearest one or None; `remedies` is a list of changes.",
      PyExc_RuntimeError);
  py::setattr(types.no_solution, "plan", py::none());
  py::setattr(types.no_solution, "remedies", py::tuple());
  types.check_failed =
      add_type(module, "CheckFailed", "A self-check found a wrong result.", PyExc_RuntimeError);
  types.internal = add_type(module, "Internal", "The library broke an invariant of its own.",
                            PyExc_RuntimeError);
  py::register_exception_translator(&translate);
}

void throw_no_solution(const std::string& message, py::object plan, py::object remedies) {
  const py::handle type(error_types().no_solution);
  py::object error = type(message);
  error.attr("plan") = std::move(plan);
  error.attr("remedies") = std::move(remedies);
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace tessera::python
