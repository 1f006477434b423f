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
#include "tessera/python/src/csr.hpp"
#include "tessera/python/src/tensor.hpp"
#include "tessera/sparse/convert.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace tessera::python {
namespace {

template <class T>
std::span<const T> span_of(const py::array& array) {
  return {static_cast<const T*>(array.data()), std::size_t(array.size())};
}

// Calls run(view) with a view of the arrays, or of their transpose: the arrays of compressed rows
// are those of compressed columns of the transpose.
template <class Index, class Run>
void with_index(const MatrixArrays& a, bool transposed, Run&& run) {
  const auto first = span_of<Index>(a.first), second = span_of<Index>(a.second);
  const auto data = span_of<float>(a.data);
  const std::int64_t rows = transposed ? a.cols : a.rows, cols = transposed ? a.rows : a.cols;
  if (a.format == "coo")
    return run(host::Coordinates<float, Index>{rows, cols, transposed ? second : first,
                                               transposed ? first : second, data});
  if ((a.format == "csc") != transposed)
    return run(host::CompressedColumns<float, Index>{rows, cols, first, second, data});
  run(host::CompressedRows<float, Index>{rows, cols, a.block, first, second, data});
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

// Calls run(view, executor) with a view of the matrix or its transpose. The products check the
// arrays themselves; only those that they refuse are checked again, for a message in the words of
// the caller's own arrays.
template <class Run>
void with_matrix(const MatrixArrays& a, bool transposed, int threads, Run&& run) {
  if (transposed && !a.block.is_element()) {
    const sparse::Csr<float> turned = sparse::transpose(csr_from_arrays(a));
    const host::CompressedRows<float, std::int32_t, std::int64_t> view{
        turned.rows, turned.cols, turned.block, turned.row_begin, turned.col, turned.values};
    return with_executor(threads, [&](Executor& executor) { run(view, executor); });
  }
  try {
    with_executor(threads, [&](Executor& executor) {
      const auto call = [&](const auto& view) { run(view, executor); };
      if (a.first.itemsize() == 4) return with_index<std::int32_t>(a, transposed, call);
      with_index<std::int64_t>(a, transposed, call);
    });
  } catch (const Error& error) {
    if (error.code() == ErrorCode::BadInput) csr_from_arrays(a);
    throw;
  }
}

// Refuses a call whose result has no old values, unless it does not read them.
void require_old_values(const py::object& out, float beta) {
  if (out.is_none() && beta != 0)
    throw Error(ErrorCode::InvalidArgument,
                "beta is not 0, but there is no out whose old values it multiplies");
}

}  // namespace

host::Activation activation_of(const std::string& name) {
  for (const auto kind : {host::Activation::None, host::Activation::Relu, host::Activation::Gelu})
    if (name == to_string(kind)) return kind;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("activation is \"{}\"; it is none, relu or gelu", name));
}

namespace {

// Returns a matrix as it is given, or its transpose; a vector is one column.
template <class T>
MatrixView<T> matrix_of(const Tensor& tensor, bool transposed) {
  if (tensor.is_vector()) return tensor.column<T>();
  const MatrixView<T> given = tensor.matrix<T>();
  return transposed ? given.transposed() : given;
}

py::object spmm(const py::tuple& matrix, bool a_transposed, const py::object& b, bool b_transposed,
                py::object out, bool out_transposed, float alpha, float beta,
                const py::object& bias, const std::string& activation, int threads) {
  const MatrixArrays a(matrix);
  const Tensor in(b, "b", DataType::Float, Access::Read);
  const auto in_view = matrix_of<const float>(in, b_transposed);
  const std::int64_t rows = a_transposed ? a.cols : a.rows;
  host::SpmmOptions<float> options{
      .alpha = alpha, .beta = beta, .activation = activation_of(activation)};
  std::unique_ptr<Tensor> added;
  if (!bias.is_none()) {
    added = std::make_unique<Tensor>(bias, "bias", DataType::Float, Access::Read);
    options.bias = {added->values(rows), std::size_t(rows)};
  }
  require_old_values(out, beta);
  if (out.is_none() && in.is_vector())
    out = new_array(DataType::Float, {rows});
  else if (out.is_none())
    out = out_transposed ? new_array(DataType::Float, {in_view.cols, rows})
                         : new_array(DataType::Float, {rows, in_view.cols});
  const Tensor result(out, "out", DataType::Float, Access::Write);
  const auto out_view = matrix_of<float>(result, out_transposed);
  with_matrix(a, a_transposed, threads, [&](const auto& view, Executor& executor) {
    host::spmm<float>(view, in_view, out_view, executor, options);
  });
  return out;
}

py::object sddmm(const py::tuple& matrix, const py::object& left, const py::object& right,
                 py::object out, float alpha, float beta, int threads) {
  const MatrixArrays pattern(matrix);
  const Tensor a(left, "a", DataType::Float, Access::Read);
  const Tensor b(right, "b", DataType::Float, Access::Read);
  require_old_values(out, beta);
  if (out.is_none())
    out = new_array(DataType::Float,
                    {pattern.data.shape(), pattern.data.shape() + pattern.data.ndim()});
  const Tensor result(out, "out", DataType::Float, Access::Write);
  const auto a_view = a.matrix<const float>(), b_view = b.matrix<const float>();
  const std::span<float> values(result.values(pattern.data.size()),
                                std::size_t(pattern.data.size()));
  with_matrix(pattern, false, threads, [&](const auto& view, Executor& executor) {
    host::sddmm<float>(view, a_view, b_view, values, executor, {.alpha = alpha, .beta = beta});
  });
  return out;
}

}  // namespace

void add_products(py::module_& module) {
  module.def("_spmm", &spmm, "matrix"_a, "a_transposed"_a, "b"_a, "b_transposed"_a, "out"_a,
             "out_transposed"_a, "alpha"_a, "beta"_a, "bias"_a, "activation"_a, "threads"_a);
  module.def("_sddmm", &sddmm, "matrix"_a, "a"_a, "b"_a, "out"_a, "alpha"_a, "beta"_a, "threads"_a);
}

}  // namespace tessera::python
