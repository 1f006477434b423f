#include "tessera/base/vector_targets.hpp"
// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/verify/vector_sums.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "tessera/base/half.hpp"
#include "tessera/verify/internal/vector_sums.hpp"
#include "tessera/verify/internal/weighted_sums.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::verify::internal::HWY_NAMESPACE {

// Adds the columns from `first` on without vector instructions.
template <class T>
void add_few_columns(const WeightedRows<T>& of, std::int64_t first, double* sums, float* squares) {
  for (std::int64_t r = 0; r < of.rows; ++r)
    for (std::int64_t c = first; c < of.cols; ++c) {
      const double value = number(of.first[r * of.stride + c]);
      sums[c] += of.weights[r] * value;
      squares[c] += of.square_weights[r] * static_cast<float>(value * value);
    }
}

template <class T>
void add_products(const T* a, const T* b, std::int64_t count, RowProduct& result) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double product = number(a[i]) * number(b[i]);
    result.sum += product;
    result.squares += product * product;
  }
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::ScalableTag<double>;
using HalfFloats = hn::Rebind<float, Doubles>;  // as many lanes as Doubles
using Floats = hn::ScalableTag<float>;

// Loads one number for each lane of D.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const Half* from) {
  const auto bits =
      hn::LoadU(hn::Rebind<std::uint16_t, D>(), reinterpret_cast<const std::uint16_t*>(from));
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const BFloat16* from) {
  const auto bits =
      hn::LoadU(hn::Rebind<std::uint16_t, D>(), reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), bits)));
}

constexpr std::int64_t kColumns = HWY_LANES(float), kHalfColumns = HWY_LANES(double);
// Four vectors of floats have 12 vectors of sums, which leave enough of the 32 registers of
// AVX-512; AVX2 has 16 registers.
constexpr std::int64_t kMostVectors = HWY_TARGET == HWY_AVX3 ? 4 : 2;

// Adds up kVectors * kColumns columns.
template <std::int64_t kVectors, class T>
HWY_INLINE void add_strip(const WeightedRows<T>& of, std::int64_t first, double* sums,
                          float* squares) {
  const Doubles doubles;
  const HalfFloats halves;
  const Floats floats;
  hn::Vec<Doubles> sum[2 * kVectors];
  hn::Vec<Floats> square[kVectors];
  for (std::int64_t v = 0; v < 2 * kVectors; ++v)
    sum[v] = hn::LoadU(doubles, sums + first + v * kHalfColumns);
  for (std::int64_t v = 0; v < kVectors; ++v)
    square[v] = hn::LoadU(floats, squares + first + v * kColumns);
  for (std::int64_t r = 0; r < of.rows; ++r) {
    const T* const row = of.first + r * of.stride + first;
    const auto weight = hn::Set(doubles, of.weights[r]);
    const auto square_weight = hn::Set(floats, of.square_weights[r]);
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const auto x = load(floats, row + v * kColumns);
      const auto lower = hn::PromoteTo(doubles, hn::LowerHalf(halves, x));
      const auto upper = hn::PromoteTo(doubles, hn::UpperHalf(halves, x));
      sum[2 * v] = hn::MulAdd(weight, lower, sum[2 * v]);
      sum[2 * v + 1] = hn::MulAdd(weight, upper, sum[2 * v + 1]);
      square[v] = hn::MulAdd(square_weight, hn::Mul(x, x), square[v]);
    }
  }
  for (std::int64_t v = 0; v < 2 * kVectors; ++v)
    hn::StoreU(sum[v], doubles, sums + first + v * kHalfColumns);
  for (std::int64_t v = 0; v < kVectors; ++v)
    hn::StoreU(square[v], floats, squares + first + v * kColumns);
}

// Adds up kHalfColumns columns.
template <class T>
HWY_INLINE void add_half_strip(const WeightedRows<T>& of, std::int64_t first, double* sums,
                               float* squares) {
  const Doubles doubles;
  const HalfFloats floats;
  auto sum = hn::LoadU(doubles, sums + first);
  auto square = hn::LoadU(floats, squares + first);
  for (std::int64_t r = 0; r < of.rows; ++r) {
    const auto x = load(floats, of.first + r * of.stride + first);
    sum = hn::MulAdd(hn::Set(doubles, of.weights[r]), hn::PromoteTo(doubles, x), sum);
    square = hn::MulAdd(hn::Set(floats, of.square_weights[r]), hn::Mul(x, x), square);
  }
  hn::StoreU(sum, doubles, sums + first);
  hn::StoreU(square, floats, squares + first);
}

template <class T>
void add_all(const WeightedRows<T>& of, double* sums, float* squares) {
  std::int64_t c = 0;
  for (; c + kMostVectors * kColumns <= of.cols; c += kMostVectors * kColumns)
    add_strip<kMostVectors>(of, c, sums, squares);
  for (; c + kColumns <= of.cols; c += kColumns) add_strip<1>(of, c, sums, squares);
  for (; c + kHalfColumns <= of.cols; c += kHalfColumns) add_half_strip(of, c, sums, squares);
  if (c < of.cols) add_few_columns(of, c, sums, squares);
}

// Adds the lanes up in double.
HWY_INLINE double sum_of_lanes(hn::Vec<Floats> v) {
  const Doubles doubles;
  const HalfFloats halves;
  const auto pairs = hn::Add(hn::PromoteTo(doubles, hn::LowerHalf(halves, v)),
                             hn::PromoteTo(doubles, hn::UpperHalf(halves, v)));
  return hn::GetLane(hn::SumOfLanes(doubles, pairs));
}

template <class T>
void multiply_all(const T* a, const T* b, std::int64_t count, RowProduct& result) {
  const Floats floats;
  constexpr std::int64_t kLanes = HWY_LANES(float), kVectors = 4;
  hn::Vec<Floats> sum[kVectors], square[kVectors];
  for (auto& s : sum) s = hn::Zero(floats);
  for (auto& s : square) s = hn::Zero(floats);
  std::int64_t i = 0;
  for (; i + kVectors * kLanes <= count; i += kVectors * kLanes)
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const auto product =
          hn::Mul(load(floats, a + i + v * kLanes), load(floats, b + i + v * kLanes));
      sum[v] = hn::Add(sum[v], product);
      square[v] = hn::MulAdd(product, product, square[v]);
    }
  for (; i + kLanes <= count; i += kLanes) {
    const auto product = hn::Mul(load(floats, a + i), load(floats, b + i));
    sum[0] = hn::Add(sum[0], product);
    square[0] = hn::MulAdd(product, product, square[0]);
  }
  result.sum += sum_of_lanes(hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3])));
  result.squares +=
      sum_of_lanes(hn::Add(hn::Add(square[0], square[1]), hn::Add(square[2], square[3])));
  add_products(a + i, b + i, count - i, result);
}

double dot_of(const double* a, const double* b, std::int64_t count) {
  const Doubles doubles;
  constexpr std::int64_t kLanes = HWY_LANES(double), kVectors = 4;
  hn::Vec<Doubles> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(doubles);
  std::int64_t i = 0;
  for (; i + kVectors * kLanes <= count; i += kVectors * kLanes)
    for (std::int64_t v = 0; v < kVectors; ++v)
      sums[v] = hn::MulAdd(hn::LoadU(doubles, a + i + v * kLanes),
                           hn::LoadU(doubles, b + i + v * kLanes), sums[v]);
  double result = hn::GetLane(
      hn::SumOfLanes(doubles, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
  for (; i < count; ++i) result += a[i] * b[i];
  return result;
}

#else

double dot_of(const double* a, const double* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}
template <class T>
void add_all(const WeightedRows<T>& of, double* sums, float* squares) {
  add_few_columns(of, 0, sums, squares);
}
template <class T>
void multiply_all(const T* a, const T* b, std::int64_t count, RowProduct& result) {
  add_products(a, b, count, result);
}

#endif

void add_floats(const WeightedRows<float>& of, double* sums, float* squares) {
  add_all(of, sums, squares);
}
void add_halves(const WeightedRows<Half>& of, double* sums, float* squares) {
  add_all(of, sums, squares);
}
void add_bfloat16s(const WeightedRows<BFloat16>& of, double* sums, float* squares) {
  add_all(of, sums, squares);
}
void multiply_floats(const float* a, const float* b, std::int64_t count, RowProduct& result) {
  multiply_all(a, b, count, result);
}
void multiply_halves(const Half* a, const Half* b, std::int64_t count, RowProduct& result) {
  multiply_all(a, b, count, result);
}
void multiply_bfloat16s(const BFloat16* a, const BFloat16* b, std::int64_t count,
                        RowProduct& result) {
  multiply_all(a, b, count, result);
}

}  // namespace tessera::verify::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::verify::internal {
HWY_EXPORT(add_floats);
HWY_EXPORT(add_halves);
HWY_EXPORT(add_bfloat16s);
HWY_EXPORT(multiply_floats);
HWY_EXPORT(multiply_halves);
HWY_EXPORT(multiply_bfloat16s);
HWY_EXPORT(dot_of);

double dot(const double* a, const double* b, std::int64_t count) {
  return HWY_DYNAMIC_DISPATCH(dot_of)(a, b, count);
}

template <class T>
void add_columns(const WeightedRows<T>& rows, double* sums, float* squares) {
  if constexpr (std::is_same_v<T, float>)
    HWY_DYNAMIC_DISPATCH(add_floats)(rows, sums, squares);
  else if constexpr (std::is_same_v<T, Half>)
    HWY_DYNAMIC_DISPATCH(add_halves)(rows, sums, squares);
  else
    HWY_DYNAMIC_DISPATCH(add_bfloat16s)(rows, sums, squares);
}

template <class T>
RowProduct multiply_rows(const T* a, const T* b, std::int64_t count) {
  RowProduct result;
  if constexpr (std::is_same_v<T, float>)
    HWY_DYNAMIC_DISPATCH(multiply_floats)(a, b, count, result);
  else if constexpr (std::is_same_v<T, Half>)
    HWY_DYNAMIC_DISPATCH(multiply_halves)(a, b, count, result);
  else
    HWY_DYNAMIC_DISPATCH(multiply_bfloat16s)(a, b, count, result);
  return result;
}

template void add_columns(const WeightedRows<float>&, double*, float*);
template void add_columns(const WeightedRows<Half>&, double*, float*);
template void add_columns(const WeightedRows<BFloat16>&, double*, float*);
template RowProduct multiply_rows(const float*, const float*, std::int64_t);
template RowProduct multiply_rows(const Half*, const Half*, std::int64_t);
template RowProduct multiply_rows(const BFloat16*, const BFloat16*, std::int64_t);

}  // namespace tessera::verify::internal
#endif
