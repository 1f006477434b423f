#include "tessera/distributed/internal/batch_part.hpp"

#include "tessera/base/half.hpp"

namespace tessera::distributed::internal {

BatchPart::BatchPart(const RankSetting& setting, Communicator& ranks, const Problem& problem,
                     std::int64_t leaves, std::span<const sparse::Csr<float>> weights)
    : ranks_(ranks),
      batch_(problem.size.z),
      leaves_(leaves),
      own_(TreeSum(ranks, leaves, 0).leaves()),
      local_(problem, setting.cpu, *setting.executor) {
  local_.set_weights(weights);
}

// Leaves are pairs of columns, so that no panel of any rank ends with a single column.
Range BatchPart::leaf_columns(std::int64_t leaf) const {
  const std::int64_t pairs = batch_ / 2;
  return {pairs * leaf / leaves_ * 2, pairs * (leaf + 1) / leaves_ * 2};
}

Range BatchPart::columns() const {
  if (own_.size() == 0) return {0, 0};
  return {leaf_columns(own_.begin).begin, leaf_columns(own_.end - 1).end};
}

template <class T>
bool BatchPart::grad_w(MatrixView<const T> q_grad, MatrixView<const T> s,
                       std::span<float> gradients, const verify::RunOptions& options,
                       host::HostTimes& times) {
  TreeSum sum(ranks_, leaves_, std::ssize(gradients));
  leaf_.resize(gradients.size());
  for (std::int64_t leaf = own_.begin; leaf < own_.end; ++leaf) {
    const Range whole = leaf_columns(leaf), own = columns();
    const Range part{whole.begin - own.begin, whole.end - own.begin};
    verify::Checksums checksums;
    verify::RunOptions of_leaf = options;
    if (options.self_check != nullptr) of_leaf.self_check = &checksums;
    host::HostTimes seconds;
    [[maybe_unused]] const bool finished =
        local_.grad_w<T>(q_grad.sub({0, q_grad.rows}, part), s.sub({0, s.rows}, part), leaf_,
                         host::Accumulate::No, of_leaf, seconds);
    times += seconds;
    if (options.self_check != nullptr && checksums.compared > 0)
      verify::add_part(checksums, *options.self_check);
    sum.add(leaf_);
  }
  sum.finish(gradients);
  return true;
}

verify::Rounding BatchPart::rounding(Pass pass) const {
  verify::Rounding rounding = local_.rounding(pass);
  if (pass == Pass::GradW) rounding.partials += leaves_;
  return rounding;
}

template bool BatchPart::grad_w(MatrixView<const float>, MatrixView<const float>, std::span<float>,
                                const verify::RunOptions&, host::HostTimes&);
template bool BatchPart::grad_w(MatrixView<const Half>, MatrixView<const Half>, std::span<float>,
                                const verify::RunOptions&, host::HostTimes&);
template bool BatchPart::grad_w(MatrixView<const BFloat16>, MatrixView<const BFloat16>,
                                std::span<float>, const verify::RunOptions&, host::HostTimes&);

}  // namespace tessera::distributed::internal
