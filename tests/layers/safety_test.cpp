// Calls that no layer may take: at the same time, on shared memory, with illegal matrices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tessera/tests/layers/any_layer.hpp"

namespace tessera::test {
namespace {

template <class Setting>
class LayerSafety : public AnyLayer<Setting> {};
TYPED_TEST_SUITE(LayerSafety, Settings);

// Every call that changes the layer or its scratch memory.
template <class T, class L>
std::vector<std::function<void()>> all_calls(L& layer, MatrixView<const T> s,
                                             MatrixView<const T> q_grad, Results<T>& r,
                                             const std::vector<sparse::Csr<float>>& weights) {
  return {[=, &layer, &r] { layer.template forward<T>(s, r.q.view()); },
          [=, &layer, &r] { layer.template grad_a<T>(q_grad, r.s_grad.view()); },
          [=, &layer, &r] { layer.template grad_w<T>(q_grad, s, r.gradients); },
          [&] { layer.set_weights(sparse::checked(weights)); },
          [&] { layer.update_weights({}, 1); },
          [&] { layer.set_values(weights[0].values); }};
}

TYPED_TEST(LayerSafety, RefusesEveryCallInsideAnother) {
  using T = typename TypeParam::T;
  const auto weights = random_weights(this->problem_, 0.3, 3);
  this->set(weights);
  const Results<T> before = this->run();
  Results<T> inner = this->zeros(), outer = this->zeros();
  auto& layer = this->layer_;
  const auto calls = all_calls<T>(layer, this->s(), this->q_grad(), inner, weights);
  const layer::PassOptions options{.progress = [&](const auto&) {
    for (const auto& call : calls) EXPECT_EQ(code_of(call), ErrorCode::InvalidArgument);
    EXPECT_EQ(layer.weights(1), weights[1]) << "constant functions may be called";
  }};
  typename TestFixture::L::Cost cost;
  EXPECT_TRUE(layer.template forward<T>(this->s(), outer.q.view(), options, cost));
  EXPECT_TRUE(layer.template grad_a<T>(this->q_grad(), outer.s_grad.view(), options, cost));
  EXPECT_TRUE(layer.template grad_w<T>(this->q_grad(), this->s(), outer.gradients, options, cost));
  EXPECT_EQ(outer, before);
  EXPECT_EQ(inner, this->zeros());
  for (const auto& call : calls) EXPECT_NO_THROW(call()) << "the refusals ended with the passes";
}

TYPED_TEST(LayerSafety, GivesTwoThreadsRightResultsOrRefusals) {
  using T = typename TypeParam::T;
  this->set(random_weights(this->problem_, 0.3, 3));
  const Results<T> expected = this->run();
  std::atomic<int> right = 0, wrong = 0, refused = 0;
  const auto call_often = [&] {
    Matrix<T> q(expected.q.rows(), expected.q.cols());
    for (int i = 0; i < 20; ++i) try {
        this->layer_.template forward<T>(this->s(), q.view());
        ++(q == expected.q ? right : wrong);
      } catch (const Error&) {
        ++refused;
      }
  };
  {
    std::jthread beside(call_often);
    call_often();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(right, 0);
  EXPECT_EQ(right + refused, 40);
}

TYPED_TEST(LayerSafety, RefusesResultsThatShareMemoryWithOperands) {
  using T = typename TypeParam::T;
  this->set(random_weights(this->problem_, 0.3, 3));
  auto& layer = this->layer_;
  Matrix<T> both(94, 13);
  const auto part = [&](Range rows, Range cols) { return both.view().sub(rows, cols); };
  const Range s_rows{0, 52}, q_rows{51, 93}, first{0, 12}, last{1, 13};
  std::vector<float> gradients(std::size_t(layer.values()));
  Results<T> r = this->zeros();
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { layer.template forward<T>(part(s_rows, first), part(q_rows, first)); },
           [&] { layer.template grad_a<T>(part(q_rows, last), part(s_rows, last)); },
           [&] {
             const MatrixView<const T> inside{reinterpret_cast<const T*>(gradients.data()), 42, 12,
                                              0, 1};
             layer.template grad_w<T>(inside, this->s(), gradients);
           },
           [&] {
             const MatrixView<const T> inside{reinterpret_cast<const T*>(gradients.data()), 52, 12,
                                              0, 1};
             layer.template grad_w<T>(this->q_grad(), inside, gradients);
           },
           [&] { layer.template forward<T>(this->s(), {r.q.view().data, 42, 12, 11, 1}); }})
    EXPECT_EQ(code_of(call), ErrorCode::InvalidArgument);
  const Range apart{52, 94};
  EXPECT_NO_THROW(layer.template forward<T>(part(s_rows, first), part(apart, last)));
}

TYPED_TEST(LayerSafety, RefusesMatricesThatAreNotCanonical) {
  const auto weights = random_weights(this->problem_, 0.3, 3);
  this->set(weights);
  const Results<typename TypeParam::T> before = this->run();
  const std::vector<std::function<void(sparse::Csr<float>&)>> damages{
      [](auto& w) { w.col[1] = 40; },
      [](auto& w) { w.col[1] = -1; },
      [](auto& w) { w.row_begin.resize(5); },
      [](auto& w) { w.row_begin[3] = -1; },
      [](auto& w) { w.row_begin.back() = 1 << 30; },
      [](auto& w) { w.values.resize(1); },
      [](auto& w) { w.values.resize(100'000, 1.0f); },
      [](auto& w) { w.col.resize(1); },
      [](auto& w) { w.col[1] = w.col[0]; }};
  for (std::size_t i = 0; i < damages.size(); ++i) {
    SCOPED_TRACE(i);
    auto damaged = weights;
    damages[i](damaged[1]);
    EXPECT_EQ(code_of([&] { this->layer_.set_weights(sparse::checked(damaged)); }),
              ErrorCode::BadInput);
    EXPECT_EQ(this->layer_.weights(1), weights[1]);
  }
  EXPECT_EQ(this->run(), before);
}

}  // namespace
}  // namespace tessera::test
