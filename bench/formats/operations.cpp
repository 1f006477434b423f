#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tessera/arrays/ops/fold.hpp"
#include "tessera/arrays/ops/rearrange.hpp"
#include "tessera/arrays/ops/transform.hpp"
#include "tessera/base/executor.hpp"
#include "tessera/bench/formats/parts.hpp"

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

}  // namespace

Lines operation_lines() {
  Lines lines = permute_lines();
  lines.insert(lines.begin(), {unary_line(), fold_line()});
  return lines;
}

}  // namespace tessera::bench
