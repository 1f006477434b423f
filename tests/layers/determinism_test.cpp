// The bits of results depend on the layer and its operands alone: 64 random layers, on a modelled
// machine and on this computer.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/codelets/internal/fast/simd_targets.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/tests/runtime/layer_case.hpp"
#include "tessera/tests/support/trials.hpp"

namespace tessera::test {
namespace {

using codelets::internal::SimdTarget;
using runtime::How;
using runtime::LayerCase;

constexpr int kLayers = 64, kShards = 4;
// Sanitized builds, which are slow, run one layer of each shard in all ways and the others in one.
// AddressSanitizer's is by clang, so all layers are compared between the compilers.
constexpr bool kIsSlow = kIsSanitized;

// A layer whose sizes, blocks, type, cut and spills depend on its number. The cut is written by
// hand, so a change of the planner changes no bits.
LayerCase random_case(int number) {
  Random random(std::uint64_t(number) + 1);
  constexpr std::array<BlockShape, 6> kBlocks{{{1, 1}, {1, 1}, {4, 4}, {2, 3}, {8, 8}, {16, 16}}};
  const BlockShape block = kBlocks[std::size_t(random.below(std::ssize(kBlocks)))];
  const auto side = [&](std::int64_t step) { return step * (3 + random.below(60 / step)); };
  const std::int64_t rows = side(block.rows), cols = side(block.cols);
  LayerCase c;
  c.weights = runtime::random_weights(rows, cols, block, 0.1 + 0.5 * random.unit(),
                                      std::uint64_t(number) + 7);
  c.batch = 1 + random.below(20);
  c.type = std::array{DataType::Float, DataType::Half, DataType::BFloat16}[std::size_t(number % 3)];
  const auto parts = [&](std::int64_t blocks) {  // of equal size, none of them empty
    return ceil_div(blocks, ceil_div(blocks, 1 + random.below(3)));
  };
  const std::int64_t x_parts = parts(rows / block.rows), y_parts = parts(cols / block.cols);
  c.partition = {1, x_parts, y_parts, 1 + random.below(2)};
  c.travelling_buckets = random.below(2) == 0;
  c.force_spills = random.below(2) == 0 && c.partition.product() > 1;
  c.separate_grad_a = block.is_element() && random.below(4) == 0;
  c.seed = std::uint64_t(number);
  return c;
}

// FNV-1a of the bits of the results, continued from `hash`.
std::uint64_t hash_of(const std::vector<float>& values, std::uint64_t hash) {
  for (const float v : values)
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ (std::bit_cast<std::uint32_t>(v) >> shift & 0xff)) * 0x100000001b3;
  return hash;
}

std::uint64_t hash_of(const std::vector<float>& q, const std::vector<float>& s_grad,
                      const std::vector<float>& gradient) {
  return hash_of(gradient, hash_of(s_grad, hash_of(q, 0xcbf29ce484222325)));
}

std::uint64_t on_tiles(const LayerCase& c, const How& how) {
  const std::optional<runtime::Results> r = runtime::run_case(c, how);
  return r ? hash_of(r->q, r->s_grad, r->gradient) : 0;
}

// Every fifth layer is dense.
template <class T>
std::uint64_t on_host(const LayerCase& c, const How& how) {
  const auto executor = make_executor(how.executor, how.threads);
  const host::HostCpu cpu{.cores = 2, .l1_data = Bytes(2048), .l2 = Bytes(16384), .l3 = Bytes()};
  host::HostOptions options{.own_dense_kernel = true};
  if (c.seed % 5 == 0) options.dense = host::DenseChoice::Always;
  host::HostLayer layer(c.problem(), cpu, *executor, options);
  layer.set_weights(c.weights);
  const runtime::Operands<T> in(c);
  Matrix<T> q(in.q_grad.rows(), c.batch), s_grad(in.s.rows(), c.batch);
  std::vector<float> gradients(c.weights.values.size());
  layer.forward<T>(in.s.view(), q.view());
  layer.grad_a<T>(in.q_grad.view(), s_grad.view());
  layer.grad_w<T>(in.q_grad.view(), in.s.view(), gradients);
  return hash_of(runtime::as_float(q), runtime::as_float(s_grad), gradients);
}

struct Checksums {
  std::uint64_t tiles = 0, host = 0;
  friend bool operator==(const Checksums&, const Checksums&) = default;
};

Checksums checksums_of(const LayerCase& c, const How& how, const SimdTarget& target) {
  const codelets::internal::UseSimdTarget use(target);
  return {on_tiles(c, how), with_type(c.type, [&]<class T>(T) { return on_host<T>(c, how); })};
}

std::vector<SimdTarget> targets_here() {
  std::vector<SimdTarget> targets;
  for (const SimdTarget& target : codelets::internal::simd_targets())
    if (target.runs_here) targets.push_back(target);
  return targets;
}

// The checksums of both, which do not depend on the compiler.
constexpr std::array<Checksums, kLayers> kPinned{{
    {0xa6fdad4ea3ae0b18, 0x9976c6c27459f763}, {0x114439a1f60f24d7, 0xa39230ac9b943f31},
    {0xa65c82fa5c1a8e42, 0xedfa575b6b7f4f64}, {0x34111a1b5625745a, 0x55bc9513ac7bc882},
    {0x816d861cd1e113e9, 0x2ec47ee3bc88b4ae}, {0x21b610a84dbd0a0f, 0x37a48f82d683f5ac},
    {0x3781f3a8ff78e674, 0xce8205fd518edc27}, {0x648b17212c36a237, 0xb4967cbf0eb5133f},
    {0xa3d4512d62631017, 0xd9a43ea96d464b8b}, {0xb86b303f8eee269a, 0x117dd2382c31e98e},
    {0x37f24343e403c585, 0x8b5b8d5d8d15a09d}, {0xa97970e68ce53c8a, 0xf19e6e7478e93ac1},
    {0x833e15b7c076136, 0x150d92c74e86d518},  {0x6abb4e0acc720338, 0x8633e3f5b3b792d},
    {0xc2faf9ed86a67f09, 0x998229f3eea4a1be}, {0x7a7b11242f5844a1, 0x47ebdb2fd77322de},
    {0xf78a5555e68633b1, 0xb8b65f9a0e9b1387}, {0x2d9ab4b5c071e3c0, 0x2c61e3d1d17094f4},
    {0x2653915e56828bd, 0x8b0ec0f58903e55a},  {0xd1c1cf03d4720d26, 0xb8966c83363bada5},
    {0x339d04e3fe61f857, 0xa73d8cd7c18833dd}, {0xb3d8df007d7a954a, 0xca152122c7eac93c},
    {0x88d0c2803c2dd4a, 0x934f71400dc0c107},  {0x21c6a59dccd52677, 0xe20ddad0d536c598},
    {0x1fece2de6acaba86, 0x6881710d168b9aba}, {0x214dbbcb85268ebe, 0xd71178200a4efe6c},
    {0x970f5f0bab773972, 0xbc15fb791cd8d0db}, {0x34a8d98642dcbcf2, 0xa4c7495ea71b3d36},
    {0xa370c99eec201d5f, 0xa46ab895048d6e34}, {0xc284f1d30c71d0f1, 0xe64047983d6893f},
    {0xe48a12583f779bde, 0x763b93f0dac58945}, {0x7bd4e00ce8dc279, 0x2cb7c1d00fe4e95c},
    {0xf169c8515aab87f7, 0x3624197d6d1a4a92}, {0xfd169a7e34943e34, 0x37945f107f17a618},
    {0xcafefa70b8eed619, 0xca144a8b48fa32b9}, {0x8c84185000c0e6bc, 0x93a3aa7f1defec8f},
    {0x38470d1eadb605c4, 0xbfb36b1294b45345}, {0xe52f5c5b8554cc0d, 0xb6b157f941c6fbac},
    {0x1f196411924afc33, 0x856e309055873365}, {0x589d5f2fbe41f050, 0xefd0b33083d377},
    {0x8bbade1ad6cdeb02, 0xab19eedde9bdd7c5}, {0x547bc521631caff7, 0x7cf03a2921068d69},
    {0x76120e772c217efb, 0xada0fb3f521b80a},  {0xedbbea3398cdf063, 0xede15240b7639354},
    {0x5002b93cc37df49d, 0xba88674c5c210ecf}, {0xb18d5d2427657307, 0xa3065d436347ad84},
    {0x8333988a4b203a7e, 0x9e4590f46bc77095}, {0x83fdb638a734022d, 0xc6812c6287d1ee5f},
    {0xe61c10c7809d17a9, 0xc0771e40a1e3310},  {0x26f60860cf12ee64, 0x9e481c297702c982},
    {0x86f26ab2b402b3d9, 0xeba65c00a7995a33}, {0xd24063e0fe6e5e0b, 0xd24063e0fe6e5e0b},
    {0x6fad46ca00f149b5, 0xba81306e8bbe3d50}, {0x5be7736cd1afc421, 0xb029edcf4c0c79df},
    {0xbcdceccbd4b7a16f, 0xe94f45a337237106}, {0xb25acf8d9c71a53e, 0xecb4970f5b1c7b01},
    {0x83b8f908112aa7be, 0xeca79f6198903ce7}, {0x40bb45a0eff1bb85, 0xa90c054cb8408600},
    {0xdf44518528b30435, 0xc146c75e4206eeec}, {0xc44eff4ddf35f2b6, 0x8463ed27d7ab7bda},
    {0x1c6d87c4b8c9c2d5, 0xa3a5884fb1f25f64}, {0x3f0cce0b86b43312, 0xd407ee128e5390fc},
    {0x9bbca0d03ad5b179, 0x935ec8490eeddfe9}, {0x150f9b9a9adfc85a, 0x68c3d67502dacac6},
}};

class Determinism : public testing::TestWithParam<int> {};

// A way to run a layer.
struct Way {
  How how;
  SimdTarget target;
};

std::vector<Way> all_ways() {
  const std::vector<SimdTarget> targets = targets_here();
  std::vector<Way> ways;
  for (const ExecutorKind kind : {ExecutorKind::Threads, ExecutorKind::Tbb})
    for (const int threads : {1, 2, 3, 7, 16})
      for (const auto mode : {device::ExchangeMode::Share, device::ExchangeMode::Isolate})
        for (const SimdTarget& target : targets)
          if (has_executor(kind)) ways.push_back({{mode, kind, threads}, target});
  return ways;
}

TEST_P(Determinism, GivesThePinnedBitsWithAllThreadCountsTimesExecutorsModesAndInstructionSets) {
  const std::vector<Way> ways = all_ways();
  for (int number = GetParam(); number < kLayers; number += kShards) {
    const LayerCase c = random_case(number);
    const bool in_one_way = kIsSlow && number >= kShards;
    for (const Way& way : std::span(ways).first(in_one_way ? 1 : ways.size())) {
      const Checksums got = checksums_of(c, way.how, way.target);
      EXPECT_EQ(got, kPinned[std::size_t(number)])
          << "layer " << number << ", " << c.name() << ", " << way.how.threads << " threads, "
          << way.target.name << std::hex << ": {0x" << got.tiles << ", 0x" << got.host << "}";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(SixteenLayers, Determinism, testing::Range(0, kShards));

}  // namespace
}  // namespace tessera::test
