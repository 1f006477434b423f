// Block-sparse attention: the product at a mask, the softmax of rows and a whole head, on the
// modelled machine and on this computer, against plain loops in double precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/base/random.hpp"
#include "tessera/host/mask_product.hpp"
#include "tessera/host/softmax.hpp"
#include "tessera/runtime/block_attention.hpp"
#include "tessera/runtime/block_softmax.hpp"
#include "tessera/sparse/block_mask.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera {
namespace {

using device::ExchangeMode;
using sparse::Csr;
using testing::HasSubstr;
using testing::ThrowsMessage;

device::Machine machine_of(std::int64_t tiles) {
  device::Machine machine = device::machine_preset("gc200");
  machine.tiles = tiles;
  return machine;
}

// Small whole numbers, whose sums are exact.
template <class T>
Matrix<T> whole_numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Random random(seed);
  Matrix<T> m(rows, cols);
  for (T& v : m.elements()) v = T(float(random.below(3)) - 1.0f);
  return m;
}

template <class T>
Matrix<T> random_numbers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Random random(seed);
  Matrix<T> m(rows, cols);
  for (T& v : m.elements()) v = T(float(2 * random.unit() - 1));
  return m;
}

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = float(8 * random.unit() - 4);
  return values;
}

std::vector<float> values_of(const std::vector<Csr<float>>& masks) {
  std::vector<float> all;
  for (const Csr<float>& mask : masks)
    all.insert(all.end(), mask.values.begin(), mask.values.end());
  return all;
}

// Masks of three groups: one with triangles, one of random blocks, one that is empty.
std::vector<Csr<float>> masks_of(std::int64_t rows, std::int64_t cols, BlockShape block) {
  const auto random = sparse::random_mask(rows, cols, block, 0.4, 3);
  return {sparse::keep_triangle(random, sparse::Triangle::Lower),
          sparse::random_mask(rows, cols, block, 0.3, 4),
          sparse::random_mask(rows, cols, block, 0.0, 5)};
}

template <class T>
class AttentionOf : public testing::Test {};
using Types = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(AttentionOf, Types);

template <class T>
Matrix<T> turned(const Matrix<T>& from, std::int64_t groups) {
  const std::int64_t rows = from.rows() / groups;
  Matrix<T> to(groups * from.cols(), rows);
  for (std::int64_t r = 0; r < from.rows(); ++r)
    for (std::int64_t c = 0; c < from.cols(); ++c)
      to(r / rows * from.cols() + c, r % rows) = from(r, c);
  return to;
}

// Every combination of transposed operands, primes, an empty group, and masks with triangles.
TYPED_TEST(AttentionOf, MultipliesDenseMatricesAtAMaskOnThisComputer) {
  using T = TypeParam;
  const auto executor = make_executor(2);
  struct Size {
    std::int64_t m, k, n;
    BlockShape block;
  };
  for (const Size& size :
       {Size{24, 13, 40, {8, 8}}, Size{29, 7, 31, {1, 1}}, Size{12, 5, 14, {3, 2}}})
    for (int which = 0; which < 4; ++which) {
      const bool transpose_lhs = which % 2 == 1, transpose_rhs = which / 2 == 1;
      const auto masks = masks_of(size.m, size.n, size.block);
      const auto a = whole_numbers<T>(3 * size.m, size.k, 1),
                 b = whole_numbers<T>(3 * size.k, size.n, 2);
      const Matrix<T> given_a = transpose_lhs ? turned(a, 3) : a;
      const Matrix<T> given_b = transpose_rhs ? turned(b, 3) : b;
      const std::vector<float> kept = values_of(masks);
      std::vector<float> wanted, got(kept.size());
      for (std::size_t g = 0; g < masks.size(); ++g) {
        const Csr<float>& mask = masks[g];
        std::size_t i = 0;
        for (std::int64_t r = 0; r < mask.block_rows(); ++r)
          for (std::int64_t at = mask.row_begin[std::size_t(r)];
               at < mask.row_begin[std::size_t(r) + 1]; ++at)
            for (std::int64_t x = 0; x < size.block.rows; ++x)
              for (std::int64_t y = 0; y < size.block.cols; ++y, ++i) {
                double sum = 0;
                for (std::int64_t z = 0; z < size.k; ++z)
                  sum += double(float(a(std::int64_t(g) * size.m + r * size.block.rows + x, z))) *
                         double(float(b(std::int64_t(g) * size.k + z,
                                        mask.col[std::size_t(at)] * size.block.cols + y)));
                wanted.push_back(mask.values[i] != 0 ? float(sum) : 0.0f);
              }
      }
      host::mask_product<T>(masks, transpose_lhs, transpose_rhs, given_a.view(), given_b.view(),
                            got, *executor);
      EXPECT_EQ(got, wanted) << which;
    }
}

// Returns the homes of so many values that are spread over tiles in equal runs.
runtime::ValueHomes spread_homes(std::size_t values, std::int64_t tiles) {
  const auto count = std::int64_t(values);
  runtime::ValueHomes homes;
  homes.per_tile = std::max<std::int64_t>(ceil_div(count, tiles), 1);
  for (std::int64_t t = 0; t < ceil_div(count, homes.per_tile); ++t) homes.tiles.emplace_back(t);
  for (std::int64_t i = 0; i < count; ++i) homes.positions.push_back(i);
  return homes;
}

TYPED_TEST(AttentionOf, SoftmaxOfRowsIsThatOfThisComputerForEveryMaskThreadAndMode) {
  using T = TypeParam;
  constexpr double kBound = std::is_same_v<T, float> ? 1e-6 : std::is_same_v<T, Half> ? 2e-3 : 1e-2;
  for (const BlockShape block : {BlockShape{8, 8}, BlockShape{1, 1}, BlockShape{3, 2}}) {
    const auto masks = masks_of(24, 48, block);
    const std::size_t count = values_of(masks).size();
    std::vector<float> scores = random_values(count, 7), gradient = random_values(count, 8);
    for (std::vector<float>* values : {&scores, &gradient})
      for (float& v : *values) v = float(T(v));
    std::vector<float> p[2], g[2];
    device::Ledger ledgers[2];
    for (int run = 0; run < 2; ++run) {
      const auto executor = make_executor(1 + run);
      runtime::BlockSoftmax softmax(masks, data_type_of<T>(), machine_of(7),
                                    run == 0 ? ExchangeMode::Share : ExchangeMode::Isolate,
                                    *executor, {.scale = 0.5f, .homes = spread_homes(count, 7)});
      p[run].resize(count);
      g[run].resize(count);
      verify::Checksums sums;
      ASSERT_TRUE(softmax.softmax(scores, p[run], {.self_check = &sums}, ledgers[run]));
      EXPECT_TRUE(sums.ok());
      EXPECT_EQ(sums.compared, std::ssize(scores));
      EXPECT_EQ(ledgers[run].total(), softmax.planned());
      EXPECT_EQ(softmax.gradient(p[run], gradient, g[run]).total(), softmax.gradient_planned());
      // Cycles depend on the masks alone.
      std::vector<float> zeros(count), out(count);
      EXPECT_EQ(softmax.softmax(zeros, out), ledgers[run]);
    }
    EXPECT_EQ(p[0], p[1]);
    EXPECT_EQ(g[0], g[1]);
    EXPECT_EQ(ledgers[0], ledgers[1]);
    std::size_t first = 0;
    for (const Csr<float>& mask : masks) {
      const std::size_t size = mask.values.size();
      std::vector<float> halved(scores.begin() + first, scores.begin() + first + size),
          want_p(size), want_g(size);
      for (float& v : halved) v *= 0.5f;
      sparse::softmax_rows(mask, halved, want_p);
      sparse::softmax_rows_gradient(mask, std::span(p[0]).subspan(first, size),
                                    std::span(gradient).subspan(first, size), want_g);
      std::vector<float> host_p(size), host_g(size);
      const auto executor = make_executor(2);
      const auto of_mask = std::span(scores).subspan(first, size);
      host::softmax_rows(mask, of_mask, host_p, *executor, 0.5f);
      host::softmax_rows_gradient(mask, std::span(p[0]).subspan(first, size),
                                  std::span(gradient).subspan(first, size), host_g, *executor,
                                  0.5f);
      for (std::size_t i = 0; i < size; ++i) {
        if (std::is_same_v<T, float>) {  // halves are rounded before they are scaled, too
          EXPECT_EQ(p[0][first + i], host_p[i]);
          EXPECT_EQ(g[0][first + i], host_g[i]);
        }
        EXPECT_NEAR(p[0][first + i], want_p[i], kBound);
        EXPECT_NEAR(g[0][first + i], 0.5f * want_g[i], 4 * kBound);
      }
      first += size;
    }
  }
}

TEST(BlockSoftmax, RefusesWhatIsNotOfItsMasksAndNoticesFaults) {
  const auto executor = make_executor(1);
  const auto masks = masks_of(24, 24, {8, 8});
  const std::size_t count = values_of(masks).size();
  const std::vector<float> scores = random_values(count, 1);
  std::vector<float> out(count), wanted(count), few(count - 1);
  runtime::BlockSoftmax softmax(masks, DataType::Float, machine_of(5), ExchangeMode::Isolate,
                                *executor, {.homes = spread_homes(count, 5)});
  EXPECT_THAT([&] { softmax.softmax(few, out); },
              ThrowsMessage<Error>(HasSubstr("the masks have")));
  runtime::BlockSoftmaxOptions wrong{.homes = spread_homes(count, 5)};
  wrong.homes.positions[1] = 0;
  EXPECT_THAT(
      [&] {
        runtime::BlockSoftmax(masks, DataType::Float, machine_of(5), ExchangeMode::Share, *executor,
                              wrong);
      },
      ThrowsMessage<Error>(HasSubstr("place 0 is not one of")));
  const device::Ledger clean = softmax.softmax(scores, wanted);
  ASSERT_EQ(std::ssize(clean.steps), 3);
  EXPECT_GT(clean.total(), Cycles());
  int repaired = 0;
  for (std::int64_t step = 0; step < 3; ++step)
    for (std::int64_t bit = 0; bit < 9000; bit += 301) {
      verify::Checksums sums;
      device::Ledger ledger;
      runtime::TilePass options;
      options.pass.self_check = &sums;
      options.pass.repair = true;
      options.tiles.fault = device::Fault{TileId(1), step, bit};
      ASSERT_TRUE(softmax.softmax(scores, out, options, ledger));
      EXPECT_EQ(out, wanted) << step << " " << bit;
      if (!sums.first_failure.empty()) ++repaired;
    }
  EXPECT_GT(repaired, 10);
}

struct Head {
  std::int64_t heads, queries, keys, size;
};

// Loops over one head in double precision, from the rounded operands.
void plain_head(const Matrix<double>& keep, float scale, const Matrix<double> in[4],
                Matrix<double> out[4]) {
  const auto &q = in[0], &k = in[1], &v = in[2], &o_grad = in[3];
  const std::int64_t rows = keep.rows(), cols = keep.cols(), size = q.cols();
  out[0] = out[1] = Matrix<double>(rows, size);
  out[2] = out[3] = Matrix<double>(cols, size);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<double> p(static_cast<std::size_t>(cols)), p_grad = p;
    double sum = 0, dot = 0;
    for (std::int64_t c = 0; c < cols; ++c) {
      double s = 0;
      for (std::int64_t d = 0; d < size; ++d) s += q(r, d) * k(c, d);
      p[std::size_t(c)] = keep(r, c) != 0 ? std::exp(double(scale) * s) : 0;
      sum += p[std::size_t(c)];
    }
    for (std::int64_t c = 0; c < cols; ++c) {
      double& chance = p[std::size_t(c)];
      if (sum > 0) chance /= sum;
      for (std::int64_t d = 0; d < size; ++d) {
        out[0](r, d) += chance * v(c, d);
        out[3](c, d) += chance * o_grad(r, d);
        p_grad[std::size_t(c)] += o_grad(r, d) * v(c, d);
      }
      dot += chance * p_grad[std::size_t(c)];
    }
    for (std::int64_t c = 0; c < cols; ++c)
      for (std::int64_t d = 0; d < size; ++d) {
        const double s = double(scale) * p[std::size_t(c)] * (p_grad[std::size_t(c)] - dot);
        out[1](r, d) += s * k(c, d);
        out[2](c, d) += s * q(r, d);
      }
  }
}

template <class T>
Matrix<double> part_of(const Matrix<T>& all, std::int64_t group, std::int64_t rows) {
  Matrix<double> part(rows, all.cols());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < all.cols(); ++c)
      part(r, c) = double(float(all(group * rows + r, c)));
  return part;
}

TYPED_TEST(AttentionOf, AHeadIsThatOfDoublePrecisionForwardAndBackward) {
  using T = TypeParam;
  constexpr double kBound = std::is_same_v<T, float> ? 2e-5 : std::is_same_v<T, Half> ? 2e-2 : 0.15;
  const auto executor = make_executor(2);
  const std::int64_t x = 48, y = 48, z = 11, heads = 3;
  const float scale = 1 / std::sqrt(float(z));
  for (const BlockShape block : {BlockShape{8, 8}, BlockShape{1, 1}}) {
    std::vector<Csr<float>> masks = masks_of(x, y, block);
    masks[2] = sparse::causal_mask(x, block);
    const Problem problem{.size = {heads, x, y, z},
                          .block = block,
                          .density = 0.6,
                          .data_type = data_type_of<T>(),
                          .grad_a = true,
                          .grad_w = true};
    runtime::BlockAttention attention(problem, masks, scale, machine_of(64), ExchangeMode::Share,
                                      *executor);
    const auto q = random_numbers<T>(heads * x, z, 1), k = random_numbers<T>(heads * y, z, 2),
               v = random_numbers<T>(heads * y, z, 3), o_grad = random_numbers<T>(heads * x, z, 4);
    Matrix<T> o(heads * x, z), q_grad = o, k_grad(heads * y, z), v_grad = k_grad;
    const auto forward = attention.forward<T>(q.view(), k.view(), v.view(), o.view());
    const auto backward = attention.backward<T>(q.view(), k.view(), v.view(), o_grad.view(),
                                                q_grad.view(), k_grad.view(), v_grad.view());
    ASSERT_EQ(forward.steps.size(), 3U);
    ASSERT_EQ(backward.steps.size(), 5U);
    for (const auto* cost : {&forward, &backward})
      for (const runtime::AttentionStep& step : cost->steps) {
        EXPECT_GT(step.ledger.total(), Cycles()) << step.name;
        EXPECT_FALSE(to_string(*step.program).empty());
      }
    EXPECT_THAT(backward.table(), HasSubstr("gradient of the softmax"));
    // Blocks of these masks are in a triangle, whose counts by row and column the planner knows.
    EXPECT_NEAR(double(forward.total().value) / double(attention.planned_forward().value), 1, 0.15);
    EXPECT_NEAR(double(backward.total().value) / double(attention.planned_backward().value), 1,
                0.15);
    for (std::int64_t g = 0; g < heads; ++g) {
      const Matrix<double> in[4] = {part_of(q, g, x), part_of(k, g, y), part_of(v, g, y),
                                    part_of(o_grad, g, x)};
      Matrix<double> wanted[4];
      const Matrix<float> dense = sparse::to_dense(masks[std::size_t(g)]);
      Matrix<double> keep(x, y);
      for (std::int64_t r = 0; r < x; ++r)
        for (std::int64_t c = 0; c < y; ++c) keep(r, c) = double(dense(r, c));
      plain_head(keep, scale, in, wanted);
      const Matrix<double> got[4] = {part_of(o, g, x), part_of(q_grad, g, x), part_of(k_grad, g, y),
                                     part_of(v_grad, g, y)};
      for (int i = 0; i < 4; ++i)
        for (std::size_t e = 0; e < got[i].elements().size(); ++e)
          EXPECT_NEAR(got[i].elements()[e], wanted[i].elements()[e], kBound) << i << " group " << g;
    }
  }
}

TEST(BlockAttention, StopsAndRefusesWhatItCannotDo) {
  const auto executor = make_executor(1);
  const Problem problem{.size = {1, 16, 16, 4},
                        .block = {8, 8},
                        .density = 0.75,
                        .data_type = DataType::Float,
                        .grad_a = true,
                        .grad_w = true};
  const std::vector<Csr<float>> masks{sparse::causal_mask(16, {8, 8})};
  Problem forward_only = problem;
  forward_only.grad_a = false;
  EXPECT_THAT(
      [&] {
        runtime::BlockAttention(forward_only, masks, 1, machine_of(4), ExchangeMode::Share,
                                *executor);
      },
      ThrowsMessage<Error>(HasSubstr("no GradA")));
  Problem short_of_keys = problem;
  short_of_keys.size.y = 13;  // the mask has 16 columns
  EXPECT_THAT(
      [&] {
        runtime::BlockAttention(short_of_keys, masks, 1, machine_of(4), ExchangeMode::Share,
                                *executor);
      },
      ThrowsMessage<Error>(HasSubstr("keeps key 13 for query 13")));
  planner::Options dense, operands;
  dense.constraints.use_dense = true;
  operands.constraints.grad_w_exchange_buckets = false;
  for (const planner::Options& options : {dense, operands}) {
    EXPECT_THAT(
        [&] {
          runtime::BlockAttention(problem, masks, 1, machine_of(4), ExchangeMode::Share, *executor,
                                  options);
        },
        ThrowsMessage<Error>(HasSubstr("attention: planConstraints")));
  }
  runtime::BlockAttention attention(problem, masks, 1, machine_of(4), ExchangeMode::Share,
                                    *executor);
  const auto q = random_numbers<float>(16, 4, 1);
  Matrix<float> o(16, 4), q_grad = o, k_grad = o, v_grad = o;
  EXPECT_THAT(
      [&] {
        attention.backward<float>(q.view(), q.view(), q.view(), q.view(), q_grad.view(),
                                  k_grad.view(), v_grad.view());
      },
      ThrowsMessage<Error>(HasSubstr("call forward before")));
  std::stop_source stop;
  stop.request_stop();
  runtime::AttentionCost cost;
  EXPECT_FALSE(attention.forward<float>(q.view(), q.view(), q.view(), o.view(),
                                        {.stop = stop.get_token()}, cost));
  device::TileLedger figures;
  runtime::TilePass with_fault, with_figures;
  with_fault.tiles.fault = device::Fault{};
  with_figures.tiles.tiles = &figures;
  for (const runtime::TilePass* options : {&with_fault, &with_figures})
    EXPECT_THAT(
        [&] {
          static_cast<void>(
              attention.forward<float>(q.view(), q.view(), q.view(), o.view(), *options, cost));
        },
        ThrowsMessage<Error>(HasSubstr("belong to one program")));
  verify::Checksums sums;
  EXPECT_TRUE(attention.forward<float>(q.view(), q.view(), q.view(), o.view(),
                                       {.self_check = &sums}, cost));
  EXPECT_TRUE(sums.ok());
}

TEST(AttentionCost, IsATableOfItsProgramsAndOfAll) {
  const auto step = [](device::StepKind kind, std::int64_t cycles, std::int64_t overhead) {
    return device::StepRecord{
        .kind = kind, .cycles = Cycles(cycles), .overhead = Cycles(overhead), .tiles = 1};
  };
  using enum device::StepKind;
  const runtime::AttentionCost cost{
      {{"scores", {.steps = {step(Compute, 700, 10), step(Exchange, 40, 3)}}},
       {"product", {.steps = {step(Compute, 5000, 20), step(Compute, 100, 1)}}}}};
  EXPECT_EQ(cost.table(),
            "program                          compute    exchange        rest         all\n"
            "scores                               700          40          13         753\n"
            "product                             5100           0          21        5121\n"
            "all                                 5800          40          34        5874\n");
}

}  // namespace
}  // namespace tessera
