#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/planner/static_plan.hpp"
#include "tessera/pod/pod_layer.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/static_layer.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/planner/static_pattern.hpp"
#include "tessera/tests/pod/pod_case.hpp"
#include "tessera/tests/runtime/two_layouts.hpp"

namespace tessera::test {

// A matrix for each group, with values that are not round numbers.
inline std::vector<sparse::Csr<float>> random_weights(const Problem& problem, double density,
                                                      std::uint64_t seed) {
  const Dims whole = problem.size_in_blocks();
  std::vector<sparse::Csr<float>> all;
  Random random(seed + 100);
  for (std::int64_t g = 0; g < whole.g; ++g) {
    all.push_back(
        sparse::random_pattern(whole.x, whole.y, problem.block, density, seed + std::uint64_t(g)));
    for (float& v : all.back().values) v = float(2 * random.unit() - 1);
  }
  return all;
}

// Each backend makes a layer for a problem; the test of the concept runs on all of them.

// This computer, with caches so small that little layers have many cells.
struct OnHost {
  using Layer = host::HostLayer;
  static constexpr bool kSameBitsAfterUpdate = true, kHasBuckets = true, kChangesPattern = true;
  static Layer make(const Problem& problem, Executor& executor) {
    return {
        problem, {.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()}, executor};
  }
};

// A modelled machine whose passes share one layout of the weights.
struct OnTiles {
  using Layer = runtime::FullyConnected;
  static constexpr bool kSameBitsAfterUpdate = false, kHasBuckets = true, kChangesPattern = true;
  static Layer make(const Problem& problem, Executor& executor) {
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = 8 * problem.size.g;
    planner::Options options = planner::sparse_options();
    options.per_pass_plans = false;
    return {problem, planner::plan_or_throw(problem, machine, options), machine,
            device::ExchangeMode::Share, executor};
  }
};

// A modelled machine with a second layout, in which GradA and GradW run.
struct OnTwoLayouts {
  using Layer = runtime::FullyConnected;
  static constexpr bool kSameBitsAfterUpdate = false, kHasBuckets = true, kChangesPattern = true;
  static Layer make(const Problem& problem, Executor& executor) {
    const runtime::TwoLayouts two = runtime::two_layouts(problem, true, 8 * problem.size.g);
    return {problem, two.plan, two.machine, device::ExchangeMode::Share, executor};
  }
};

// A modelled machine whose plan multiplies all of R without buckets.
struct OnDensePlan {
  using Layer = runtime::FullyConnected;
  static constexpr bool kSameBitsAfterUpdate = true, kHasBuckets = false, kChangesPattern = true;
  static Layer make(const Problem& problem, Executor& executor) {
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = 8 * problem.size.g;
    planner::Options options;
    options.constraints.use_dense = true;
    return {problem, planner::plan_or_throw(problem, machine, options), machine,
            device::ExchangeMode::Share, executor};
  }
};

// A modelled machine whose plan knows the pattern, which stays: new weights are a new layer.
struct OnStaticPlan {
  using Layer = runtime::StaticLayer;
  static constexpr bool kSameBitsAfterUpdate = false, kHasBuckets = false, kChangesPattern = false;
  static Layer make(const Problem& problem, Executor& executor) {
    return make_of(problem, random_weights(problem, 0.3, 3), executor);
  }
  static Layer make_of(const Problem& problem, const std::vector<sparse::Csr<float>>& weights,
                       Executor& executor) {
    device::Machine machine = device::machine_preset("gc200");
    machine.tiles = 8 * problem.size.g;
    Problem of_group = problem;
    of_group.size.g = 1;
    std::vector<planner::StaticPlan> plans;
    for (const sparse::Csr<float>& matrix : weights)
      plans.push_back(
          planner::plan_static_as_poplibs(of_group, planner::view_of(matrix),
                                          runtime::machine_of_group(machine, problem.size.g))
              .plan.value());
    return {problem, sparse::checked(weights),    plans,
            machine, device::ExchangeMode::Share, executor};
  }
};

// Eight machines of a pod of twelve: rows, columns and the batch are cut, and the batch runs in two
// parts. Layers of floats keep all machines in memory, the others one after another.
// Its weights are on many machines, so it has no buckets that a training step could change.
struct OnPod {
  using Layer = pod::PodLayer;
  static constexpr bool kSameBitsAfterUpdate = false, kHasBuckets = false, kChangesPattern = true;
  static Layer make(const Problem& problem, Executor& executor) {
    const pod::PodGrid grid{{{{1, 1, 2, 1}}, {{1, 2, 1, 2}}}};
    const device::Pod pod = pod::small_pod(pod::small_machine(4 * problem.size.g), 2, 6);
    const auto order = problem.data_type == DataType::Float ? pod::DeviceOrder::SideBySide
                                                            : pod::DeviceOrder::OneAfterAnother;
    return {pod::plan_of_grid(problem, pod, grid, 2), device::ExchangeMode::Share, order, executor};
  }
};

// One rank of a layer over ranks, which has all of it.
struct OnRanks {
  class OneRank : public distributed::Communicator {
   public:
    OneRank() : Communicator(0, 1, distributed::kDefaultTimeout) {}
    void abort(int, const std::string&) noexcept override {}

   protected:
    std::unique_ptr<distributed::internal::Pending> begin(
        std::string_view, std::span<const distributed::SendPiece>,
        std::span<const distributed::ReceivePiece>) override {
      return nullptr;
    }
  };
  using Layer = distributed::RankLayer;
  static constexpr bool kSameBitsAfterUpdate = true, kHasBuckets = false, kChangesPattern = true;
  static Layer make(const Problem& problem, Executor& executor) {
    static OneRank ranks;
    return {problem,
            {.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()},
            executor,
            ranks};
  }
};

// A backend with the type of its operands.
template <class B, class Element>
struct Setting {
  using Backend = B;
  using T = Element;
};

inline Problem problem_of(DataType type, Dims size, BlockShape block) {
  return {.size = size,
          .block = block,
          .density = 0.6,  // more than is stored, so that changed patterns fit, too
          .data_type = type,
          .grad_a = true,
          .grad_w = true};
}

}  // namespace tessera::test
