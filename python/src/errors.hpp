#pragma once

#include <pybind11/pybind11.h>

namespace tessera::python {

// Adds the exception types of the package to the module and translates tessera::Error into them.
// Each is also one of Python's own types, so callers need not know ours: InvalidArgument and
// BadInput are ValueErrors, LimitExceeded is a MemoryError, the others are RuntimeErrors.
void add_errors(pybind11::module_& module);

}  // namespace tessera::python
