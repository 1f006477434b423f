#include "tessera/pod/pod_layer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tessera/base/error.hpp"
#include "tessera/pod/plan_pod.hpp"
#include "tessera/tests/pod/pod_case.hpp"

namespace tessera::pod {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// The results of all passes, and their ledgers.
template <class T>
struct Results {
  Matrix<T> q, s_grad;
  std::vector<float> gradients;
  std::vector<PodLedger> ledgers;

  friend bool operator==(const Results&, const Results&) = default;
};

template <class T>
struct Operands {
  std::vector<sparse::CheckedCsr<float>> weights;
  Matrix<T> s, q_grad;
};

template <class T>
Operands<T> make_operands(const Problem& problem, bool signs, std::uint64_t seed) {
  const Dims& size = problem.size;
  return {make_weights(problem, signs, seed),
          make_operand<T>(size.g * size.y, size.z, signs, seed + 1),
          make_operand<T>(size.g * size.x, size.z, signs, seed + 2)};
}

template <class T>
Results<T> run_all(PodLayer& layer, const Operands<T>& given) {
  const Problem& problem = layer.plan().problem;
  const Dims& size = problem.size;
  EXPECT_FALSE(layer.set_weights(given.weights).has_value());
  Results<T> results{Matrix<T>(size.g * size.x, size.z),
                     Matrix<T>(size.g * size.y, size.z),
                     std::vector<float>(std::size_t(layer.values())),
                     {}};
  results.ledgers.push_back(layer.forward<T>(given.s.view(), results.q.view()));
  if (problem.grad_a)
    results.ledgers.push_back(layer.grad_a<T>(given.q_grad.view(), results.s_grad.view()));
  if (problem.grad_w)
    results.ledgers.push_back(
        layer.grad_w<T>(given.q_grad.view(), given.s.view(), results.gradients));
  return results;
}

// Adds R or its transpose times `in` of one group to `out`, in double.
void multiply(const sparse::Csr<float>& r, bool transposed, const Matrix<double>& in,
              std::int64_t first_in, Matrix<double>& out, std::int64_t first_out) {
  const auto at = [](std::int64_t block, std::int64_t side, std::int64_t i) {
    return block * side + i;
  };
  for (std::int64_t row = 0; row < r.block_rows(); ++row)
    for (std::int64_t b = r.row_begin[row]; b < r.row_begin[row + 1]; ++b)
      for (std::int64_t i = 0; i < r.block.area(); ++i) {
        std::int64_t x = at(row, r.block.rows, i / r.block.cols);
        std::int64_t y = at(r.col[b], r.block.cols, i % r.block.cols);
        if (transposed) std::swap(x, y);
        if (first_out + x >= out.rows() || first_in + y >= in.rows()) continue;
        for (std::int64_t z = 0; z < in.cols(); ++z)
          out(first_out + x, z) += double(r.values[b * r.block.area() + i]) * in(first_in + y, z);
      }
}

template <class T>
Matrix<double> widened(const Matrix<T>& matrix) {
  Matrix<double> result(matrix.rows(), matrix.cols());
  for (std::size_t i = 0; i < matrix.elements().size(); ++i)
    result.elements()[i] = double(float(matrix.elements()[i]));
  return result;
}

// Results of +1 and -1 are whole numbers that every type holds.
template <class T>
void expect_exact(const Problem& problem, const Operands<T>& given, const Results<T>& got) {
  const Dims& size = problem.size;
  const Matrix<double> s = widened(given.s), q_grad = widened(given.q_grad);
  std::size_t next = 0;
  for (std::int64_t g = 0; g < size.g; ++g) {
    // One group at a time, so that padding of its last block meets the end of its operands.
    Matrix<double> s_of(size.y, size.z), dq_of(size.x, size.z), q(size.x, size.z),
        ds(size.y, size.z);
    for (std::int64_t z = 0; z < size.z; ++z) {
      for (std::int64_t y = 0; y < size.y; ++y) s_of(y, z) = s(g * size.y + y, z);
      for (std::int64_t x = 0; x < size.x; ++x) dq_of(x, z) = q_grad(g * size.x + x, z);
    }
    const sparse::Csr<float>& r = *given.weights[std::size_t(g)];
    multiply(r, false, s_of, 0, q, 0);
    multiply(r, true, dq_of, 0, ds, 0);
    for (std::int64_t z = 0; z < size.z; ++z) {
      for (std::int64_t x = 0; x < size.x; ++x)
        ASSERT_EQ(double(float(got.q(g * size.x + x, z))), q(x, z)) << g << " " << x << " " << z;
      for (std::int64_t y = 0; problem.grad_a && y < size.y; ++y)
        ASSERT_EQ(double(float(got.s_grad(g * size.y + y, z))), ds(y, z)) << g << " " << y;
    }
    if (!problem.grad_w) continue;
    for (std::int64_t row = 0; row < r.block_rows(); ++row)
      for (std::int64_t b = r.row_begin[row]; b < r.row_begin[row + 1]; ++b)
        for (std::int64_t i = 0; i < r.block.area(); ++i) {
          const std::int64_t x = row * r.block.rows + i / r.block.cols;
          const std::int64_t y = std::int64_t(r.col[b]) * r.block.cols + i % r.block.cols;
          double sum = 0;
          if (x < size.x && y < size.y)
            for (std::int64_t z = 0; z < size.z; ++z) sum += dq_of(x, z) * s_of(y, z);
          ASSERT_EQ(double(got.gradients[next++]), sum) << g << " " << x << " " << y;
        }
  }
}

template <class T>
void expect_right_on_every_grid(const Problem& problem, const device::Pod& pod) {
  const auto executor = make_executor(ExecutorKind::Threads, 2);
  const Operands<T> given = make_operands<T>(problem, /*signs=*/true, 11);
  std::set<std::int64_t> devices;
  for (const auto& family : internal::grid_families(problem, pod, {}))
    for (const PodGrid& grid : family.layouts) {
      devices.insert(grid.devices());
      const std::int64_t serial_parts = 1 + (grid.devices() % 3 == 0);
      if (serial_parts > internal::share_size(problem, family.parts, 1).z) continue;
      SCOPED_TRACE(to_string(grid));
      PodLayer layer(plan_of_grid(problem, pod, grid, serial_parts), device::ExchangeMode::Share,
                     DeviceOrder::OneAfterAnother, *executor);
      expect_exact<T>(problem, given, run_all<T>(layer, given));
    }
  EXPECT_GT(devices.size(), 4U);
}

TEST(PodLayer, IsExactOnEveryGridOfTwelveDevices) {
  // Sizes that no count of parts divides, blocks that pad the last row and column, and groups.
  expect_right_on_every_grid<float>(make_problem({1, 13, 11, 7}, {1, 1}, 0.4, DataType::Float),
                                    small_pod(small_machine(3), 2, 6));
  expect_right_on_every_grid<Half>(make_problem({1, 22, 27, 5}, {4, 4}, 0.5, DataType::Half),
                                   small_pod(small_machine(3), 3, 4));
  expect_right_on_every_grid<BFloat16>(make_problem({3, 9, 8, 3}, {2, 3}, 0.6, DataType::BFloat16),
                                       small_pod(small_machine(4), 2, 3));
}

Problem training() { return make_problem({1, 40, 36, 12}, {1, 1}, 0.3, DataType::Half); }

PodGrid grid_of(Dims inner, Dims outer) { return {{{inner}, {outer}}}; }

TEST(PodLayer, HasTheSameBitsForAnyThreadsOrderAndExchange) {
  const Problem problem = training();
  const PodPlan plan = plan_of_grid(problem, small_pod(small_machine(5), 2, 6),
                                    grid_of({1, 1, 2, 1}, {1, 2, 1, 3}), 2);
  const Operands<Half> given = make_operands<Half>(problem, /*signs=*/false, 5);
  const auto results = [&](int threads, DeviceOrder order, device::ExchangeMode mode) {
    const auto executor = make_executor(ExecutorKind::Threads, threads);
    PodLayer layer(plan, mode, order, *executor);
    return run_all<Half>(layer, given);
  };
  const auto first = results(1, DeviceOrder::OneAfterAnother, device::ExchangeMode::Share);
  for (const int threads : {1, 3})
    for (const auto order : {DeviceOrder::OneAfterAnother, DeviceOrder::SideBySide})
      for (const auto mode : {device::ExchangeMode::Share, device::ExchangeMode::Isolate})
        EXPECT_EQ(results(threads, order, mode), first) << threads;
}

TEST(PodLayer, KeepsTheBoundOfItsRoundings) {
  const Problem problem = training();
  const auto executor = make_executor(1);
  for (const Dims outer : {Dims{1, 2, 3, 1}, Dims{1, 1, 1, 6}, Dims{1, 6, 1, 1}}) {
    PodLayer layer(
        plan_of_grid(problem, small_pod(small_machine(5), 2, 6), grid_of({1, 1, 2, 1}, outer)),
        device::ExchangeMode::Share, DeviceOrder::OneAfterAnother, *executor);
    const Operands<Half> given = make_operands<Half>(problem, /*signs=*/false, 9);
    const Results<Half> got = run_all<Half>(layer, given);
    sparse::Csr<float> rounded = *given.weights[0];
    for (float& value : rounded.values) value = float(Half(value));
    const auto fwd = verify::verify_product<Half>(rounded, given.s.view(), got.q.view(),
                                                  layer.rounding(Pass::Fwd));
    EXPECT_TRUE(fwd.ok()) << to_string(fwd);
    sparse::Csr<float> gradient = layer.weights();
    layer.grad_w<Half>(given.q_grad.view(), given.s.view(), gradient.values);
    EXPECT_EQ(gradient.values, got.gradients);
    const auto grad_w = verify::verify_gradient<Half>(rounded, gradient, given.q_grad.view(),
                                                      given.s.view(), layer.rounding(Pass::GradW));
    EXPECT_TRUE(grad_w.ok()) << to_string(grad_w);
  }
}

// The plan has the counts of the fullest part, the ledger those of the slowest device. Collectives
// of operands cost the same.
TEST(PodLayer, CostsNearlyWhatThePlanSays) {
  const Problem problem = make_problem({1, 512, 384, 96}, {1, 1}, 0.1, DataType::Half);
  const Operands<Half> given = make_operands<Half>(problem, false, 3);
  const PodPlan plan = with_pattern(plan_of_grid(problem, small_pod(small_machine(16), 2, 6),
                                                 grid_of({1, 2, 1, 1}, {1, 1, 2, 3}), 2),
                                    given.weights);
  const auto executor = make_executor(2);
  PodLayer layer(plan, device::ExchangeMode::Share, DeviceOrder::SideBySide, *executor);
  const auto got = run_all<Half>(layer, given);
  for (std::size_t p = 0; p < plan.passes.size(); ++p) {
    const PodPass& planned = plan.passes[p];
    const PodLedger& ledger = got.ledgers[p];
    EXPECT_NEAR(ledger.device_seconds() / planned.device_seconds, 1, 0.06) << to_string(ledger);
    EXPECT_NEAR(ledger.seconds() / planned.seconds(), 1, 0.03) << to_string(ledger);
    EXPECT_EQ(ledger.devices_simulated, 12);
  }
  EXPECT_NEAR(got.ledgers[0].collective_seconds(), plan.passes[0].collective_seconds, 1e-12);
}

TEST(PodLayer, NamesTheSlowestDeviceAndTheBytesOfEachLevel) {
  Problem problem = training();
  problem.grad_a = problem.grad_w = false;
  const PodPlan plan =
      plan_of_grid(problem, small_pod(small_machine(5), 2, 6), grid_of({1, 2, 1, 1}, {1, 2, 1, 1}));
  const auto executor = make_executor(1);
  PodLayer layer(plan, device::ExchangeMode::Share, DeviceOrder::OneAfterAnother, *executor);
  // All non-zeros are in the last rows, which the last device has.
  sparse::Csr<float> matrix = *make_weights(problem, true, 1)[0];
  for (std::int64_t row = 0; row < 20; ++row) {
    const std::int64_t count = matrix.row_begin[row + 1] - matrix.row_begin[row];
    matrix.col.erase(matrix.col.begin() + matrix.row_begin[row],
                     matrix.col.begin() + matrix.row_begin[row] + count);
    matrix.values.resize(matrix.col.size());
    for (std::int64_t next = row + 1; next <= matrix.rows; ++next) matrix.row_begin[next] -= count;
  }
  ASSERT_FALSE(layer.set_weights(matrix).has_value());
  const Matrix<Half> s = make_operand<Half>(36, 12, true, 2);
  Matrix<Half> q(40, 12);
  const PodLedger ledger = layer.forward<Half>(s.view(), q.view());
  ASSERT_EQ(ledger.steps.size(), 3U);  // gather, devices, barrier
  ASSERT_NE(ledger.steps[1].slowest(), nullptr);
  EXPECT_GE(ledger.steps[1].slowest()->device, 2);
  // Over a pair each device sends the half that it has gathered to its neighbour.
  const double bytes = 36 * 12 * 2;
  EXPECT_EQ(ledger.level_bytes(), (std::vector<double>{4 * bytes / 2, 4 * bytes / 4}));
  EXPECT_THAT(to_string(ledger), HasSubstr("slowest is device"));
}

TEST(PodLayer, FindsAFaultAndNamesItsDevice) {
  Problem problem = training();
  problem.grad_a = problem.grad_w = false;
  const PodPlan plan =
      plan_of_grid(problem, small_pod(small_machine(5), 2, 6), grid_of({1, 1, 2, 1}, {1, 1, 1, 3}));
  const auto executor = make_executor(2);
  for (const auto order : {DeviceOrder::OneAfterAnother, DeviceOrder::SideBySide}) {
    PodLayer layer(plan, device::ExchangeMode::Isolate, order, *executor);
    ASSERT_FALSE(layer.set_weights(make_weights(problem, true, 4)).has_value());
    const Matrix<Half> s = make_operand<Half>(36, 12, true, 6);
    Matrix<Half> q(40, 12);
    DeviceOptions target;
    verify::Checksums checks;
    const layer::PassOptions options{.self_check = &checks, .target = &target};
    PodLedger ledger;
    ASSERT_TRUE(layer.forward<Half>(s.view(), q.view(), options, ledger));
    EXPECT_TRUE(checks.ok());
    EXPECT_GT(checks.compared, 0);
    bool found = false;
    for (std::int64_t bit = 0; bit < 20000 && !found; bit += 331) {
      target.fault = DeviceFault{3, {TileId(1), 1, bit}};
      try {
        EXPECT_TRUE(layer.forward<Half>(s.view(), q.view(), options, ledger));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::CheckFailed);
        EXPECT_THAT(error.what(), HasSubstr("device 3 (g0 x0 y1 z1)"));
        found = true;
      }
    }
    EXPECT_TRUE(found);
    target.fault = DeviceFault{11, {}};
    EXPECT_THAT([&] { (void)layer.forward<Half>(s.view(), q.view(), options, ledger); },
                ThrowsMessage<Error>(HasSubstr("device 11 is not in use")));
  }
}

TEST(PodLayer, RunsASampleOfItsDevicesAndSaysSo) {
  const Problem problem = training();
  const PodPlan plan =
      plan_of_grid(problem, small_pod(small_machine(5), 2, 6), grid_of({1, 2, 1, 1}, {1, 1, 2, 3}));
  const auto executor = make_executor(1);
  PodLayer layer(plan, device::ExchangeMode::Share, DeviceOrder::OneAfterAnother, *executor);
  const Operands<Half> given = make_operands<Half>(problem, true, 8);
  const auto whole = run_all<Half>(layer, given);
  DeviceOptions target;
  const layer::PassOptions options{.target = &target};
  target.devices_simulated = 4;
  PodLedger ledger;
  Matrix<Half> q(40, 12);
  ASSERT_TRUE(layer.forward<Half>(given.s.view(), q.view(), options, ledger));
  EXPECT_EQ(ledger.devices_simulated, 4);
  EXPECT_EQ(q, Matrix<Half>(40, 12));
  EXPECT_LE(ledger.device_seconds(), whole.ledgers[0].device_seconds());
  EXPECT_GT(ledger.device_seconds(), 0.5 * whole.ledgers[0].device_seconds());
  EXPECT_EQ(ledger.collective_seconds(), whole.ledgers[0].collective_seconds());
  target.devices_simulated = 13;
  EXPECT_THROW((void)layer.forward<Half>(given.s.view(), q.view(), options, ledger), Error);
}

TEST(PodLayer, TakesNewValuesAndPatterns) {
  const Problem problem = training();
  const PodPlan plan =
      plan_of_grid(problem, small_pod(small_machine(5), 2, 6), grid_of({1, 2, 1, 1}, {1, 1, 2, 1}));
  const auto executor = make_executor(1);
  PodLayer layer(plan, device::ExchangeMode::Share, DeviceOrder::OneAfterAnother, *executor);
  Operands<Half> given = make_operands<Half>(problem, true, 8);
  run_all<Half>(layer, given);
  std::vector<float> values = given.weights[0]->values;
  for (float& value : values) value = -value;
  layer.set_values(values);
  sparse::Csr<float> negative = *given.weights[0];
  negative.values = values;
  given.weights[0] = sparse::checked(negative);
  expect_exact<Half>(problem, given, run_all<Half>(layer, given));
  sparse::PatternChange change;
  change.removed.push_back({0, negative.col[0]});
  EXPECT_FALSE(layer.update_weights(change).has_value());
  EXPECT_EQ(layer.values(), std::ssize(values) - 1);
}

TEST(PodLayer, RefusesWhatItCannotRun) {
  const Problem problem = training();
  const PodPlan plan =
      plan_of_grid(problem, small_pod(small_machine(5), 2, 6), grid_of({1, 2, 1, 1}, {1, 1, 1, 1}));
  const auto executor = make_executor(1);
  PodLayer layer(plan, device::ExchangeMode::Share, DeviceOrder::OneAfterAnother, *executor);
  const Matrix<Half> s(36, 12);
  const Matrix<float> s_float(36, 12);
  Matrix<Half> q(40, 12), short_q(39, 12);
  Matrix<float> q_float(40, 12);
  EXPECT_THAT([&] { layer.forward<Half>(s.view(), q.view()); },
              ThrowsMessage<Error>(HasSubstr("call set_weights first")));
  ASSERT_FALSE(layer.set_weights(make_weights(problem, true, 8)).has_value());
  EXPECT_THAT([&] { layer.forward<float>(s_float.view(), q_float.view()); },
              ThrowsMessage<Error>(HasSubstr("the layer is half")));
  EXPECT_THAT([&] { layer.forward<Half>(s.view(), short_q.view()); },
              ThrowsMessage<Error>(HasSubstr("q is 39 x 12")));
  PodPlan other = plan;
  other.grid.levels.pop_back();
  EXPECT_THROW(PodLayer(other, device::ExchangeMode::Share, DeviceOrder::SideBySide, *executor),
               Error);
  other = plan;
  other.shapes.clear();
  EXPECT_THROW(PodLayer(other, device::ExchangeMode::Share, DeviceOrder::SideBySide, *executor),
               Error);
}

// A pattern with all blocks on one device does not fit there; the old weights stay.
// A dense plan has the passes that were asked for and no others.
TEST(PodLayer, HasNoRoundingOfAPassThatItsPlanDoesNotHave) {
  for (const bool use_dense : {false, true}) {
    planner::Options options;
    options.constraints.use_dense = use_dense;
    const PodPlan plan = plan_pod_or_throw(
        make_problem({1, 32, 24, 8}, {1, 1}, 0.5, DataType::Float, /*backward=*/false),
        small_pod(small_machine(8), 2, 1), options);
    const auto executor = make_executor(1);
    const PodLayer layer(plan, device::ExchangeMode::Share, DeviceOrder::OneAfterAnother,
                         *executor);
    layer.rounding(Pass::Fwd);
    for (const Pass pass : {Pass::GradA, Pass::GradW})
      EXPECT_THAT([&] { layer.rounding(pass); },
                  ThrowsMessage<Error>(HasSubstr("does not include this pass")));
  }
}

TEST(PodLayer, NamesTheDeviceOfAMisfit) {
  Problem problem = make_problem({1, 64, 64, 8}, {1, 1}, 0.1, DataType::Half, false);
  const PodPlan plan =
      plan_of_grid(problem, small_pod(small_machine(4), 2, 6), grid_of({1, 2, 1, 1}, {1, 1, 2, 1}));
  const auto executor = make_executor(1);
  for (const auto order : {DeviceOrder::OneAfterAnother, DeviceOrder::SideBySide}) {
    PodLayer layer(plan, device::ExchangeMode::Share, order, *executor);
    const auto weights = make_weights(problem, true, 8);
    ASSERT_FALSE(layer.set_weights(weights).has_value());
    problem.density = 0.9;
    const auto full = make_weights(problem, true, 8);
    problem.density = 0.1;
    const auto misfit = layer.set_weights(full);
    ASSERT_TRUE(misfit.has_value());
    EXPECT_THAT(misfit->message, HasSubstr("device 0 ("));
    const Operands<Half> given{weights, make_operand<Half>(64, 8, true, 1), Matrix<Half>(64, 8)};
    Matrix<Half> q(64, 8), again(64, 8);
    layer.forward<Half>(given.s.view(), q.view());
    ASSERT_FALSE(layer.set_weights(weights).has_value());
    layer.forward<Half>(given.s.view(), again.view());
    EXPECT_EQ(q, again);
  }
}

}  // namespace
}  // namespace tessera::pod
