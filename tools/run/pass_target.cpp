#include "tessera/tools/run/pass_target.hpp"

#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/restrict.hpp"

namespace tessera::tools {

std::vector<GroupShare> PassTarget::shares() const {
  std::vector<GroupShare> all;
  const Range outputs{0, weights_.rows}, inputs{0, weights_.cols};
  for (std::int64_t g = 0; g < weights_.groups(); ++g)
    all.push_back({g, outputs, inputs, outputs, inputs});
  return all;
}

sparse::CheckedCsr<float> PassTarget::matrix(Pass pass, const GroupShare& share) const {
  const auto matrix = sparse::inside(weights_.of_group(share.group), weights_.rows, weights_.cols);
  return pass == Pass::GradA ? sparse::transpose(matrix) : matrix;
}

std::vector<sparse::Csr<float>> PassTarget::collect(std::vector<sparse::Csr<float>> gradients) {
  for (sparse::Csr<float>& gradient : gradients)
    gradient = sparse::inside(std::move(gradient), weights_.rows, weights_.cols);
  return gradients;
}

}  // namespace tessera::tools
