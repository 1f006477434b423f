// Compares the cuts and forecasts of drawn layers with a table: every figure that a layer on the
// host decides by. They change no result within the bounds of rounding, so no other test sees each
// of them. When they are meant to change, the table is written again with
//   TESSERA_RECORD=new.tsv build/release/tests/host/host_tests --gtest_filter='RecordedChoices.*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tessera/base/random.hpp"
#include "tessera/host/cells.hpp"
#include "tessera/host/cost.hpp"
#include "tessera/tests/support/recorded.hpp"

namespace tessera::host {
namespace {

HostCpu draw_cpu(Random& random) {
  constexpr std::int64_t kL1[] = {32, 48, 64}, kL2[] = {256, 512, 1024, 2048}, kL3[] = {0, 8, 32};
  return {.cores = std::int64_t(1) << random.below(7),
          .l1_data = Bytes(kL1[random.below(3)] << 10),
          .l2 = Bytes(kL2[random.below(4)] << 10),
          .l3 = Bytes(kL3[random.below(3)] << 20),
          .vector = Bytes(std::int64_t(16) << random.below(3))};
}

HostProblem draw_problem(Random& random) {
  constexpr BlockShape kBlocks[] = {{1, 1}, {1, 1}, {4, 4}, {8, 8}, {16, 16}, {2, 3}, {32, 1}};
  constexpr DataType kTypes[] = {DataType::Float, DataType::Half, DataType::BFloat16};
  constexpr std::int64_t kBatches[] = {1, 2, 4, 10, 16, 50, 64, 65, 100, 128, 200, 512, 1000, 4096};
  const BlockShape block = kBlocks[random.below(7)];
  const std::int64_t most = std::int64_t(1) << (2 + random.below(11));
  const Dims size{1, block.rows * (1 + random.below(most)), block.cols * (1 + random.below(most)),
                  kBatches[random.below(14)]};
  double density = 0.5;  // few layers are dense
  for (int factor = 0; factor < 3; ++factor) density *= random.unit();
  const double places = double(size.x) * double(size.y) / double(block.area());
  return {size, block, std::int64_t(density * places), kTypes[random.below(3)]};
}

std::string text_of(const HostCells& c) {
  return fmt::format("{} {} {} {:d}{:d} ", c.x, c.y, c.z, c.pack, c.gather);
}

std::string text_of(const HostColumns& c) {
  return fmt::format("{} {} {:d} {} ", c.width, c.stride, c.pack, c.lanes);
}

// Six digits: the last ones depend on the logarithm of the C library.
std::string text_of(const HostForecast& f) {
  return fmt::format("{:.6g} {:.6g} {:.6g} {:.6g} ", f.copy_seconds, f.kernel_seconds,
                     f.stream_seconds, f.result_seconds);
}

TEST(RecordedChoices, OfDrawnLayersAreAsRecorded) {
  constexpr int kThreads[] = {1, 2, 8};
  test::RecordedTable table("recorded_choices.tsv", "layer");
  Random random(301);
  for (int number = 0; number < 600; ++number) {
    const HostCpu cpu = draw_cpu(random);
    const HostProblem problem = draw_problem(random);
    const int threads = kThreads[random.below(3)];
    const HostCells product = product_cells(problem, cpu, threads);
    const HostCells gradient = gradient_cells(problem, cpu);
    std::string text = text_of(cells_of(Pass::GradA, problem, cpu, threads));
    for (const std::int64_t z : {1, 15, 64, 97, 300, 5000})
      text += text_of(product_columns(product, problem, z, cpu)) +
              text_of(gradient_columns(gradient, z)) + text_of(turned_columns(z));
    const HostSetting setting{cpu, threads, default_host_rates()};
    for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW})
      text += text_of(forecast_sparse(pass, problem, setting)) +
              text_of(forecast_dense(pass, problem, setting));
    if (can_be_packed(problem))
      text += text_of(forecast_packed(problem, setting)) +
              fmt::format("{:d}{:d}{}", packs_forward(problem, false, setting),
                          packs_forward(problem, true, setting),
                          int(packed_positions(problem.size.x, problem.size.y, problem.blocks)));
    test::Digest digest;
    digest.add(text);
    table.expect(number,
                 text_of(product) + text_of(gradient) +
                     fmt::format("{:d}{:d} {}", widens(problem, cpu),
                                 copies_unaligned(problem, cpu), digest.text()),
                 text);
  }
}

TEST(RecordedChoices, HaveATestForEachKind) {
  test::expect_kinds("recorded_choices.tsv", {"layer"});
}

}  // namespace
}  // namespace tessera::host
