#include "tessera/host/internal/group.hpp"

#include <algorithm>
#include <numeric>

#include "tessera/base/even_part.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/host/internal/row_product.hpp"

namespace tessera::host::internal {
namespace {

using partitioner::BlockEdit;
using partitioner::Numbering;

std::vector<BlockEdit> edits_of(std::span<const sparse::PlacedBlock> change) {
  std::vector<BlockEdit> edits;
  edits.reserve(change.size());
  for (const sparse::PlacedBlock& b : change) edits.push_back({b.row, b.col, b.after});
  return edits;
}

// Returns the edits of the transpose: a counting sort by column.
std::vector<BlockEdit> transposed(std::span<const BlockEdit> edits, std::int64_t block_cols) {
  std::vector<std::size_t> next(std::size_t(block_cols) + 1);
  for (const BlockEdit& e : edits) ++next[std::size_t(e.col) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<BlockEdit> result(edits.size());
  for (const BlockEdit& e : edits) result[next[std::size_t(e.col)]++] = {e.col, e.row, e.number};
  return result;
}

// Returns the number of added less removed blocks before each block row.
std::vector<std::int32_t> shifts(std::span<const BlockEdit> edits, std::int64_t block_rows) {
  std::vector<std::int32_t> shift(std::size_t(block_rows) + 1);
  for (const BlockEdit& e : edits) shift[std::size_t(e.row) + 1] += 2 * int{e.number >= 0} - 1;
  std::partial_sum(shift.begin(), shift.end(), shift.begin());
  return shift;
}

}  // namespace

template <class T>
HostGroup<T>::HostGroup(const GroupSetting& setting, const sparse::Csr<float>& weights,
                        const PassForms& forms)
    : setting_(setting),
      fwd_(std::in_place_index<0>, setting.problem.size.z, setting.cpu, *setting.executor,
           setting.blocks_in_row),
      grad_a_(std::in_place_index<0>, setting.problem.size.z, setting.cpu, *setting.executor),
      grad_w_(std::in_place_index<0>, setting.problem.size.z, setting.cpu, *setting.executor) {
  set_product(fwd_, weights, forms[Pass::Fwd], HostDense<T>::Use::Product);
  if (setting_.problem.grad_a)
    set_product(grad_a_, weights, forms[Pass::GradA], HostDense<T>::Use::TransposedProduct);
  if (setting_.problem.grad_w && forms[Pass::GradW] == PassForm::Dense) {
    const auto& [problem, cpu, executor, own_kernel, in_row, rows] = setting_;
    grad_w_
        .template emplace<1>(HostDense<T>::Use::Gradient, problem.size.z, cpu, *executor,
                             own_kernel)
        .set_pattern(weights);
  }
}

template <class T>
template <class Form>
void HostGroup<T>::set_product(Form& product, const sparse::Csr<float>& weights, PassForm chosen,
                               typename HostDense<T>::Use use) {
  const auto& [problem, cpu, executor, own_kernel, in_row, rows] = setting_;
  if (chosen == PassForm::Dense)
    product.template emplace<1>(use, problem.size.z, cpu, *executor, own_kernel);
  if constexpr (std::variant_size_v < Form >> 2)
    if (chosen == PassForm::Packed) product.template emplace<2>(*executor);
  if (use == HostDense<T>::Use::TransposedProduct && chosen == PassForm::Cells)
    std::get<0>(product).set_pattern(transposed_pattern(weights));
  else
    std::visit([&](auto& form) { form.set_pattern(weights); }, product);
  set_values_of(product, weights);
}

template <class T>
template <class Form>
void HostGroup<T>::set_values_of(Form& product, const sparse::Csr<float>& weights) {
  std::visit(
      [&](auto& form) {
        if constexpr (std::is_same_v<std::decay_t<decltype(form)>, HostDense<T>>)
          form.set_values(weights);
        else
          form.set_values(weights.values);
      },
      product);
}

template <class T>
Range HostGroup<T>::part_rows(std::int64_t part) const {
  if (const HostProduct<T>* const cells = forward_cells()) return cells->rows_of(part);
  const std::int64_t block = setting_.problem.block.rows;
  const std::int64_t rows = setting_.problem.size_in_blocks().x / block;
  const Range blocks = even_part(rows, kOtherParts, part);
  return {blocks.begin * block, blocks.end * block};
}

template <class T>
std::int64_t HostGroup<T>::parts() const {
  return forward_cells() != nullptr ? forward_cells()->cell_rows() : kOtherParts;
}

// The parts that a thread changes follow one another.
template <class T>
Range HostGroup<T>::thread_rows(std::int64_t thread) const {
  const auto [first, end] = even_part(parts(), setting_.executor->threads(), thread);
  const std::int64_t begin = first < parts() ? part_rows(first).begin : 0;
  return {begin, first < end ? part_rows(end - 1).end : begin};
}

template <class T>
void HostGroup<T>::change_part(sparse::Csr<float>& weights, Range rows,
                               const layer::ChangePart& change) {
  const std::int64_t area = weights.block.area();
  const auto position = [&](std::int64_t row) {
    return weights.row_begin[std::size_t(row / weights.block.rows)] * area;
  };
  const std::int64_t first = position(rows.begin), end = position(rows.end);
  change(std::span(weights.values).subspan(std::size_t(first), std::size_t(end - first)), first);
}

// After each part, the cells of Fwd in its rows are filled, and the cells of GradA in columns that
// are complete. Columns that two threads share wait until both are done.
template <class T>
void HostGroup<T>::change_values(sparse::Csr<float>& weights, const layer::ChangePart& change) {
  const std::int64_t threads = setting_.executor->threads();
  HostProduct<T>* const fwd = std::get_if<0>(&fwd_);
  HostProduct<T>* const grad_a = setting_.problem.grad_a ? std::get_if<0>(&grad_a_) : nullptr;
  const std::int64_t columns = grad_a != nullptr ? grad_a->cell_columns() : 0;
  setting_.executor->for_each(threads, [&](std::int64_t thread) {
    const Range own = thread_rows(thread);
    std::int64_t column = 0;
    while (column < columns && grad_a->columns_of(column).begin < own.begin) ++column;
    const Range own_parts = even_part(parts(), threads, thread);
    for (std::int64_t part = own_parts.begin; part < own_parts.end; ++part) {
      change_part(weights, part_rows(part), change);
      if (fwd != nullptr) fwd->set_values_of_row(part, weights.values);
      for (; column < columns && grad_a->columns_of(column).end <= part_rows(part).end; ++column)
        grad_a->set_values_of_column(column, weights.values);
    }
  });
  setting_.executor->for_each(columns, [&](std::int64_t column) {
    const Range rows = grad_a->columns_of(column);
    for (std::int64_t thread = 0; thread < threads; ++thread)
      if (thread_rows(thread).begin <= rows.begin && rows.end <= thread_rows(thread).end) return;
    grad_a->set_values_of_column(column, weights.values);
  });
  if (fwd == nullptr) set_values_of(fwd_, weights);
  if (setting_.problem.grad_a && grad_a == nullptr) set_values_of(grad_a_, weights);
}

template <class T>
std::optional<GroupEdits> HostGroup<T>::prepare(const sparse::Csr<float>& weights,
                                                std::span<const sparse::PlacedBlock> change) {
  const Problem& problem = setting_.problem;
  HostProduct<T>* const fwd = std::get_if<0>(&fwd_);
  HostProduct<T>* const grad_a = std::get_if<0>(&grad_a_);
  if (fwd == nullptr || grad_a == nullptr || grad_w_.index() != 0) return std::nullopt;
  const std::vector<BlockEdit> edits = edits_of(change);
  const std::vector<std::int32_t> shift = shifts(edits, weights.block_rows());
  const std::int64_t blocks = weights.blocks() + shift.back();
  GroupEdits made;
  made.fwd = fwd->prepare(edits, shift, Numbering::RowByRow, blocks);
  if (!made.fwd) return std::nullopt;
  if (problem.grad_a) {
    made.grad_a = grad_a->prepare(transposed(edits, weights.block_cols()), shift,
                                  Numbering::ColumnByColumn, blocks);
    if (!made.grad_a) return std::nullopt;
  }
  return made;
}

template <class T>
void HostGroup<T>::apply(GroupEdits& edits) noexcept {
  if (edits.fwd) std::get<0>(fwd_).apply(*edits.fwd);
  if (edits.grad_a) std::get<0>(grad_a_).apply(*edits.grad_a);
}

template <class T>
void HostGroup<T>::set_values(const sparse::Csr<float>& weights) {
  set_values_of(fwd_, weights);
  if (setting_.problem.grad_a) set_values_of(grad_a_, weights);
}

// Cells that are cut for several columns have short pieces of rows, with which one column takes up
// to 2.2 times as long (Zen 5; with AVX2 kernels 2.5). Those for one column have fewer bytes
// than rows. Cells of blocks add one column to a sum after the other.
template <class T>
bool HostGroup<T>::takes_rows(const sparse::Csr<float>& weights, MatrixView<const T> s,
                              MatrixView<const T> q) const {
  if constexpr (std::is_same_v<T, float>) {
    if (!setting_.reads_rows || forward_cells() == nullptr) return false;
    if (s.cols > 1) return RowProduct::takes_samples(weights, s, q);
    const bool has_cells_of_column = setting_.problem.size.z == 1 && weights.block.is_element();
    return s.cols == 1 && !has_cells_of_column && RowProduct::takes(weights.block);
  }
  return false;
}

template <class T>
bool HostGroup<T>::product(Pass pass, const sparse::Csr<float>& weights,
                           const ProductCall<T>& call) const {
  if constexpr (std::variant_size_v < Forward >> 2)
    if (const auto* packed = std::get_if<HostPacked<T>>(&fwd_); packed && pass == Pass::Fwd)
      return packed->product(call);
  if constexpr (std::is_same_v<T, float>)
    if (pass == Pass::Fwd && takes_rows(weights, call.in, call.out))
      return RowProduct(weights).product(call);
  const HostProduct<T>& cells =
      pass == Pass::Fwd ? std::get<HostProduct<T>>(fwd_) : std::get<HostProduct<T>>(grad_a_);
  return cells.product(call);
}

template <class T>
bool HostGroup<T>::forward(const sparse::Csr<float>& weights, MatrixView<const T> s,
                           MatrixView<T> q, const Epilogue<T>& after, PassControl& control,
                           HostTimes& times) {
  if (takes_rows(weights, s, q))
    return product(Pass::Fwd, weights, {s, q, after, control, times, scratch_, *setting_.executor});
  return std::visit([&](auto& form) { return form.product(s, q, after, control, times); }, fwd_);
}

template <class T>
bool HostGroup<T>::grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                          const Epilogue<T>& after, PassControl& control, HostTimes& times) {
  return std::visit([&](auto& form) { return form.product(q_grad, s_grad, after, control, times); },
                    grad_a_);
}

template <class T>
bool HostGroup<T>::grad_w(const sparse::Csr<float>& weights, const DotOperands<T>& batch,
                          std::span<float> gradients, Accumulate accumulate, PassControl& control,
                          HostTimes& times) {
  if (auto* const dense = std::get_if<HostDense<T>>(&grad_w_))
    return dense->gradient(weights, batch, gradients, accumulate, control, times);
  return std::get<0>(grad_w_).gradient(weights, batch, gradients, accumulate, control, times);
}

template class HostGroup<float>;
template class HostGroup<Half>;
template class HostGroup<BFloat16>;

}  // namespace tessera::host::internal
