#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "tessera/host/pass_options.hpp"

namespace tessera::python {

// Returns the activation of that name. Throws InvalidArgument for a name that is none.
host::Activation activation_of(const std::string& name);

// Adds the products on SciPy's and torch's arrays as they are: _spmm and _sddmm.
void add_products(pybind11::module_& module);

}  // namespace tessera::python
