#include "tessera/bench/published/published_dense.hpp"

#include <gtest/gtest.h>

#include "tessera/base/error.hpp"

namespace tessera::bench {
namespace {

constexpr std::string_view kTable =
    "dtype\tm_eq_k\tn\ttflops\nFP16\t1024\t16\t20.5\nFP32\t4096\t64\t41.9\n";

TEST(DensePoints, AreToldFromSparseOnesByTheirColumns) {
  EXPECT_TRUE(is_dense_table(kTable, "t"));
  EXPECT_FALSE(is_dense_table("m_eq_k\tblock\tdensity\ttflops\n", "t"));
}

TEST(DensePoints, AreReadWithTheirTypes) {
  const auto points = read_dense_points(kTable, "t");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].type, DataType::Half);
  EXPECT_EQ(points[1].type, DataType::Float);
  EXPECT_EQ(points[1].side, 4096);
  EXPECT_EQ(points[1].batch, 64);
  EXPECT_EQ(points[1].teraflops, 41.9);
}

TEST(DensePoints, RefuseATypeByPlaceAndLegalNames) {
  try {
    read_dense_points("dtype\tm_eq_k\tn\ttflops\nINT8\t16\t16\t1\n", "t");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "t:2: dtype is \"INT8\"; it must be FP16 or FP32");
  }
}

TEST(DensePoints, ArePlannedAndComparedWithThePublishedRate) {
  const auto machine = device::machine_preset("bow");
  const auto planned = plan_points(read_dense_points(kTable, "t"), machine);
  ASSERT_TRUE(planned[1].plan);
  const double seconds = double(planned[1].plan->cost.cycles.value) / machine.clock_hz;
  EXPECT_NEAR(planned[1].teraflops, 2.0 * 4096 * 4096 * 64 / seconds / 1e12, 1e-9);
  EXPECT_NEAR(planned[1].error(), planned[1].teraflops / 41.9 - 1, 1e-12);
  const std::string text = to_text(planned, machine);
  EXPECT_NE(text.find("FP32  4096     64     41.9"), std::string::npos) << text;
  EXPECT_NE(text.find("of 2 points"), std::string::npos) << text;
}

}  // namespace
}  // namespace tessera::bench
