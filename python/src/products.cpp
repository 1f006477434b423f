#include "tessera/python/src/products.hpp"

#include <fmt/format.h>
#include <pybind11/numpy.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/process.hpp"
#include "tessera/host/sddmm.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/python/src/tensor.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {
namespace {

// The arrays of a matrix, in the order of its format: (indptr, indices, data) for csr, bsr and csc,
// (rows, columns, data) for coo. The package has made all contiguous.
struct MatrixArrays {
  std::string format;
  py::array first, second, data;
  std::int64_t rows, cols;

  MatrixArrays(const std::string& kind, const py::tuple& arrays, std::int64_t x, std::int64_t y)
      : format(kind),
        first(arrays[0].cast<py::array>()),
        second(arrays[1].cast<py::array>()),
        data(arrays[2].cast<py::array>()),
        rows(x),
        cols(y) {}
};

template <class T>
std::span<const T> span_of(const py::array& array) {
  return {static_cast<const T*>(array.data()), std::size_t(array.size())};
}

template <class Index, class Run>
void with_index(const MatrixArrays& a, Run&& run) {
  const auto first = span_of<Index>(a.first), second = span_of<Index>(a.second);
  const auto data = span_of<float>(a.data);
  if (a.format == "csc")
    return run(host::CompressedColumns<float, Index>{a.rows, a.cols, first, second, data});
  if (a.format == "coo")
    return run(host::Coordinates<float, Index>{a.rows, a.cols, first, second, data});
  const BlockShape block =
      a.data.ndim() == 3 ? BlockShape{a.data.shape(1), a.data.shape(2)} : BlockShape{1, 1};
  run(host::CompressedRows<float, Index>{a.rows, a.cols, block, first, second, data});
}

// Calls run(view) with the view of the arrays.
template <class Run>
void with_view(const MatrixArrays& a, Run&& run) {
  if (a.first.itemsize() == 4 && a.second.itemsize() == 4) return with_index<std::int32_t>(a, run);
  with_index<std::int64_t>(a, run);
}

// The executors of the products of this process. Of those with several threads only the last one is
// kept: calls with many numbers of threads in turn would otherwise leave as many pools behind.
struct Executors {
  std::mutex mutex;  // held during a product
  std::unique_ptr<Executor> single = make_executor(1), several;
  int threads = 1;  // that `several` was asked for

  Executor& of(int count) {
    if (count == 1) return *single;
    if (several == nullptr || count != threads) {
      several = nullptr;  // ends its threads before others start
      several = make_executor(count);
      threads = count;
    }
    return *several;
  }
};

// Calls run(executor) with the executor of so many threads. Calls of several threads take turns,
// because an executor runs one loop at a time.
template <class Run>
void with_executor(int threads, Run&& run) {
  static OfProcess<Executors> of_process;
  const py::gil_scoped_release release;
  Executors& executors = of_process.get();
  const std::lock_guard lock(executors.mutex);
  run(executors.of(threads));
}

host::Activation activation_of(const std::string& name) {
  for (const auto kind : {host::Activation::None, host::Activation::Relu, host::Activation::Gelu})
    if (name == to_string(kind)) return kind;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("activation is \"{}\"; it is none, relu or gelu", name));
}

void spmm(const std::string& format, const py::tuple& arrays, std::int64_t rows, std::int64_t cols,
          const py::object& b, const py::object& out, float alpha, float beta,
          const py::object& bias, const std::string& activation, int threads) {
  const MatrixArrays a(format, arrays, rows, cols);
  const Tensor in(b, "b", DataType::Float, Access::Read);
  const Tensor result(out, "out", DataType::Float, Access::Write);
  host::SpmmOptions<float> options{
      .alpha = alpha, .beta = beta, .activation = activation_of(activation)};
  std::unique_ptr<Tensor> added;
  if (!bias.is_none()) {
    added = std::make_unique<Tensor>(bias, "bias", DataType::Float, Access::Read);
    options.bias = {added->values(rows), std::size_t(rows)};
  }
  const auto in_view = in.matrix<const float>();
  const auto out_view = result.matrix<float>();
  with_executor(threads, [&](Executor& executor) {
    with_view(a, [&](const auto& view) {
      host::spmm<float>(view, in_view, out_view, executor, options);
    });
  });
}

void sddmm(const std::string& format, const py::tuple& arrays, std::int64_t rows, std::int64_t cols,
           const py::object& left, const py::object& right, const py::object& out, float alpha,
           float beta, int threads) {
  const MatrixArrays pattern(format, arrays, rows, cols);
  const Tensor a(left, "a", DataType::Float, Access::Read);
  const Tensor b(right, "b", DataType::Float, Access::Read);
  const Tensor result(out, "out", DataType::Float, Access::Write);
  const auto a_view = a.matrix<const float>(), b_view = b.matrix<const float>();
  const std::span<float> values(result.values(pattern.data.size()),
                                std::size_t(pattern.data.size()));
  with_executor(threads, [&](Executor& executor) {
    with_view(pattern, [&](const auto& view) {
      host::sddmm<float>(view, a_view, b_view, values, executor, {.alpha = alpha, .beta = beta});
    });
  });
}

}  // namespace

void add_products(py::module_& module) {
  module.def("_spmm", &spmm, "format"_a, "arrays"_a, "rows"_a, "cols"_a, "b"_a, "out"_a, "alpha"_a,
             "beta"_a, "bias"_a, "activation"_a, "threads"_a);
  module.def("_sddmm", &sddmm, "format"_a, "arrays"_a, "rows"_a, "cols"_a, "a"_a, "b"_a, "out"_a,
             "alpha"_a, "beta"_a, "threads"_a);
}

}  // namespace tessera::python
