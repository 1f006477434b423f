#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>

namespace tessera::python {

// This hands an object of class T to a function as pybind11 does, but refuses None and objects
// whose
// __init__ was never called, as after `Layer.__new__(Layer)`. pybind11 itself would hand on memory
// that nobody has set. A class is bound with it by a specialisation of type_caster.
template <class T>
struct MadeCaster : pybind11::detail::type_caster_base<T> {
  bool load(pybind11::handle source, bool convert) {
    return !source.is_none() && this->template load_impl<MadeCaster>(source, convert);
  }
  void load_value(pybind11::detail::value_and_holder&& made) {
    if (!made.holder_constructed()) throw pybind11::reference_cast_error();
    pybind11::detail::type_caster_base<T>::load_value(std::move(made));
  }
};

// Throws TypeError in one line for arguments that `usage`, such as "forward(s, out=None)", does not
// take. The types of the arguments are named. A method may have been called on an object without
// __init__, too.
[[noreturn]] void refuse_arguments(const std::string& usage, const pybind11::args& args,
                                   const pybind11::kwargs& keywords, bool is_method = true);

// Returns an argument that is a text, in UTF-8. Throws TypeError for anything else, and for lone
// surrogates, which UTF-8 cannot say.
std::string text_of(pybind11::handle object, const char* name);

// Returns an argument that is the path of a file, as the system takes it. Throws TypeError for
// anything else, and InvalidArgument for a path that no file has: with a NUL, at which the system
// would cut it, or with a lone surrogate.
std::string path_of(pybind11::handle object);

// Adds a method with its documentation, and an overload that refuses all other arguments by
// refuse_arguments: pybind11's own message prints every argument, arrays in full.
template <class Class, class Method>
void add_method(pybind11::class_<Class>& type, const char* name, const std::string& usage,
                const char* doc, Method&& method, const auto&... arguments) {
  pybind11::options options;
  options.disable_function_signatures();
  const std::string text = usage + "\n\n" + doc;
  type.def(name, std::forward<Method>(method), text.c_str(), arguments...);
  type.def(name, [usage](const pybind11::args& args, const pybind11::kwargs& keywords) {
    refuse_arguments(usage, args, keywords);
  });
}

// Makes calls of a class that only a function returns a TypeError, which names that function.
template <class Class>
void refuse_construction(pybind11::class_<Class>& type, const char* maker) {
  pybind11::options options;
  options.disable_function_signatures();
  const auto refuse = [maker](const pybind11::args&,
                              const pybind11::kwargs&) -> std::unique_ptr<Class> {
    throw pybind11::type_error(std::string("objects of this class are made by ") + maker);
  };
  type.def(pybind11::init(refuse), "Raise TypeError.");
}

}  // namespace tessera::python
