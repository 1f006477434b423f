#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tessera/arrays/mapped/products.hpp"
#include "tessera/arrays/ops/fold.hpp"
#include "tessera/arrays/ops/rearrange.hpp"
#include "tessera/arrays/ops/transform.hpp"
#include "tessera/arrays/tensor/blas.hpp"
#include "tessera/arrays/tensor/slices.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/formats/parts.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::bench {
namespace {

using Shape = std::vector<std::int64_t>;

// Compares an operation in place on all cores with a loop that reads and writes the same bytes.
Line unary_line() {
  const auto executor = make_executor();
  constexpr std::int64_t kEntries = 10'000'000, kPart = 1 << 15;
  arrays::CooTensor<float> x = spread({1000, 1000, 1000}, kEntries);
  std::vector<std::uint64_t> words(kEntries / 2, 1);
  const arrays::Operation<float> operation(arrays::Unary::Negative);
  const auto touch = [&] {
    executor->for_each((std::ssize(words) + kPart - 1) / kPart, [&](std::int64_t part) {
      const std::int64_t end = std::min(std::ssize(words), (part + 1) * kPart);
      for (std::int64_t i = part * kPart; i < end; ++i) words[std::size_t(i)] ^= 0x55;
    });
  };
  const double ratio = ratio_of_best(touch, [&] { arrays::change(operation, x, *executor); });
  const bool is_right = x.get({0, 0, 0}) == 0 || std::abs(x.values()[0]) == 1;
  return {"element-wise unary, 10 million stored, all cores",
          fmt::format("{:.2f} of the memory's rate", ratio), ">= 0.8", is_right && ratio >= 0.8};
}

Line fold_line() {
  const auto one = make_executor(ExecutorKind::Threads, 1);
  const arrays::CooTensor<float> x = spread({256, 256, 256}, 1'000'000);
  double least = 1e300, most = 0;
  for (std::int64_t d = 0; d < 3; ++d) {
    if (arrays::fold_all(arrays::Fold::Sum, arrays::fold(arrays::Fold::Sum, x, {d}, *one), *one) !=
        1e6f)
      return {"sum over one dimension", "wrong result", "right", false};
    const double seconds =
        best_seconds(7, [&] { (void)arrays::fold(arrays::Fold::Sum, x, {d}, *one); });
    least = std::min(least, seconds);
    most = std::max(most, seconds);
  }
  return {"sum over one dimension, 256^3, 1 million stored",
          fmt::format("{:.1f} to {:.1f} ms by dimension", least * 1e3, most * 1e3), "ratio <= 1.5",
          most <= 1.5 * least};
}

Lines permute_lines() {
  const auto one = make_executor(ExecutorKind::Threads, 1);
  constexpr std::int64_t kEntries = 10'000'000;
  const arrays::CooTensor<float> x = spread({1000, 500, 200}, kEntries);
  Lines lines;
  for (const Shape& order : {Shape{1, 0, 2}, {2, 0, 1}, {2, 1, 0}}) {
    const double seconds = best_seconds(3, [&] { (void)arrays::permute(x, order, *one); });
    const double rate = double(kEntries) / seconds;
    lines.push_back(
        {fmt::format("permute to {} {} {}, 10 million stored", order[0], order[1], order[2]),
         fmt::format("{:.1f} M entries/s a core", rate / 1e6), ">= 40 M", rate >= 40e6});
  }
  return lines;
}

// Compares a batched product with the products of its matrices one by one.
Line batched_line() {
  constexpr std::int64_t kBatch = 16, kRows = 512, kCols = 512, kWidth = 64;
  const auto one = make_executor(ExecutorKind::Threads, 1);
  const auto x = spread({kBatch, kRows, kCols}, kBatch * kRows * kCols / 20);
  const auto mapped = arrays::to_mapped(x, arrays::Mapping(x.shape()), arrays::MappedKind::Csr);
  const std::size_t in = kBatch * kCols * kWidth, out = kBatch * kRows * kWidth;
  const arrays::DenseArray<float> b{{kBatch, kCols, kWidth}, std::vector<float>(in, 1)};
  arrays::DenseArray<float> c{{kBatch, kRows, kWidth}, std::vector<float>(out)};
  std::vector<float> single(out);
  std::vector<arrays::SlicedCsr<float>> parts;
  for (std::int64_t g = 0; g < kBatch; ++g) {
    const auto part = to_csr(mapped.select({arrays::Point{g}}));
    parts.push_back(arrays::to_sliced(part));
  }
  const auto singles = [&] {
    for (std::int64_t g = 0; g < kBatch; ++g)
      arrays::gemm<arrays::SlicedCsr<float>>(
          parts[std::size_t(g)], {b.values.data() + g * kCols * kWidth, kCols, kWidth, kWidth, 1},
          {single.data() + g * kRows * kWidth, kRows, kWidth, kWidth, 1}, {}, *one);
  };
  const auto batched = [&] { arrays::batched_gemm(mapped, b, c, {}, *one); };
  const double ratio = best_seconds(9, batched) / best_seconds(9, singles);
  return {"batched product, 16 of 512 x 512, beside one by one", fmt::format("{:.2f} times", ratio),
          "<= 1.2", c.values == single && ratio <= 1.2};
}

// Compares a product of a CSR with host::spmm on the same lists.
Line gemm_line() {
  constexpr std::int64_t kSide = 4096, kWidth = 256;
  const auto one = make_executor(ExecutorKind::Threads, 1);
  const sparse::Csr<float> csr = to_csr(spread({kSide, kSide}, kSide * kSide / 20));
  const auto sliced = arrays::to_sliced(csr);
  const Matrix<float> b = random_matrix<float>(kSide, kWidth, 2);
  Matrix<float> c(kSide, kWidth), wanted(kSide, kWidth);
  const host::CompressedRows<float, std::int32_t, std::int64_t> rows{
      kSide, kSide, {1, 1}, csr.row_begin, csr.col, csr.values};
  const double own = best_seconds(
      9, [&] { arrays::gemm<arrays::SlicedCsr<float>>(sliced, b.view(), c.view(), {}, *one); });
  const double other =
      best_seconds(9, [&] { host::spmm<float>(rows, b.view(), wanted.view(), *one); });
  return {"gemm of a CSR, 4096 x 4096, density 0.05, z 256, beside host::spmm",
          fmt::format("{:.1f} ms, {:.2f} times", own * 1e3, own / other), "<= 1.1",
          c == wanted && own <= 1.1 * other};
}

// Compares the ways of a mapped matrix into a product.
Lines path_lines() {
  const auto one = make_executor(ExecutorKind::Threads, 1);
  const auto x = spread({2000, 2000}, 200'000);
  const std::vector<float> v(2000, 1);
  std::vector<float> y(2000);
  Lines lines;
  const auto add = [&](const std::string& name, const arrays::MappedArray<float>& a) {
    const double seconds = best_seconds(5, [&] { arrays::gemv<float>(a, v, y, {}, *one); });
    lines.push_back(
        {"matrix x vector, 2000 x 2000, 200 thousand stored, " + name,
         fmt::format("{:.3f} ms, path: {}", seconds * 1e3, to_string(arrays::product_path(a))), "",
         true});
  };
  const arrays::Mapping mapping(x.shape()), turned(x.shape(), {1, 0}, {1});
  add("CSR", to_mapped(x, mapping, arrays::MappedKind::Csr));
  add("CSC", to_mapped(x, turned, arrays::MappedKind::Csr));
  add("strided", to_mapped(x, mapping, arrays::MappedKind::Strided));
  add("COO", to_mapped(x, mapping, arrays::MappedKind::Coo));
  add("flat COO", to_mapped(x, mapping, arrays::MappedKind::FlatCoo));
  return lines;
}

}  // namespace

Lines operation_lines() {
  Lines lines = {unary_line(), fold_line(), batched_line(), gemm_line()};
  for (const Lines& more : {permute_lines(), path_lines()})
    lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

}  // namespace tessera::bench
