#pragma once

#include <pybind11/pybind11.h>

#include "tessera/device/machine.hpp"
#include "tessera/python/src/method.hpp"

namespace tessera::python {

// Adds the class Machine, a device::Machine, to the module.
void add_machine(pybind11::module_& module);

}  // namespace tessera::python

template <>
struct pybind11::detail::type_caster<tessera::device::Machine>
    : tessera::python::MadeCaster<tessera::device::Machine> {};
