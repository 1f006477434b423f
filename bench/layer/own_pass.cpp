#include "tessera/bench/layer/own_pass.hpp"

#include <limits>
#include <stdexcept>
#include <utility>

#include "tessera/base/half.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::bench {
namespace {

template <class T>
Matrix<T> drawn(std::int64_t features, std::int64_t z, bool batch_first, std::uint64_t seed) {
  return batch_first ? random_matrix<T>(z, features, seed) : random_matrix<T>(features, z, seed);
}

// A result is cleared before the pass that is compared, so that nothing left there is taken for it.
template <class T>
void clear(Matrix<T>& result) {
  for (T& element : result.elements()) element = T(std::numeric_limits<float>::quiet_NaN());
}

}  // namespace

OwnLayer::OwnLayer(const LayerCase& c, const sparse::Csr<float>& weights, host::HostOptions options)
    : executor(make_executor(c.threads)), layer(c.problem(), c.cpu, *executor, options) {
  layer.set_weights(weights);
}

template <class T>
OwnPass<T>::OwnPass(const LayerCase& c, const sparse::Csr<float>& weights, bool batch_first,
                    host::HostOptions options)
    : pass_(c.pass),
      batch_first_(batch_first),
      own_(c, weights, options),
      s_(drawn<T>(c.y, c.z, batch_first, 1)),
      q_(drawn<T>(c.x, c.z, batch_first, 2)),
      gradients_(weights.values.size(), std::numeric_limits<float>::quiet_NaN()) {
  check(c, weights);
}

template <class T>
host::HostTimes OwnPass<T>::run() {
  if (pass_ == Pass::Fwd) return own_.layer.template forward<T>(s(), in_order(q_, batch_first_));
  if (pass_ == Pass::GradA) return own_.layer.template grad_a<T>(q(), in_order(s_, batch_first_));
  return own_.layer.template grad_w<T>(q(), s(), gradients_);
}

template <class T>
void OwnPass<T>::check(const LayerCase& c, sparse::Csr<float> weights) {
  for (float& value : weights.values) value = float(T(value));  // as the layer holds it
  const bool is_forward = pass_ == Pass::Fwd;
  if (pass_ != Pass::GradW) clear(is_forward ? q_ : s_);
  run();
  verify::Verdict verdict;
  // GradW adds one partial sum for each panel of columns to a row.
  const verify::Rounding rounding{parse_data_type(c.type), DataType::Float,
                                  1 + c.z / 64 + c.y / 16};
  if (is_forward) {
    verdict = verify::verify_product<T>(weights, some_columns(s()), some_columns(q()), rounding);
  } else if (pass_ == Pass::GradA) {
    verdict = verify::verify_product<T>(sparse::transpose(weights), some_columns(q()),
                                        some_columns(s()), rounding);
  } else if (weights.values.size() * std::size_t(c.z) <= 500'000'000) {  // a second or two
    sparse::Csr<float> gradient = weights;
    gradient.values = gradients_;
    verdict = verify::verify_gradient<T>(weights, gradient, q(), s(),
                                         {DataType::Float, DataType::Float, 1 + c.z / 16});
  }
  if (!verdict.ok()) throw std::runtime_error(c.name() + ": wrong result, " + to_string(verdict));
}

template class OwnPass<float>;
template class OwnPass<Half>;
template class OwnPass<BFloat16>;

}  // namespace tessera::bench
