#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/python/src/csr.hpp"
#include "tessera/python/src/layer.hpp"
#include "tessera/python/src/method.hpp"
#include "tessera/python/src/products.hpp"
#include "tessera/python/src/rewire.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {
namespace {

std::unique_ptr<Layer> make_layer(const py::tuple& matrix, std::int64_t batch, int threads,
                                  const std::string& type, bool batch_first, bool grad_input,
                                  bool grad_weights) {
  return std::make_unique<Layer>(csr_from_arrays(MatrixArrays(matrix)),
                                 LayerSettings{.batch = batch,
                                               .threads = threads,
                                               .data_type = parse_data_type(type),
                                               .batch_first = batch_first,
                                               .grad_input = grad_input,
                                               .grad_weights = grad_weights});
}

Pass pass_of(const std::string& call) {
  if (call == "forward") return Pass::Fwd;
  if (call == "grad_input") return Pass::GradA;
  if (call == "grad_weights") return Pass::GradW;
  throw Error(ErrorCode::InvalidArgument,
              "call is \"" + call + "\"; it is forward, grad_input or grad_weights");
}

void update(Layer& layer, const py::array& removed_rows, const py::array& removed_cols,
            const py::array& added_rows, const py::array& added_cols) {
  layer.update(
      {places(removed_rows, removed_cols, "removed"), places(added_rows, added_cols, "added")});
}

// Returns the activation that a call names; most calls name none.
host::Activation given_activation(const py::object& name) {
  return name.is_none() ? host::Activation::None : activation_of(text_of(name, "activation"));
}

void train_forward(Layer& layer, std::int64_t batch, std::uintptr_t x, std::int64_t row_stride,
                   std::int64_t col_stride, std::uintptr_t s, std::int64_t s_row_stride,
                   std::int64_t s_col_stride, std::uintptr_t q, std::uintptr_t bias,
                   const py::object& activation, std::uintptr_t values, std::int64_t count,
                   std::int64_t stamp) {
  layer.train_forward({batch,
                       {x, row_stride, col_stride},
                       {s, s_row_stride, s_col_stride},
                       q,
                       bias,
                       given_activation(activation),
                       {values, count, stamp}});
}

void train_backward(Layer& layer, std::int64_t batch, std::uintptr_t dq, std::int64_t row_stride,
                    std::int64_t col_stride, std::uintptr_t dq_rows, std::int64_t rows_row_stride,
                    std::int64_t rows_col_stride, std::uintptr_t s, std::int64_t s_row_stride,
                    std::int64_t s_col_stride, std::uintptr_t dx, std::uintptr_t gradients,
                    std::uintptr_t bias_gradients, std::uintptr_t q, std::uintptr_t values,
                    std::int64_t count, std::int64_t stamp) {
  layer.train_backward({batch,
                        {dq, row_stride, col_stride},
                        {dq_rows, rows_row_stride, rows_col_stride},
                        {s, s_row_stride, s_col_stride},
                        dx,
                        gradients,
                        bias_gradients,
                        q,
                        {values, count, stamp}});
}

py::object forward(Layer& layer, py::object s, py::object out, py::object bias,
                   const py::object& activation) {
  return layer.forward(std::move(s), std::move(out), std::move(bias), given_activation(activation));
}

py::object grad_input(Layer& layer, py::object dq, py::object out) {
  return layer.grad_input(std::move(dq), std::move(out));
}

py::object forward_with(Layer& layer, py::object s, py::object out, py::object bias,
                        const py::object& activation, std::uintptr_t values, std::int64_t count,
                        std::int64_t stamp) {
  return layer.forward(std::move(s), std::move(out), std::move(bias), given_activation(activation),
                       {values, count, stamp});
}

py::object grad_input_with(Layer& layer, py::object dq, py::object out, std::uintptr_t values,
                           std::int64_t count, std::int64_t stamp) {
  return layer.grad_input(std::move(dq), std::move(out), {values, count, stamp});
}

constexpr const char* kForward = R"(Return Q = activation(W @ S + bias).

    s    [inputs, batch], or [batch, inputs] with order="batch_first": a NumPy array with any
         strides, or anything with __dlpack__ on the CPU, of the layer's dtype. Not copied.
         A vector [inputs] gives a vector [outputs].
    out  receives the result and is returned; None: a new array (a torch tensor for a torch s).
         It may overlap s and bias.
    bias [outputs], contiguous float32: added to each row of Q; None: none.
    activation "none", "relu" or "gelu" (by tanh), of Q with its bias.
    Raises TypeError for another dtype, ts.InvalidArgument for another shape.)";

constexpr const char* kGradInput = R"(Return dS = W.T @ dQ, the gradient of the operand.

    dq   [outputs, batch], or [batch, outputs] with order="batch_first"; out as in forward().)";

constexpr const char* kGradWeights = R"(Return the gradient of every stored value.

    Element k belongs to layer.weights.data[k]; the shape is that of layer.values. The values are
    (dQ @ S.T) where W has non-zeros. dq and s as in forward(); out is contiguous float32.)";

}  // namespace

void add_layer(py::module_& module) {
  py::class_<Layer> type(module, "Layer");
  add_method(type, "forward", "forward(s, out=None, bias=None, activation=\"none\")", kForward,
             &forward, "s"_a, "out"_a = py::none(), "bias"_a = py::none(),
             "activation"_a = py::none());
  add_method(type, "grad_input", "grad_input(dq, out=None)", kGradInput, &grad_input, "dq"_a,
             "out"_a = py::none());
  add_method(type, "grad_weights", "grad_weights(dq, s, out=None)", kGradWeights,
             &Layer::grad_weights, "dq"_a, "s"_a, "out"_a = py::none());
  add_method(type, "set_values", "set_values(values)",
             "Take new values for the same pattern, in the order of layer.weights.data: contiguous "
             "float32.",
             &Layer::set_values, "values"_a);
  type.def(py::init(&make_layer), "matrix"_a, "batch"_a, "threads"_a, "dtype"_a, "batch_first"_a,
           "grad_input"_a, "grad_weights"_a)
      .def("_train_forward", &train_forward)
      .def("_train_backward", &train_backward)
      .def("_forward_with", &forward_with)
      .def("_grad_input_with", &grad_input_with)
      .def("_values", &Layer::values)
      .def("_arrays", &Layer::arrays)
      .def("_update", &update, "removed_rows"_a, "removed_cols"_a, "added_rows"_a, "added_cols"_a)
      .def("_set_weights",
           [](Layer& layer, const py::tuple& matrix) {
             layer.set_weights(csr_from_arrays(MatrixArrays(matrix)));
           })
      .def(
          "_rewire",
          [](Layer& layer, const std::string& method, double fraction, const py::list& dq,
             const py::list& s, std::uint64_t seed, const std::string& pool,
             const std::string& exclude, std::optional<double> factor, const std::string& search,
             std::int64_t blocks, std::int64_t min_per_neuron, bool constant_fan_in,
             const std::string& rule, const std::vector<double>& numbers, std::int64_t steps) {
            return layer.rewire(train::parse_method(method, {pool, exclude, search, factor}),
                                {.fraction = fraction,
                                 .seed = seed,
                                 .blocks = blocks,
                                 .min_per_neuron = min_per_neuron,
                                 .constant_fan_in = constant_fan_in,
                                 .optimiser = optimiser_of(rule, numbers),
                                 .optimiser_steps = steps},
                                dq, s);
          },
          "method"_a, "fraction"_a, "dq"_a, "s"_a, "seed"_a, "pool"_a, "exclude"_a, "factor"_a,
          "search"_a, "blocks"_a, "min_per_neuron"_a, "constant_fan_in"_a, "rule"_a, "numbers"_a,
          "steps"_a)
      .def("_rounding", [](const Layer& layer,
                           const std::string& call) { return layer.rounding(pass_of(call)); })
      .def("_times", &Layer::times)
      .def_property_readonly("nnz", &Layer::stored_values,
                             "Number of stored values, with the zeros inside blocks.")
      .def_property_readonly("memory_bytes", &Layer::memory_bytes,
                             "Bytes of the weights, counted: the matrix and the form that each "
                             "pass reads. Scratch memory of passes is not in it.")
      .def_property_readonly(
          "shape", [](const Layer& layer) { return py::make_tuple(layer.rows(), layer.cols()); },
          "(outputs, inputs)")
      .def_property_readonly(
          "block",
          [](const Layer& layer) { return py::make_tuple(layer.block().rows, layer.block().cols); },
          "(rows, columns) of a block; (1, 1): single values")
      .def_property_readonly(
          "batch", [](const Layer& layer) { return layer.settings().batch; },
          "The batch that the layer is cut for; passes take any other one as well.")
      .def_property_readonly(
          "threads", [](const Layer& layer) { return layer.settings().threads; },
          "Threads of a pass; 0: one for each core.");
}

}  // namespace tessera::python
