#include "tessera/bench/published/published_static.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/bench/published/published_dense.hpp"
#include "tessera/tests/support/message_of.hpp"
#include "tessera/tests/support/results_table.hpp"

namespace tessera::bench {
namespace {

using testing::HasSubstr;

constexpr std::string_view kTable =
    "m_eq_k\tn\tblock\tdensity\ttflops\n1024\t4\t16\t1/16\t0.5\n1024\t16\t16\t0.25\t8\n";

TEST(StaticPoints, AreToldFromOthersByTheirColumns) {
  EXPECT_TRUE(is_static_table(kTable, "t"));
  EXPECT_FALSE(is_dense_table(kTable, "t"));
  EXPECT_FALSE(is_static_table("m_eq_k\tblock\tdensity\ttflops\n", "t"));
  EXPECT_FALSE(is_static_table("dtype\tm_eq_k\tn\ttflops\n", "t"));
}

TEST(StaticPoints, AreReadWithTheirFractions) {
  const auto points = read_static_points(kTable, "t");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].side, 1024);
  EXPECT_EQ(points[0].batch, 4);
  EXPECT_EQ(points[0].block, (BlockShape{16, 16}));
  EXPECT_EQ(points[0].density, 1.0 / 16);
  EXPECT_EQ(points[1].teraflops, 8);
  // 2 * 1024 * 1024 * 4 / 16 flops at 5e11 a second and 1.85e9 cycles a second.
  EXPECT_NEAR(points[0].cycles(1.85e9), 524288 / 5e11 * 1.85e9, 1e-9);
}

TEST(StaticPoints, RefuseABlockThatDoesNotDivideTheSide) {
  const std::string message = test::message_of(
      [] { read_static_points("m_eq_k\tn\tblock\tdensity\ttflops\n1024\t4\t15\t0.5\t1\n", "t"); });
  EXPECT_THAT(message, HasSubstr("t:2: block is \"15\"; it must be a divisor of m_eq_k"));
}

TEST(StaticPoints, WithoutAPlanHaveTheErrorOne) {
  auto planned = plan_points({{1024, 65536, {16, 16}, 0.0625, 10}}, device::machine_preset("bow"));
  ASSERT_EQ(planned.size(), 1u);
  EXPECT_FALSE(planned[0].cost);
  EXPECT_EQ(errors_of(planned).median, 1);
  EXPECT_THAT(to_text(planned, device::machine_preset("bow")), HasSubstr("no plan fits"));
}

// All cells of the published table but those of 4096 x 4096 elements, whose pattern takes long to
// draw. With them the median is 8.3 %, for which the bar is 9 %; the others reach 9.2 %.
TEST(StaticPoints, AreMetWithinTheBarsAndAsTheTableOfResultsSays) {
  const std::string name = TESSERA_SOURCE_DIR "/tests/data/published_static.tsv";
  auto points = read_static_points(read_file(name), name);
  std::erase_if(points, [](const StaticPoint& p) { return p.side / p.block.rows > 1024; });
  ASSERT_EQ(points.size(), 140u);
  const auto machine = device::machine_preset("bow");
  const auto planned = plan_points(points, machine);
  const StaticErrors all = errors_of(planned);
  EXPECT_LE(all.median, 0.095);
  EXPECT_LE(all.ninetieth, 0.27);
  const auto median_of = [&](std::int64_t batch) {
    auto some = planned;
    std::erase_if(some, [&](const PlannedStatic& p) { return p.point.batch != batch; });
    return errors_of(some).median;
  };
  EXPECT_LE(median_of(4), 0.07);
  EXPECT_LE(median_of(16), 0.09);
  const std::string table = test::results_table("published_static.tsv");
  std::istringstream lines(test::as_tsv(to_text(planned, machine)));
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("1024\t") || line.starts_with("4096\t")) {
      ++rows;
      EXPECT_THAT(table, HasSubstr("\n" + line + "\n"))
          << "bench/results/published_static.tsv has another row; run ./dev results";
    }
  EXPECT_EQ(rows, points.size());
  const std::string text = to_text(planned, machine);
  EXPECT_THAT(text, HasSubstr("\nerror: median "));
  EXPECT_THAT(text, testing::EndsWith(" of 140 points\n"));
  double median = 1;
  const char* const of_all = std::strstr(table.c_str(), "\nall\t159\t");
  ASSERT_NE(of_all, nullptr);
  ASSERT_EQ(std::sscanf(of_all, "\nall 159 %lf%%", &median), 1);
  EXPECT_LE(median, 9);
}

}  // namespace
}  // namespace tessera::bench
