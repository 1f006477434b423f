// A call that runs out of memory leaves the layer as it was.

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <utility>
#include <vector>

#include "tessera/distributed/cut.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/thread_ranks.hpp"
#include "tessera/sparse/part.hpp"
#include "tessera/tests/layers/any_layer.hpp"
#include "tessera/tests/support/failing_allocations.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::test {
namespace {

template <class Setting>
class LayerMemory : public AnyLayer<Setting> {
 protected:
  static constexpr long kStride = kIsSanitized ? 5 : 1;

  void SetUp() override {
    this->use(problem_of(data_type_of<typename Setting::T>(), {2, 12, 10, 4}, {1, 1}));
    this->s_ = random_matrix<typename Setting::T>(20, 4, 5);
    this->q_grad_ = random_matrix<typename Setting::T>(24, 4, 6);
    weights_ = random_weights(this->problem_, 0.3, 3);
    this->set(weights_);
    before_ = this->run();
  }

  // Every allocation of the call fails once, with a sanitizer one of five. The last call succeeds.
  // Returns how many allocations failed; a call that allocates nothing has none.
  long expect_same_layer_after_failures(const std::function<void()>& call) {
    const long failures = fail_each_allocation(
        call,
        [&] {
          ASSERT_EQ(this->layer_.weights(0), weights_[0]);
          ASSERT_EQ(this->layer_.weights(1), weights_[1]);
          ASSERT_EQ(this->run(), before_);
        },
        kStride);
    this->RecordProperty("failures", int(failures));
    return failures;
  }
  void expect_all_or_nothing(const std::function<void()>& call) {
    EXPECT_GT(expect_same_layer_after_failures(call), 0);
  }

  std::vector<sparse::Csr<float>> weights_;
  Results<typename Setting::T> before_;
};
using MemorySettings =
    testing::Types<Setting<OnHost, float>, Setting<OnHost, Half>, Setting<OnTiles, float>,
                   Setting<OnTwoLayouts, float>, Setting<OnPod, float>>;
TYPED_TEST_SUITE(LayerMemory, MemorySettings);

TYPED_TEST(LayerMemory, StaysAsItWasIfNewWeightsDoNotFit) {
  const auto others = random_weights(this->problem_, 0.5, 9);
  this->expect_all_or_nothing([&] { this->layer_.set_weights(sparse::checked(others)); });
  EXPECT_EQ(this->layer_.weights(1), others[1]);
  this->expect_right(others, this->run());
}

TYPED_TEST(LayerMemory, StaysAsItWasIfAChangeDoesNotFit) {
  const auto others = random_weights(this->problem_, 0.4, 9);
  const auto change = sparse::difference(this->weights_[1], others[1]);
  this->expect_all_or_nothing([&] { this->layer_.update_weights(change, 1); });
  this->weights_[1] = sparse::with_change(this->weights_[1], change);
  EXPECT_EQ(this->layer_.weights(1), this->weights_[1]);
  this->expect_right(this->weights_, this->run());
}

TYPED_TEST(LayerMemory, StaysAsItWasIfNewValuesDoNotFit) {
  const std::vector<float> values(this->weights_[1].values.size(), 0.5f);
  this->expect_same_layer_after_failures([&] { this->layer_.set_values(values, 1); });
  this->weights_[1].values = values;
  EXPECT_EQ(this->layer_.weights(1), this->weights_[1]);
  this->expect_right(this->weights_, this->run());
}

TYPED_TEST(LayerMemory, StaysAsItWasIfAPassRunsOutOfMemory) {
  for (int pass = 0; pass < 3; ++pass) {
    SCOPED_TRACE(pass);
    using T = typename TypeParam::T;
    Results<T> r = this->zeros();
    const auto call = [&] {
      if (pass == 0) this->layer_.template forward<T>(this->s(), r.q.view());
      if (pass == 1) this->layer_.template grad_a<T>(this->q_grad(), r.s_grad.view());
      if (pass == 2) this->layer_.template grad_w<T>(this->q_grad(), this->s(), r.gradients);
    };
    this->layer_.set_weights(sparse::checked(this->weights_));
    fail_each_allocation(
        call,
        [&] {
          ASSERT_EQ(this->run(), this->before_);
          this->layer_.set_weights(sparse::checked(this->weights_));
        },
        this->kStride);
  }
}

// All ranks change or none does: what could fail is done before. With 3 ranks, values travel
// between the rows and the columns of different ranks.
TEST(RanksMemory, ACommitAllocatesNothing) {
  Problem problem = problem_of(DataType::Float, {2, 24, 20, 4}, {1, 1});
  problem.grad_a = true;
  const auto weights = random_weights(problem, 0.3, 3), others = random_weights(problem, 0.5, 9);
  for (const int count : {1, 3}) {
    SCOPED_TRACE(count);
    std::barrier all_ranks(count);  // a barrier of a communicator allocates
    distributed::run_ranks(count, [&](distributed::Communicator& ranks) {
      const auto executor = make_executor(1);
      distributed::RankLayer layer(problem, host::read_host_cpu(), *executor, ranks);
      EXPECT_FALSE(layer.set_weights(sparse::checked(weights)));
      const auto wanted = sparse::rows_of(others[1], layer.outputs(1));
      layer::PreparedUpdate update =
          layer.prepare_update(sparse::difference(layer.weights(1), wanted), 1);
      all_ranks.arrive_and_wait();
      const long before = allocations();
      all_ranks.arrive_and_wait();
      layer.commit(std::move(update));
      all_ranks.arrive_and_wait();
      const long after = allocations();
      all_ranks.arrive_and_wait();
      EXPECT_EQ(after, before);
      EXPECT_EQ(layer.weights(1).col, wanted.col);
    });
  }
}

TEST(PlannerMemory, FindsTheSamePlanAfterEachFailure) {
  const Problem problem = problem_of(DataType::Float, {1, 24, 20, 8}, {1, 1});
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 6;
  const planner::Plan before = planner::plan_or_throw(problem, machine);
  const long start = allocations();
  planner::Plan plan = planner::plan_or_throw(problem, machine);
  const long stride = std::max((allocations() - start) / 50, 1L);
  fail_each_allocation([&] { plan = planner::plan_or_throw(problem, machine); },
                       [&] { ASSERT_EQ(plan, before); }, stride);
  EXPECT_EQ(plan, before);
}

TEST(PartitionerMemory, EncodesTheSameBucketsAfterEachFailure) {
  const Problem problem = problem_of(DataType::Float, {1, 24, 20, 8}, {1, 1});
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 6;
  const planner::Plan plan = planner::plan_or_throw(problem, machine, planner::sparse_options());
  const partitioner::TileGrid grid = runtime::tile_grid(problem, plan, machine);
  const sparse::Csr<float> weights = random_weights(problem, 0.4, 3)[0];
  const auto executor = make_executor(2);
  partitioner::Buckets expected, buckets;
  ASSERT_FALSE(partitioner::encode_into(expected, weights, grid, *executor));
  const auto encode = [&] {
    EXPECT_FALSE(partitioner::encode_into(buckets, weights, grid, *executor));
  };
  EXPECT_GT(fail_each_allocation(encode, [] {}), 10);
  EXPECT_EQ(buckets.meta, expected.meta);
  EXPECT_EQ(buckets.source, expected.source);
}

}  // namespace
}  // namespace tessera::test
