#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/restrict.hpp"
#include "tessera/tests/layers/backends.hpp"
#include "tessera/tests/support/layer_results.hpp"
#include "tessera/train/layer.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::test {

// A layer of the setting's backend and type with operands. The problem has two groups.
template <class Setting>
class AnyLayer : public testing::Test {
 protected:
  using Backend = typename Setting::Backend;
  using Element = typename Setting::T;
  using L = typename Backend::Layer;
  static constexpr bool kHasBuckets = requires(const L& layer) { layer.buckets(0); };
  static_assert(train::Layer<L, Element> || !kHasBuckets);

  // Two groups; the sides are no multiples of the larger block.
  static Problem problem(BlockShape block = {1, 1}) {
    return problem_of(data_type_of<Element>(), {2, 21, 26, 12}, block);
  }

  explicit AnyLayer() : layer_(Backend::make(problem_, *executor_)) {}

  void use(const Problem& problem) {
    problem_ = problem;
    layer_ = Backend::make(problem_, *executor_);
  }
  void set(const std::vector<sparse::Csr<float>>& weights) {
    const auto misfit = layer_.set_weights(sparse::checked(weights));
    ASSERT_FALSE(misfit) << misfit->message;
  }

  Results<Element> zeros() const { return zero_results<Element>(layer_, s(), q_grad()); }
  Results<Element> run() { return run_passes<Element>(layer_, s(), q_grad()); }
  MatrixView<const Element> s() const { return s_.view(); }
  MatrixView<const Element> q_grad() const { return q_grad_.view(); }

  // All three passes within the bounds of rounding, for these weights.
  void expect_right(const std::vector<sparse::Csr<float>>& weights,
                    const Results<Element>& results) {
    const auto& [groups, x, y, z] = problem_.size;
    std::size_t first = 0;
    for (std::int64_t g = 0; g < groups; ++g) {
      const Range xs{g * x, (g + 1) * x}, ys{g * y, (g + 1) * y}, zs{0, z};
      const sparse::Csr<float>& given = weights[std::size_t(g)];
      const sparse::Csr<float> r = as_used(given);
      const auto s_g = s().sub(ys, zs), q_grad_g = q_grad().sub(xs, zs);
      expect_ok(verify::verify_product<Element>(r, s_g, results.q.view().sub(xs, zs),
                                                rounding(Pass::Fwd)));
      expect_ok(verify::verify_product<Element>(sparse::transpose(r), q_grad_g,
                                                results.s_grad.view().sub(ys, zs),
                                                rounding(Pass::GradA)));
      sparse::Csr<float> gradient = given;
      std::copy_n(results.gradients.begin() + std::ptrdiff_t(first), given.values.size(),
                  gradient.values.begin());
      first += given.values.size();
      expect_ok(verify::verify_gradient<Element>(r, as_elements(gradient), q_grad_g, s_g,
                                                 rounding(Pass::GradW)));
    }
  }

  static constexpr std::int64_t kPartials = 64;  // more than any of these layers adds up

  std::unique_ptr<Executor> executor_ = make_executor(2);
  Problem problem_ = problem();
  L layer_;
  Matrix<Element> s_ = random_matrix<Element>(52, 12, 5),
                  q_grad_ = random_matrix<Element>(42, 12, 6);

 private:
  // This computer's gradients are float, a machine's have the type of the layer. Machines of a pod
  // round sums before they send them.
  verify::Rounding rounding(Pass pass) const {
    if constexpr (!kHasBuckets) return layer_.rounding(pass);
    const bool is_float = pass == Pass::GradW && Backend::kSameBitsAfterUpdate;
    return {is_float ? DataType::Float : data_type_of<Element>(), DataType::Float, kPartials};
  }
  static void expect_ok(const verify::Verdict& verdict) {
    EXPECT_TRUE(verdict.ok()) << to_string(verdict);
  }
  sparse::Csr<float> as_elements(const sparse::Csr<float>& matrix) const {
    return sparse::cropped(sparse::with_block(matrix, {1, 1}), problem_.size.x, problem_.size.y);
  }
  sparse::Csr<float> as_used(const sparse::Csr<float>& given) const {
    sparse::Csr<float> rounded = as_elements(given);
    for (float& v : rounded.values) v = float(Element(v));
    return rounded;
  }
};

// Every backend, with the types that it is tested with.
using Settings =
    testing::Types<Setting<OnHost, float>, Setting<OnHost, Half>, Setting<OnHost, BFloat16>,
                   Setting<OnTiles, float>, Setting<OnTiles, Half>, Setting<OnTiles, BFloat16>,
                   Setting<OnTwoLayouts, float>, Setting<OnTwoLayouts, Half>, Setting<OnPod, float>,
                   Setting<OnPod, Half>, Setting<OnRanks, float>, Setting<OnRanks, BFloat16>>;

// Returns the code of the Error that the call throws.
template <class Call>
ErrorCode code_of(Call&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing is thrown";
  return ErrorCode::Internal;
}

}  // namespace tessera::test
