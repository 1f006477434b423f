#include <gtest/gtest.h>

#include "tessera/sparse/internal/check_count.hpp"
#include "tessera/tests/support/failing_allocations.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/run.hpp"
#include "tessera/tools/run/weights.hpp"

// Counts the checks and copies of weights in the README's demo.
namespace tessera::tools {
namespace {

Arguments demo() {
  return parse_arguments({"sparse_fc_layer", "--matrix",
                          TESSERA_SOURCE_DIR "/data/face_conv2d_24.mtx", "--batch-size", "64",
                          "--quiet", "--plan-constraints", R"({"useDense": false})"})
      .arguments;
}

// A Csr<float> of this many elements has two arrays of this many bytes.
long bytes_of_one_array(const Arguments& arguments) {
  return long(4 * make_weights(arguments).matrix->blocks());
}

TEST(Demo, ChecksItsWeightsOnce) {
  const Arguments arguments = demo();
  const std::int64_t before = sparse::internal::checks_done();
  const LayerRun run = run_layer(arguments, "test");
  EXPECT_EQ(sparse::internal::checks_done() - before, 1);
  EXPECT_EQ(run.report.passes.size(), 3u);
}

TEST(Demo, CopiesItsWeightsAtMostThreeTimes) {
  const Arguments arguments = demo();
  const long bytes = bytes_of_one_array(arguments);
  test::count_allocations_of(bytes);
  make_weights(arguments);
  const long reading = test::allocations_of_that_size();
  EXPECT_GT(reading, 0) << "the counter counts";
  test::count_allocations_of(bytes);
  const LayerRun run = run_layer(arguments, "test");
  // Beside the matrix as it was read: copies of it, and the gradient, which has the size of the
  // weights, in both layouts and as it is transposed from that of GradA.
  constexpr long kCopies = 3, kGradients = 3, kArrays = 2;
  EXPECT_LE(test::allocations_of_that_size() - reading, kArrays * (kCopies + kGradients));
  EXPECT_FALSE(run.report.plan.backward.empty()) << "the demo has two layouts";
}

}  // namespace
}  // namespace tessera::tools
