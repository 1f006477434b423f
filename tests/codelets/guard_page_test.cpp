// No vector kernel touches memory behind its operands, values, gradients and results. Rows end
// inside a vector for most numbers of columns, so this is what masked loads and stores promise.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/codelets/internal/fast/simd_targets.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/codelets/place_dots.hpp"
#include "tessera/tests/codelets/kernel_case.hpp"
#include "tessera/tests/codelets/random_case.hpp"
#include "tessera/tests/support/guarded_copy.hpp"

namespace tessera::test {
namespace {

using codelets::internal::UseSimdTarget;

// The gap after the last row of an operand is not part of the operand.
std::int64_t bytes_of_rows(const StoredRows& side, std::int64_t bytes_of_element) {
  return side.rows == 0 ? 0 : ((side.rows - 1) * side.stride + side.z) * bytes_of_element;
}

class GuardedRows : public GuardedCopy<std::byte> {
 public:
  GuardedRows(StoredRows& side, DataType type)
      : GuardedCopy(static_cast<const std::byte*>(side.store.data()),
                    bytes_of_rows(side, bytes_of(type))) {}
};

// Runs the kernel on copies that end at guard pages, and returns the result or the gradients.
std::vector<std::byte> run_guarded(KernelCase& c, Kernel kernel) {
  const KernelKey& key = c.key;
  GuardedRows x(c.x_side, c.x_is_result() ? key.sum : key.in);
  GuardedRows y(c.y_side, c.y_is_result() ? key.sum : key.in);
  const auto values = std::int64_t(c.values.size());
  const auto bytes = [](Store& store) { return static_cast<const std::byte*>(store.data()); };
  GuardedCopy<std::byte> in(bytes(c.values), values * bytes_of(key.in));
  const std::int64_t bytes_of_gradients = values * bytes_of(key.sum);
  GuardedCopy<std::byte> gradients(bytes(c.gradients), bytes_of_gradients);
  codelets::KernelArgs args = c.args();
  args.values = in.data();
  args.gradients = gradients.data();
  const bool is_grad_w = key.operation == Operation::GradW;
  args.in.data = is_grad_w || c.y_is_result() ? x.data() : y.data();
  args.in_s.data = is_grad_w ? y.data() : nullptr;
  args.out.data = is_grad_w ? nullptr : c.x_is_result() ? x.data() : y.data();
  kernel(args);
  if (is_grad_w) return {gradients.data(), gradients.data() + bytes_of_gradients};
  GuardedRows& out = c.x_is_result() ? x : y;
  return {out.data(), out.data() + bytes_of_rows(c.result(), bytes_of(key.sum))};
}

void expect_own_memory_only(const KernelEntry& kernel, const Draw& draw) {
  SCOPED_TRACE(testing::Message() << kernel.name << " z " << draw.z << " gap " << draw.gap);
  KernelCase c = random_case(kernel.key, draw);
  const std::vector<std::byte> got = run_guarded(c, kernel.run);
  c.run(kernel.reference);
  const Store& expected = results_of(c);
  const auto* begin = static_cast<const std::byte*>(const_cast<Store&>(expected).data());
  EXPECT_EQ(got, std::vector(begin, begin + got.size()));
}

TEST(GuardPages, EndAProgramThatReadsBehindTheLastElement) {
  const float one = 1.0f;
  GuardedCopy<float> copy(&one, 1);
  const volatile float* behind = copy.data() + 1;
  EXPECT_DEATH([[maybe_unused]] const float read = *behind, "");
}

TEST(GuardPages, AreTouchedByNoKernel) {
  for (const codelets::internal::SimdTarget& target : codelets::internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const UseSimdTarget use(target);
    for (const KernelEntry& kernel : codelets::kernels())
      for (const std::int64_t z : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 25, 31, 33, 50, 100})
        for (const std::uint64_t seed : {1, 2})
          expect_own_memory_only(kernel, {.block = {3, 2},
                                          .z = z,
                                          .gap = std::int64_t(seed) - 1,
                                          .seed = seed,
                                          .rows = 3,
                                          .cols = std::int64_t(2 * seed + 1)});
  }
}

// Square blocks have kernels of their own, which load parts of vectors.
TEST(GuardPages, AreTouchedByNoKernelOfSquareBlocks) {
  for (const codelets::internal::SimdTarget& target : codelets::internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const UseSimdTarget use(target);
    for (const KernelEntry& kernel : codelets::kernels()) {
      if (kernel.key.format != codelets::Format::Block) continue;
      for (const std::int64_t side : {4, 8, 16})
        for (const std::int64_t z : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 33})
          expect_own_memory_only(
              kernel,
              {.block = {side, side}, .z = z, .gap = z % 2, .seed = 1, .rows = 2, .cols = 3});
    }
  }
}

// Rows of GradW's dot products, of which the last ends in a masked load.
TEST(GuardPages, AreNotTouchedByDotProductsAtPlaces) {
  constexpr std::int64_t kColumns = 5;
  const std::vector<std::int32_t> columns = {4, 0, 3, 1, 2};
  const codelets::RowPlaces all{.count = kColumns};
  for (const codelets::internal::SimdTarget& target : codelets::internal::simd_targets()) {
    if (!target.runs_here) continue;
    SCOPED_TRACE(target.name);
    const UseSimdTarget use(target);
    for (std::int64_t z = 1; z <= 130; ++z) {
      const std::vector<float> ones(std::size_t(kColumns * z), 1.0f);
      GuardedCopy<float> q_grad(ones.data(), z), s(ones.data(), kColumns * z);
      std::vector<float> gradients(kColumns, 3.0f);
      codelets::place_dots(codelets::PlaceDots<float>{.block = {1, 1},
                                                      .rows = {&all, 1},
                                                      .columns = columns,
                                                      .q_grad = q_grad.data(),
                                                      .q_grad_stride = z,
                                                      .s = s.data(),
                                                      .s_stride = z,
                                                      .z = z,
                                                      .gradients = gradients.data(),
                                                      .replaces = true});
      EXPECT_EQ(gradients, std::vector(kColumns, float(z))) << z;
    }
  }
}

}  // namespace
}  // namespace tessera::test
