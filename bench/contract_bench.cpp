// Contracts a cube with a vector along each of its dimensions. No dimension may cost much more than
// another, which the three lines of one run show.

#include <benchmark/benchmark.h>

#include <set>
#include <string>
#include <vector>

#include "tessera/arrays/tensor/contract.hpp"
#include "tessera/base/random.hpp"

namespace {

using namespace tessera;

constexpr std::int64_t kSide = 256, kNonZeros = 1'000'000;

arrays::CooTensor<float> random_cube() {
  Random random(2);
  std::set<std::int64_t> places;
  while (std::ssize(places) < kNonZeros) places.insert(random.below(kSide * kSide * kSide));
  std::vector<std::int32_t> indices;
  for (const std::int64_t at : places)
    for (const std::int64_t index : {at / (kSide * kSide), at / kSide % kSide, at % kSide})
      indices.push_back(static_cast<std::int32_t>(index));
  return {{kSide, kSide, kSide}, indices, std::vector<float>(places.size(), 1)};
}

// Every product is 2, so the sum of the results is twice the number of non-zeros.
bool is_right(const arrays::CooTensor<float>& result) {
  double sum = 0;
  for (const float v : result.values()) sum += double(v);
  return sum == 2.0 * kNonZeros;
}

void contract_along(benchmark::State& state) {
  static const arrays::CooTensor<float> cube = random_cube();
  const std::vector<float> dense(kSide, 2);
  if (!is_right(arrays::contract<float>(cube, {state.range(0)}, dense)))
    return state.SkipWithError("wrong result");
  for (auto _ : state)
    benchmark::DoNotOptimize(arrays::contract<float>(cube, {state.range(0)}, dense));
  state.counters["nonzeros"] =
      benchmark::Counter(double(kNonZeros), benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(contract_along)->ArgName("dimension")->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
