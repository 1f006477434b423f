#include "tessera/python/src/layer.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/overlap.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/layer/check_weights.hpp"
#include "tessera/python/src/csr.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/verify/verify.hpp"

namespace py = pybind11;

namespace tessera::python {
namespace {

Problem problem_of(const sparse::Csr<float>& weights, const LayerSettings& settings) {
  const double all = double(weights.rows) * double(weights.cols);
  return {.size = {1, weights.rows, weights.cols, settings.batch},
          .block = weights.block,
          .density = all > 0 ? double(weights.values.size()) / all : 0,
          .data_type = settings.data_type,
          .grad_a = settings.grad_input,
          .grad_w = settings.grad_weights};
}

template <class T>
void copy_to(const Matrix<T>& from, MatrixView<T> to) {
  for (std::int64_t r = 0; r < to.rows; ++r)
    for (std::int64_t c = 0; c < to.cols; ++c) to(r, c) = from(r, c);
}

// Writes the result of a layer without weights: a row's bias, or 0, and the activation of it.
template <class T>
void fill_rows(MatrixView<T> view, const layer::PassOptions& after) {
  for (std::int64_t r = 0; r < view.rows; ++r) {
    float value = after.bias.empty() ? 0.0f : after.bias[std::size_t(r)];
    host::activate(after.activation, {&value, 1});
    for (std::int64_t c = 0; c < view.cols; ++c) view(r, c) = T(value);
  }
}

template <class T>
void refuse_self_overlap(MatrixView<T> out) {
  if (overlaps_itself(footprint("out", out)))
    throw Error(ErrorCode::InvalidArgument,
                "out overlaps itself: some of its elements share memory; pass an array of its own, "
                "for example np.empty(...)");
}

}  // namespace

Layer::Layer(sparse::Csr<float> weights, const LayerSettings& settings)
    : settings_(settings), problem_(problem_of(weights, settings)) {
  const py::gil_scoped_release release;
  executor_ = make_executor(settings.threads);
  if (weights.rows == 0 || weights.cols == 0) {
    empty_ = std::move(weights);
    return;
  }
  layer_.emplace(problem_, host::read_host_cpu(), *executor_);
  layer_->set_weights(std::move(weights));
}

Layer::~Layer() = default;

template <class T>
MatrixView<T> Layer::operand(const Tensor& tensor, const char* name, std::int64_t features) const {
  const MatrixView<T> given = tensor.is_vector() ? tensor.column<T>() : tensor.matrix<T>();
  const bool is_turned = settings_.batch_first && !tensor.is_vector();
  const MatrixView<T> view = is_turned ? given.transposed() : given;
  if (view.rows != features)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} is {} x {}; this layer needs {}", name, given.rows, given.cols,
                            settings_.batch_first ? fmt::format("batch x {}", features)
                                                  : fmt::format("{} x batch", features)));
  return view;
}

py::object Layer::new_result(py::handle like, std::int64_t features, std::int64_t batch,
                             bool is_vector) const {
  std::vector<std::int64_t> shape = {features, batch};
  if (settings_.batch_first) std::swap(shape[0], shape[1]);
  if (is_vector) shape = {features};
  if (!is_numpy(like) && py::hasattr(like, "new_empty")) return like.attr("new_empty")(shape);
  return new_array(settings_.data_type, shape);
}

py::object Layer::new_gradients(py::handle like, std::int64_t count) const {
  std::vector<std::int64_t> shape = {count / problem_.block.area()};
  if (!problem_.block.is_element())
    shape.insert(shape.end(), {problem_.block.rows, problem_.block.cols});
  if (!is_numpy(like) && py::hasattr(like, "new_empty"))
    return like.attr("new_empty")(shape,
                                  py::arg("dtype") = py::module_::import("torch").attr("float32"));
  return new_array(DataType::Float, shape);
}

void Layer::require(Pass pass, const char* call) const {
  if (pass == Pass::Fwd || (pass == Pass::GradA ? settings_.grad_input : settings_.grad_weights))
    return;
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format("{}: this layer was made without this pass; make it with passes=\"all\"", call));
}

template <class T>
void Layer::run(Pass pass, MatrixView<const T> in, MatrixView<T> out,
                const layer::PassOptions& after) {
  if (in.cols == 0) return;
  const auto call = [&](MatrixView<T> to) {
    if (!layer_) return fill_rows(to, after);
    times_ = pass == Pass::Fwd ? layer_->forward<T>(in, to, after) : layer_->grad_a<T>(in, to);
  };
  const Footprint written = footprint("out", out);
  if (!share_bytes(footprint("in", in), written) &&
      !share_bytes(footprint("bias", after.bias), written))
    return call(out);
  Matrix<T> aside(out.rows, out.cols);
  call(aside.view());
  copy_to(aside, out);
}

py::object Layer::product(Pass pass, py::object in, const char* name, py::object out,
                          const StampedValues& values, const layer::PassOptions& after) {
  const bool is_forward = pass == Pass::Fwd;
  return with_type(settings_.data_type, [&]<class T>(T) {
    const Tensor from(in, name, settings_.data_type, Access::Read);
    const auto source = operand<const T>(from, name, is_forward ? cols() : rows());
    const std::int64_t features = is_forward ? rows() : cols();
    if (out.is_none()) out = new_result(in, features, source.cols, from.is_vector());
    const Tensor to(out, "out", settings_.data_type, Access::Write);
    const auto target = operand<T>(to, "out", features);
    if (target.cols != source.cols)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("out has a batch of {} but {} has one of {}", target.cols, name,
                              source.cols));
    const Turn turn(mutex_);
    refuse_self_overlap(target);
    take(values);
    run<T>(pass, source, target, after);
    return out;
  });
}

py::object Layer::forward(py::object s, py::object out, py::object bias,
                          host::Activation activation, const StampedValues& values) {
  if (bias.is_none())
    return product(Pass::Fwd, std::move(s), "s", std::move(out), values,
                   {.activation = activation});
  const Tensor tensor(bias, "bias", DataType::Float, Access::Read);
  const std::span<const float> numbers(tensor.values(rows()), std::size_t(rows()));
  return product(Pass::Fwd, std::move(s), "s", std::move(out), values,
                 {.bias = numbers, .activation = activation});
}

py::object Layer::grad_input(py::object dq, py::object out, const StampedValues& values) {
  require(Pass::GradA, "grad_input");
  return product(Pass::GradA, std::move(dq), "dq", std::move(out), values);
}

py::object Layer::grad_weights(py::object dq, py::object s, py::object out) {
  require(Pass::GradW, "grad_weights");
  return with_type(settings_.data_type, [&]<class T>(T) {
    const Tensor left(dq, "dq", settings_.data_type, Access::Read);
    const Tensor right(s, "s", settings_.data_type, Access::Read);
    const auto q_grad = operand<const T>(left, "dq", rows());
    const auto inputs = operand<const T>(right, "s", cols());
    if (q_grad.cols != inputs.cols)
      throw Error(
          ErrorCode::InvalidArgument,
          fmt::format("dq has a batch of {} but s has one of {}", q_grad.cols, inputs.cols));
    const bool makes_out = out.is_none();
    for (;;) {
      const std::int64_t count = stored_values();
      if (makes_out) out = new_gradients(dq, count);
      const Tensor to(out, "out", DataType::Float, Access::Write);
      const std::span<float> target(to.values(count), std::size_t(count));
      const Turn turn(mutex_);
      // Another thread may have changed the pattern since the size was read.
      if (makes_out && std::ssize(weights().values) != count) continue;
      if (!layer_ || inputs.cols == 0) {
        std::fill(target.begin(), target.end(), 0.0f);
      } else if (share_bytes(footprint("out", target), footprint("dq", q_grad)) ||
                 share_bytes(footprint("out", target), footprint("s", inputs))) {
        std::vector<float> aside(target.size());
        times_ = layer_->grad_w<T>(q_grad, inputs, aside);
        std::copy(aside.begin(), aside.end(), target.begin());
      } else {
        times_ = layer_->grad_w<T>(q_grad, inputs, target);
      }
      return out;
    }
  });
}

void Layer::take_values(std::span<const float> values) {
  stamp_ = 0;
  if (layer_) layer_->set_values(values);
}

void Layer::set_values(py::object values) {
  const Tensor from(values, "values", DataType::Float, Access::Read);
  const Turn turn(mutex_);
  const std::int64_t count = layer_ ? layer_->values() : 0;
  take_values({from.values(count), std::size_t(count)});
}

void Layer::update(const sparse::PatternChange& change) {
  const Turn turn(mutex_);
  stamp_ = 0;
  if (layer_)
    layer_->update_weights(change);
  else
    empty_ = sparse::with_change(empty_, change);
}

namespace {

// The origin of the blocks of a layer after a rewire.
struct Moved {
  std::vector<std::int32_t> origin;
  std::vector<std::vector<float>> states;  // of new blocks
};

// Changes a layer as a method says.
Moved rewired(host::HostLayer& layer, const train::Method& method,
              const train::RewireRequest& request) {
  const std::int64_t before = layer.weights().blocks();
  train::Rewired made = train::rewire(method, request);
  auto update = layer.prepare_update(made.change);
  Moved moved{sparse::positions_before(update.placed(), before), std::move(made.states)};
  layer.commit(std::move(update));
  if (made.values.empty()) return moved;
  std::vector<float> values = layer.weights().values;  // of elements
  for (std::size_t i = 0, next = 0; i < values.size(); ++i)
    if (moved.origin[i] < 0) values[i] = made.values[next++];
  layer.set_values(values);
  return moved;
}

}  // namespace

py::tuple Layer::rewire(const train::Method& method, const RewireArguments& arguments,
                        const py::list& dq, const py::list& s) {
  std::deque<Tensor> tensors;  // whose elements stay where they are
  std::vector<train::GradientBatch> batches;
  for (std::size_t i = 0; i < std::min(dq.size(), s.size()); ++i) {
    const Tensor& left = tensors.emplace_back(dq[i], "dq", DataType::Float, Access::Read);
    const Tensor& right = tensors.emplace_back(s[i], "s", DataType::Float, Access::Read);
    batches.push_back(
        {operand<const float>(left, "dq", rows()), operand<const float>(right, "s", cols())});
  }
  const Moved moved = [&] {
    const Turn turn(mutex_);
    if (!layer_) return Moved();
    stamp_ = 0;
    return rewired(*layer_, method,
                   {.weights = layer_->weights(),
                    .fraction = arguments.fraction,
                    .batches = batches,
                    .seed = arguments.seed,
                    .executor = *executor_,
                    .blocks = arguments.blocks,
                    .min_per_neuron = arguments.min_per_neuron,
                    .constant_fan_in = arguments.constant_fan_in,
                    .optimiser = arguments.optimiser ? &*arguments.optimiser : nullptr,
                    .optimiser_steps = arguments.optimiser_steps});
  }();
  py::array_t<std::int64_t> positions{py::ssize_t(moved.origin.size())};
  std::copy(moved.origin.begin(), moved.origin.end(), positions.mutable_data());
  py::list states;
  for (const std::vector<float>& array : moved.states)
    states.append(py::array_t<float>(py::ssize_t(array.size()), array.data()));
  return py::make_tuple(positions, states);
}

void Layer::set_weights(const sparse::Csr<float>& weights) {
  const Turn turn(mutex_);
  stamp_ = 0;
  if (layer_)
    layer_->set_weights(weights);
  else
    layer::check_weight_matrix(problem_, weights);
}

py::tuple Layer::arrays() const {
  const sparse::Csr<float> copy = [&] {
    const Turn turn(mutex_);
    return weights();
  }();
  return arrays_from_csr(copy);
}

py::array Layer::values() const {
  for (;;) {
    const std::int64_t count = stored_values();
    std::vector<std::int64_t> shape = {count / problem_.block.area()};
    if (!problem_.block.is_element())
      shape.insert(shape.end(), {problem_.block.rows, problem_.block.cols});
    py::array result = new_array(DataType::Float, shape);
    auto* const first = static_cast<float*>(result.mutable_data());
    const Turn turn(mutex_);
    const std::vector<float>& from = weights().values;
    // Another thread may have changed the pattern since the size was read.
    if (std::ssize(from) != count) continue;
    std::copy(from.begin(), from.end(), first);
    return result;
  }
}

std::int64_t Layer::stored_values() const {
  const Turn turn(mutex_);
  return std::ssize(weights().values);
}

std::int64_t Layer::memory_bytes() const {
  const Turn turn(mutex_);
  return layer_ ? layer_->memory_bytes() : 0;
}

py::tuple Layer::rounding(Pass pass) const {
  require(pass, "rounding");
  verify::Rounding rounding;
  if (layer_) {
    const Turn turn(mutex_);
    rounding = layer_->rounding(pass);
  }
  const Precision precision = precision_of(rounding.result);
  return py::make_tuple(precision.unit, precision.smallest, rounding.partials);
}

py::tuple Layer::times() const {
  const host::HostTimes last = [&] {
    const Turn turn(mutex_);
    return times_;
  }();
  return py::make_tuple(last.seconds, last.copy_seconds, last.kernel_seconds);
}

}  // namespace tessera::python
