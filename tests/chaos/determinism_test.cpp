// Results of 64 random layers have the same bits for any number of threads, executor, exchange
// mode, instruction set and compiler.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/codelets/internal/fast/simd_targets.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::test {
namespace {

// Sanitized builds, one of which clang makes, are slower by as much as they run fewer layers.
#ifdef TESSERA_SANITIZED
constexpr std::size_t kLayers = 6;
#else
constexpr std::size_t kLayers = 64;
#endif

// A circumstance that must not change a bit.
struct Circumstance {
  int threads = 1;
  ExecutorKind executor = ExecutorKind::Threads;
  device::ExchangeMode mode = device::ExchangeMode::Share;
};

Problem problem_of(std::uint64_t seed) {
  Random random(seed);
  const std::int64_t side = random.below(2) == 0 ? 1 : 1 + random.below(4);
  const Dims blocks{1, 1 + random.below(12), 1 + random.below(12), 1 + random.below(10)};
  constexpr DataType kTypes[] = {DataType::Float, DataType::Half, DataType::BFloat16};
  return {.size = {1, blocks.x * side, blocks.y * side, blocks.z},
          .block = {side, side},
          .density = 0.1 + 0.8 * random.unit(),
          .data_type = kTypes[random.below(3)],
          .grad_a = true,
          .grad_w = true};
}

// FNV-1a over the bits of the values.
class Checksum {
 public:
  template <class Values>
  void add(const Values& values) {
    for (const auto value : values) {
      hash_ ^= std::bit_cast<std::uint32_t>(float(value));
      hash_ *= 1099511628211u;
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 14695981039346656037u;
};

template <class T>
std::uint64_t run(runtime::FullyConnected& layer, const Dims& size, std::uint64_t seed) {
  const Matrix<T> s = random_matrix<T>(size.y, size.z, seed + 1);
  const Matrix<T> q_grad = random_matrix<T>(size.x, size.z, seed + 2);
  Matrix<T> q(size.x, size.z), s_grad(size.y, size.z);
  std::vector<float> gradients(std::size_t(layer.values()));
  layer.forward<T>(s.view(), q.view());
  layer.grad_a<T>(q_grad.view(), s_grad.view());
  layer.grad_w<T>(q_grad.view(), s.view(), gradients);
  Checksum sum;
  sum.add(q.elements());
  sum.add(s_grad.elements());
  sum.add(gradients);
  return sum.value();
}

// A plan whose cut is given, with so much capacity that nothing spills: what the planner likes best
// takes no part in the order of the sums.
planner::PlanResult plan_of(const Problem& problem, const device::Machine& machine,
                            std::uint64_t seed) {
  const Dims blocks = ceil_div(problem.size, Dims{1, problem.block.rows, problem.block.cols, 1});
  planner::Options options;
  options.available_memory_proportion = 1;
  options.meta_info_bucket_oversize_proportion = 4;
  options.shared_buckets = true;
  options.per_pass_plans = false;
  options.constraints = {.x = std::min(blocks.x, std::int64_t(1 + seed % 2)),
                         .y = std::min(blocks.y, std::int64_t(1 + seed / 2 % 2)),
                         .z = 1,
                         .grad_w_exchange_buckets = seed % 2 == 0,
                         .use_dense = false};
  return planner::plan(problem, machine, options);
}

// The checksum of the results of all passes of a layer, or 0 if it does not fit its machine.
std::uint64_t checksum(std::uint64_t seed, Executor& executor, device::ExchangeMode mode) {
  const Problem problem = problem_of(seed);
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = 12;
  const planner::PlanResult found = plan_of(problem, machine, seed);
  if (!found.has_plan) return 0;
  runtime::FullyConnected layer(problem, found.plan, machine, mode, executor);
  auto weights =
      sparse::random_pattern(problem.size.x, problem.size.y, problem.block, problem.density, seed);
  Random random(seed);
  for (float& value : weights.values) value = float(2 * random.unit() - 1);
  if (layer.set_weights(weights)) return 0;
  switch (problem.data_type) {
    case DataType::Float:
      return run<float>(layer, problem.size, seed);
    case DataType::Half:
      return run<Half>(layer, problem.size, seed);
    case DataType::BFloat16:
      return run<BFloat16>(layer, problem.size, seed);
  }
  return 0;
}

std::vector<std::uint64_t> checksums(const Circumstance& c) {
  const auto executor = make_executor(c.executor, c.threads);
  std::vector<std::uint64_t> result;
  for (std::uint64_t seed = 1; seed <= kLayers; ++seed)
    result.push_back(checksum(seed, *executor, c.mode));
  return result;
}

TEST(SameBits, ForAnyThreadsExecutorAndExchangeMode) {
  const auto expected = checksums({});
  for (const ExecutorKind kind : {ExecutorKind::Threads, ExecutorKind::Tbb}) {
    if (!has_executor(kind)) continue;
    for (const int threads : {1, 2, 3, 7, 16})
      for (const auto mode : {device::ExchangeMode::Share, device::ExchangeMode::Isolate})
        EXPECT_EQ(checksums({threads, kind, mode}), expected) << threads << " threads";
  }
}

TEST(SameBits, OnEveryInstructionSet) {
  const auto expected = checksums({});
  for (const auto& target : codelets::internal::simd_targets()) {
    if (!target.runs_here) continue;
    const codelets::internal::UseSimdTarget use(target);
    EXPECT_EQ(checksums({}), expected) << target.name;
  }
}

std::uint64_t checksum_of(std::span<const std::uint64_t> sums) {
  Checksum all;
  for (const std::uint64_t sum : sums)
    all.add(std::vector<float>{float(sum >> 40), float(sum >> 16 & 0xffffff), float(sum & 0xffff)});
  return all.value();
}

// The numbers are those of g++ 12. A change in the order of a sum changes them.
TEST(SameBits, ForEveryCompiler) {
  const std::vector<std::uint64_t> sums = checksums({});
  EXPECT_EQ(std::count(sums.begin(), sums.end(), std::uint64_t(0)), 0) << "a layer does not fit";
  EXPECT_EQ(checksum_of(std::span(sums).first(6)), 14760560709125065497u);
  EXPECT_TRUE(kLayers < 64 || checksum_of(sums) == 2193447324486915666u) << checksum_of(sums);
}

}  // namespace
}  // namespace tessera::test
