#pragma once

#include <pybind11/pybind11.h>

#include "tessera/python/src/method.hpp"
#include "tessera/study/plan_answer.hpp"

namespace tessera::python {

// Adds the class HostPlan, the forecasts of a layer on this computer, and the function that makes
// one to the module.
void add_host_plan(pybind11::module_& module);

}  // namespace tessera::python

template <>
struct pybind11::detail::type_caster<tessera::study::HostAnswer>
    : tessera::python::MadeCaster<tessera::study::HostAnswer> {};
