#include "tessera/host/prepared.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/host/internal/check_views.hpp"
#include "tessera/host/internal/layer_state.hpp"
#include "tessera/host/internal/spmm_options.hpp"

namespace tessera::host {
namespace {

template <class T>
std::vector<float> floats_of(std::span<const T> values) {
  std::vector<float> floats(values.size());
  std::ranges::transform(values, floats.begin(), [](T value) { return float(value); });
  return floats;
}

// Checks the lists and returns the problem of a layer with this matrix.
template <class T, class Index, class Position>
Problem checked_problem(const CompressedRows<T, Index, Position>& a, Executor& executor,
                        const PreparedOptions& options) {
  internal::check_view("Prepared", a, internal::Values::Read, executor);
  const double area = double(a.rows) * double(a.cols);
  const auto values = double(std::ssize(a.values));
  return {.size = {1, a.rows, a.cols, options.batch},
          .block = a.block,
          .density = area > 0 && values > 0 ? std::min(1.0, values / area) : 1.0,
          .data_type = data_type_of<T>(),
          .grad_a = options.transpose};
}

template <class T, class Index, class Position>
sparse::Csr<float> copy_of(const CompressedRows<T, Index, Position>& a) {
  sparse::Csr<float> matrix;
  matrix.rows = a.rows;
  matrix.cols = a.cols;
  matrix.block = a.block;
  matrix.row_begin.assign(a.row_begin.begin(), a.row_begin.end());
  matrix.col.assign(a.col.begin(), a.col.end());
  matrix.values = floats_of(a.values);
  return matrix;
}

}  // namespace

// The scratch memory that no call uses now.
template <class T>
struct Prepared<T>::Pool {
  using Scratch = internal::ProductScratch<T>;

  std::unique_ptr<Scratch> take() {
    const std::lock_guard lock(mutex);
    if (unused.empty()) return std::make_unique<Scratch>();
    std::unique_ptr<Scratch> scratch = std::move(unused.back());
    unused.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex);
    unused.push_back(std::move(scratch));
  }

  std::mutex mutex;
  std::vector<std::unique_ptr<Scratch>> unused;
};

template <class T>
template <class Index, class Position>
Prepared<T>::Prepared(const CompressedRows<T, Index, Position>& a, Executor& executor,
                      const PreparedOptions& options)
    : layer_(checked_problem(a, executor, options), read_host_cpu(), executor) {
  layer_.set_weights(copy_of(a));
}

template <class T>
Prepared<T>::~Prepared() = default;

template <class T>
void Prepared<T>::product(Pass pass, MatrixView<const T> in, MatrixView<T> out, Executor& executor,
                          const SpmmOptions<T>& options) const {
  const DefaultFloatMode mode;
  const std::shared_lock lock(mutex_.get());
  layer_.state().caller.refuse_if_interrupted("spmm");
  const Dims& size = layer_.state().problem.size;
  const bool is_fwd = pass == Pass::Fwd;
  internal::check_operands<T>(is_fwd ? size.x : size.y, is_fwd ? size.y : size.x, in, out, options);
  const internal::HostGroup<T>& group =
      std::as_const(layer_.state().weights).template groups<T>()[0];
  Pool& pool = pool_.get();
  std::unique_ptr<internal::ProductScratch<T>> scratch = pool.take();
  const PassOptions cannot_stop;
  internal::PassControl control(cannot_stop);
  HostTimes times;
  const internal::Epilogue<T> after = internal::epilogue_of<T>(options, out);
  static_cast<void>(group.product(pass, layer_.state().weights.given(0),
                                  {in, out, after, control, times, *scratch, executor}));
  pool.give_back(std::move(scratch));
}

template <class T>
void Prepared<T>::spmm(MatrixView<const T> b, MatrixView<T> c, Executor& executor,
                       const SpmmOptions<T>& options) const {
  product(Pass::Fwd, b, c, executor, options);
}

template <class T>
void Prepared<T>::spmm_transposed(MatrixView<const T> b, MatrixView<T> c, Executor& executor,
                                  const SpmmOptions<T>& options) const {
  if (!layer_.state().problem.grad_a)
    internal::refuse_spmm("the transpose was not prepared; set PreparedOptions::transpose");
  product(Pass::GradA, b, c, executor, options);
}

template <class T>
void Prepared<T>::set_values(std::span<const T> values) {
  const std::vector<float> floats = floats_of(values);
  const std::unique_lock lock(mutex_.get());
  layer_.set_values(floats);
}

template <class T>
void Prepared<T>::update(const sparse::PatternChange& change) {
  const std::unique_lock lock(mutex_.get());
  layer_.update_weights(change);
}

#define TESSERA_PREPARED_FROM(T, Index, Position)                                      \
  template Prepared<T>::Prepared(const CompressedRows<T, Index, Position>&, Executor&, \
                                 const PreparedOptions&);
#define TESSERA_PREPARED(T)                            \
  template class Prepared<T>;                          \
  TESSERA_PREPARED_FROM(T, std::int32_t, std::int32_t) \
  TESSERA_PREPARED_FROM(T, std::int32_t, std::int64_t) \
  TESSERA_PREPARED_FROM(T, std::int64_t, std::int64_t)
TESSERA_PREPARED(float)
TESSERA_PREPARED(Half)
TESSERA_PREPARED(BFloat16)
#undef TESSERA_PREPARED_FROM
#undef TESSERA_PREPARED

}  // namespace tessera::host
