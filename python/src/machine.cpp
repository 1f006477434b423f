#include "tessera/python/src/machine.hpp"

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <string>

#include "tessera/base/file.hpp"
#include "tessera/base/printable.hpp"
#include "tessera/python/src/method.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {

void add_machine(py::module_& module) {
  using device::Machine;
  const auto refusing = [](const char* usage) {
    return [usage](const py::args& args, const py::kwargs& keywords) -> Machine {
      refuse_arguments(usage, args, keywords, false);
    };
  };
  py::class_<Machine> type(module, "Machine");
  type.def(py::init([](const py::object& name) {
             return device::machine_preset(printable(text_of(name, "name")));  // quoted whole
           }),
           "name"_a)
      .def(py::init(refusing("Machine(name)")))
      .def_static(
          "from_file",
          [](const py::object& file) {
            const std::string path = path_of(file);
            return device::machine_from_json(read_file(path), path);
          },
          "path"_a, "Return the machine of a JSON file.")
      .def_static("from_file", refusing("Machine.from_file(path)"))
      .def_static(
          "from_json",
          [](const py::object& text) {
            return device::machine_from_json(text_of(text, "text"), "text");
          },
          "text"_a, "Return the machine of JSON text; \"base\" names a preset for missing keys.")
      .def_static("from_json", refusing("Machine.from_json(text)"))
      .def_static("names", &device::machine_names, "Return the names of the presets.")
      .def_static("names", refusing("Machine.names()"))
      .def_readonly("name", &Machine::name)
      .def_readonly("tiles", &Machine::tiles)
      .def_readonly("clock_hz", &Machine::clock_hz)
      .def_property_readonly("tile_memory_bytes",
                             [](const Machine& machine) { return machine.tile_memory.value; })
      .def(py::self == py::self);
  add_method(type, "to_json", "to_json()", "Return the machine as JSON with all keys.",
             &device::machine_to_json);
}

}  // namespace tessera::python
