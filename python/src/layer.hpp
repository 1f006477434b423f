#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "tessera/base/executor.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/base/process.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/python/src/method.hpp"
#include "tessera/python/src/tensor.hpp"
#include "tessera/sparse/change.hpp"
#include "tessera/sparse/formats.hpp"
#include "tessera/train/rewire/method.hpp"

namespace tessera::python {

// The settings that a layer is made with, besides its weights.
struct LayerSettings {
  std::int64_t batch = 1;
  int threads = 1;
  DataType data_type = DataType::Float;
  bool batch_first = false;  // operands are [batch][features]
  bool grad_input = true;
  bool grad_weights = true;
};

// A pass without the interpreter lock, alone on its layer. Members are destroyed in reverse, so the
// mutex is free before the interpreter lock is waited for.
struct Turn {
  explicit Turn(OfProcess<std::mutex>& mutex) : lock(mutex.get()) {}
  pybind11::gil_scoped_release release;
  std::lock_guard<std::mutex> lock;
};

// A float32 matrix of torch: data_ptr() and stride().
struct TorchMatrix {
  std::uintptr_t address = 0;
  std::int64_t row_stride = 0, col_stride = 0;
};

// The values that a pass of torch computes with. A pass sets them first, unless it finds the same
// stamp from the pass before: a stamp names one content of one tensor, so several tensors and
// several threads may take turns at one layer. Stamp 0: the layer keeps the values that it has.
struct StampedValues {
  std::uintptr_t address = 0;  // [count] contiguous float32, checked by the caller
  std::int64_t count = 0;
  std::int64_t stamp = 0;
};

// The passes of a training step of torch have the batch first and are in float32. What several of
// them read is transposed once if it is small. Operands come as addresses, 0 for none: after other
// work between two steps the code that would take tensors apart is in no near cache, and costs as
// much as a small pass. The caller has checked types, shapes and that the memory is contiguous;
// results share none with anything else.
struct TrainForward {
  std::int64_t batch = 0;
  TorchMatrix x;            // [batch][inputs]
  TorchMatrix s;            // [inputs][batch]: receives the transpose of x, or is x's; 0: none
  std::uintptr_t q = 0;     // [batch][outputs]
  std::uintptr_t bias = 0;  // [outputs]
  host::Activation activation = host::Activation::None;  // of x * W^T + bias
  StampedValues values;
};

struct TrainBackward {
  std::int64_t batch = 0;
  TorchMatrix dq;                     // [batch][outputs]
  TorchMatrix dq_rows;                // [outputs][batch]: receives the transpose, or is dq's memory
  TorchMatrix s;                      // of train_forward
  std::uintptr_t dx = 0;              // [batch][inputs]
  std::uintptr_t gradients = 0;       // [values.count], of the values
  std::uintptr_t bias_gradients = 0;  // [outputs]
  std::uintptr_t q = 0;  // of a forward pass with relu; dq_rows is then not dq's memory
  StampedValues values;  // of train_forward
};

// The options of a rewire of a layer, beside its method and operands (train::RewireRequest).
struct RewireArguments {
  double fraction = 0;
  std::uint64_t seed = 0;
  std::int64_t blocks = -1, min_per_neuron = 0;
  bool constant_fan_in = false;
  std::optional<train::Optimiser> optimiser;
  std::int64_t optimiser_steps = 0;
};

// A host::HostLayer for Python. Any number of Python threads may share one: calls take turns at a
// lock of the layer, and run without the interpreter lock.
//
// Invariants:
//   1. Who holds mutex_ does not hold the interpreter lock and does not wait for it, so the two
//      never wait for each other.
//   2. layer_ is empty exactly if the weights have no rows or no columns; results are then empty or
//      zero, and weights are in empty_.
//   3. The executor outlives the layer.
class Layer {
 public:
  Layer(sparse::Csr<float> weights, const LayerSettings& settings);
  ~Layer();

  // These take arguments as Tensor does. `out` is None or the object that receives the result,
  // which is then returned; else the result is a new array of the kind of the operand. `out` may
  // overlap operands, whose copies are then not needed: the result is made aside and copied.
  // An operand of one dimension is one column, and so is its result.
  pybind11::object forward(pybind11::object s, pybind11::object out, pybind11::object bias,
                           host::Activation activation, const StampedValues& values = {});
  pybind11::object grad_input(pybind11::object dq, pybind11::object out,
                              const StampedValues& values = {});
  pybind11::object grad_weights(pybind11::object dq, pybind11::object s, pybind11::object out);

  // The passes of a training step of torch.
  void train_forward(const TrainForward& step);
  void train_backward(const TrainBackward& step);

  void set_values(pybind11::object values);
  pybind11::array values() const;
  void update(const sparse::PatternChange& change);
  void set_weights(const sparse::Csr<float>& weights);

  // Drops and grows blocks by a method; dq and s are lists of the operands of grad_weights,
  // float32. Returns (origin, states): for each block of the new pattern its position in the old
  // one, -1 if it is new, and the arrays of the optimiser's state of new blocks in their order,
  // none if all begin with 0.
  pybind11::tuple rewire(const train::Method& method, const RewireArguments& arguments,
                         const pybind11::list& dq, const pybind11::list& s);

  // Returns (indptr, indices, data) of the weights as new arrays.
  pybind11::tuple arrays() const;

  // Returns (result's unit, result's smallest, partial sums) of a pass (verify::Rounding).
  pybind11::tuple rounding(Pass pass) const;

  // Returns the seconds of the last pass, of its copies and of its kernels.
  pybind11::tuple times() const;

  const LayerSettings& settings() const { return settings_; }
  std::int64_t rows() const { return problem_.size.x; }
  std::int64_t cols() const { return problem_.size.y; }
  BlockShape block() const { return problem_.block; }
  std::int64_t stored_values() const;

  // Returns the bytes of the weights in all their forms.
  std::int64_t memory_bytes() const;

 private:
  template <class T>
  MatrixView<T> operand(const Tensor& tensor, const char* name, std::int64_t features) const;
  pybind11::object product(Pass pass, pybind11::object in, const char* name, pybind11::object out,
                           const StampedValues& values, const layer::PassOptions& after = {});
  template <class T>
  void run(Pass pass, MatrixView<const T> in, MatrixView<T> out, const layer::PassOptions& after);
  pybind11::object new_result(pybind11::handle like, std::int64_t features, std::int64_t batch,
                              bool is_vector) const;
  pybind11::object new_gradients(pybind11::handle like, std::int64_t count) const;
  const sparse::Csr<float>& weights() const { return layer_ ? layer_->weights() : empty_; }
  void copy_transposed(const TorchMatrix& from, MatrixView<float> to);
  void copy_where_positive(const TorchMatrix& from, const float* q, MatrixView<float> to);
  void copy_samples_where_positive(const TorchMatrix& from, const float* q, MatrixView<float> to);
  void require_values(std::int64_t count) const;
  void take_values(std::span<const float> values);
  void take(const StampedValues& values);
  void require(Pass pass, const char* call) const;

  LayerSettings settings_;
  Problem problem_;
  std::unique_ptr<Executor> executor_;
  std::optional<host::HostLayer> layer_;
  sparse::Csr<float> empty_;
  host::HostTimes times_;
  std::int64_t stamp_ = 0;               // of the values; 0: they are no tensor's
  mutable OfProcess<std::mutex> mutex_;  // a child of fork() has one of its own
};

// Adds the class to the module.
void add_layer(pybind11::module_& module);

}  // namespace tessera::python

template <>
struct pybind11::detail::type_caster<tessera::python::Layer>
    : tessera::python::MadeCaster<tessera::python::Layer> {};
