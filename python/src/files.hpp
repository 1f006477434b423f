#pragma once

#include <pybind11/pybind11.h>

namespace tessera::python {

// Adds the reader and the writer of matrix files to the module.
void add_files(pybind11::module_& module);

}  // namespace tessera::python
