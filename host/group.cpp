#include "tessera/host/internal/group.hpp"

#include <algorithm>

#include "tessera/base/int_math.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::host::internal {
namespace {

// Returns the blocks of `matrix` in the order of sparse::transpose, by a counting sort by column.
std::vector<std::int32_t> transposed_order(const sparse::Csr<float>& matrix) {
  std::vector<std::int32_t> next(std::size_t(matrix.block_cols()) + 1), order(matrix.col.size());
  for (const std::int32_t col : matrix.col) ++next[std::size_t(col) + 1];
  for (std::size_t c = 1; c < next.size(); ++c) next[c] += next[c - 1];
  for (std::size_t i = 0; i < order.size(); ++i)
    order[std::size_t(next[std::size_t(matrix.col[i])]++)] = static_cast<std::int32_t>(i);
  return order;
}

}  // namespace

template <class T>
HostGroup<T>::HostGroup(const GroupSetting& setting, const sparse::Csr<float>& weights,
                        const DensePasses& dense)
    : setting_(setting),
      fwd_(std::in_place_index<0>, setting.problem.size.z, setting.cpu, *setting.executor),
      grad_a_(std::in_place_index<0>, setting.problem.size.z, setting.cpu, *setting.executor),
      grad_w_(std::in_place_index<0>, setting.problem.size.z, setting.cpu, *setting.executor) {
  set_product(fwd_, weights, dense[Pass::Fwd]);
  if (setting_.problem.grad_a) {
    set_product(grad_a_, sparse::transpose(weights), dense[Pass::GradA]);
    block_of_ = transposed_order(weights);
    transposed_.resize(weights.values.size());
  }
  if (setting_.problem.grad_w) set_gradient(weights, dense[Pass::GradW]);
}

template <class T>
void HostGroup<T>::set_product(Product& product, const sparse::Csr<float>& matrix, bool dense) {
  const auto& [problem, cpu, executor, own_kernel] = setting_;
  if (dense)
    product.template emplace<1>(HostDense<T>::Use::Product, problem.size.z, cpu, *executor,
                                own_kernel);
  std::visit(
      [&](auto& form) {
        form.set_pattern(matrix);
        form.set_values(matrix.values);
      },
      product);
}

template <class T>
void HostGroup<T>::set_gradient(const sparse::Csr<float>& matrix, bool dense) {
  const auto& [problem, cpu, executor, own_kernel] = setting_;
  if (dense)
    grad_w_.template emplace<1>(HostDense<T>::Use::Gradient, problem.size.z, cpu, *executor,
                                own_kernel);
  std::visit([&](auto& form) { form.set_pattern(matrix); }, grad_w_);
}

template <class T>
void HostGroup<T>::transpose_values(std::span<const float> values) {
  constexpr std::int64_t kChunk = 4096;  // blocks that a thread takes at once
  const BlockShape block = setting_.problem.block;
  const std::int64_t area = block.area(), count = std::ssize(block_of_);
  setting_.executor->for_each(ceil_div(count, kChunk), [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * kChunk, end = std::min(begin + kChunk, count);
    for (std::int64_t i = begin; area == 1 && i < end; ++i)
      transposed_[std::size_t(i)] = values[std::size_t(block_of_[std::size_t(i)])];
    for (std::int64_t i = begin; area > 1 && i < end; ++i) {
      const float* const from = values.data() + block_of_[std::size_t(i)] * area;
      float* const to = transposed_.data() + i * area;
      for (std::int64_t r = 0; r < block.rows; ++r)
        for (std::int64_t c = 0; c < block.cols; ++c)
          to[c * block.rows + r] = from[r * block.cols + c];
    }
  });
}

template <class T>
void HostGroup<T>::set_values(std::span<const float> values) {
  std::visit([&](auto& form) { form.set_values(values); }, fwd_);
  if (!setting_.problem.grad_a) return;
  transpose_values(values);
  std::visit([&](auto& form) { form.set_values(transposed_); }, grad_a_);
}

template <class T>
std::span<const T> HostGroup<T>::encode_gradients(std::span<const float> gradients) {
  const HostProduct<T>& cells = std::get<HostProduct<T>>(fwd_);
  encoded_gradients_.resize(cells.values().size());
  partitioner::refill<T, float>(cells.buckets(), gradients, encoded_gradients_, *setting_.executor);
  return encoded_gradients_;
}

template <class T>
bool HostGroup<T>::forward(MatrixView<const T> s, MatrixView<T> q, const Epilogue<T>& after,
                           PassControl& control, HostTimes& times) {
  return std::visit([&](auto& form) { return form.product(s, q, after, control, times); }, fwd_);
}

template <class T>
bool HostGroup<T>::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                          const Epilogue<T>& after, PassControl& control, HostTimes& times) {
  return std::visit([&](auto& form) { return form.product(q_grad, s_grad, after, control, times); },
                    grad_a_);
}

template <class T>
bool HostGroup<T>::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                          std::span<float> gradients, Accumulate accumulate, PassControl& control,
                          HostTimes& times) {
  return std::visit(
      [&](auto& form) { return form.gradient(q_grad, s, gradients, accumulate, control, times); },
      grad_w_);
}

template class HostGroup<float>;
template class HostGroup<Half>;
template class HostGroup<BFloat16>;

}  // namespace tessera::host::internal
