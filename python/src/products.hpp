#pragma once

#include <pybind11/pybind11.h>

namespace tessera::python {

// Adds the products on SciPy's and torch's arrays as they are: _spmm and _sddmm.
void add_products(pybind11::module_& module);

}  // namespace tessera::python
