#include "tessera/host/float_peak.hpp"

#include "tessera/base/vector_targets.hpp"
// foreach_target reads this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/host/float_peak.cpp"
#include <hwy/foreach_target.h>
// The list of targets must be included first, then the headers that depend on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "tessera/base/aligned_vector.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::host::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve sums do not wait for each other: they are more than two units of four cycles need, and few
// enough for 16 registers.
constexpr std::int64_t kSums = 12;

template <class Step>
double rate_of(const Step& step) {
  const hn::ScalableTag<float> d;
  using Vector = hn::Vec<decltype(d)>;
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kRounds = 100'000;
  double best = 0;
  for (int repeat = 0; repeat < 25; ++repeat) {
    Vector sums[kSums];
    float start = float(repeat);  // all differ, else the compiler computes only one of them
    for (Vector& sum : sums) sum = hn::Set(d, start += 1);
    const Vector factor = hn::Set(d, 1 - 0x1p-12f), step_up = hn::Set(d, 0.5f);
    const auto begin = Clock::now();
    for (std::int64_t i = 0; i < kRounds; ++i)
      for (Vector& sum : sums) sum = step(sum, factor, step_up);
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    Vector total = hn::Zero(d);
    for (const Vector& sum : sums) total = hn::Add(total, sum);
    volatile float keep = hn::GetLane(hn::SumOfLanes(d, total));
    static_cast<void>(keep);
    const double flops = 2.0 * double(kRounds) * double(kSums) * double(hn::Lanes(d));
    best = std::max(best, flops / seconds.count());
  }
  return best;
}

double fused() {
  return rate_of([](auto sum, auto factor, auto up) { return hn::MulAdd(sum, factor, up); });
}
double separate() {
  return rate_of([](auto sum, auto factor, auto up) { return hn::Add(hn::Mul(sum, factor), up); });
}
// Eight sums are enough that loads do not wait for additions.
double read_rate(const float* data, std::size_t count) {
  const hn::ScalableTag<float> d;
  using Clock = std::chrono::steady_clock;
  const std::size_t step = 8 * hn::Lanes(d), whole = count / step * step;
  double best = 0;
  volatile float keep = 0;
  for (int sample = 0; sample < 9; ++sample) {
    const std::size_t rounds = 1 + (std::size_t{1} << 22) / count;
    const auto begin = Clock::now();
    hn::Vec<decltype(d)> sums[8];
    for (auto& sum : sums) sum = hn::Zero(d);
    for (std::size_t round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < whole; i += step)
        for (std::size_t k = 0; k < 8; ++k)
          sums[k] = hn::Add(sums[k], hn::Load(d, data + i + k * hn::Lanes(d)));
    for (std::size_t k = 1; k < 8; ++k) sums[0] = hn::Add(sums[0], sums[k]);
    keep = hn::GetLane(hn::SumOfLanes(d, sums[0]));
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    best = std::max(best, double(rounds * whole * sizeof(float)) / seconds.count());
  }
  static_cast<void>(keep);
  return best;
}
const char* name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace tessera::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::host {

HWY_EXPORT(fused);
HWY_EXPORT(separate);
HWY_EXPORT(read_rate);
HWY_EXPORT(name);

FloatPeak measure_float_peak() {
  return {.target = HWY_DYNAMIC_DISPATCH(name)(),
          .fused = HWY_DYNAMIC_DISPATCH(fused)(),
          .separate = HWY_DYNAMIC_DISPATCH(separate)()};
}

double measure_read_rate(Bytes size) {
  const AlignedVector<float> data(std::max<std::size_t>(std::size_t(size.value) / 4, 1024), 1.0f);
  return HWY_DYNAMIC_DISPATCH(read_rate)(data.data(), data.size());
}

}  // namespace tessera::host
#endif
