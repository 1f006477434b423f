#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace tessera::python {

// Adds the exception types of the package to the module and translates tessera::Error into them.
// Each is also one of Python's own types, so callers need not know ours: InvalidArgument and
// BadInput are ValueErrors, LimitExceeded is a MemoryError, the others are RuntimeErrors.
void add_errors(pybind11::module_& module);

// Throws NoSolution with its fields `plan` and `remedies`. Needs the interpreter lock.
[[noreturn]] void throw_no_solution(const std::string& message, pybind11::object plan,
                                    pybind11::object remedies);

}  // namespace tessera::python
