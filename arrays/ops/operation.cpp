#include "tessera/arrays/ops/operation.hpp"

#include <fmt/format.h>

#include <numbers>
#include <string_view>

#include "tessera/arrays/internal/exact.hpp"
#include "tessera/base/error.hpp"

namespace tessera::arrays {
namespace internal {

void refuse_value(double value, const char* type) {
  throw Error(ErrorCode::LimitExceeded,
              fmt::format("{} does not fit an element of type {}; cast the operands to a wider "
                          "type first",
                          value, type));
}

}  // namespace internal

namespace {

using internal::narrow;
using internal::Wide;
using internal::widen;

[[noreturn]] void refuse_integers(const std::string& name, const char* type) {
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{} of {} gives no integers; cast to double first", name, type));
}

template <class W>
W sign_of(W v) {
  if constexpr (std::floating_point<W>)
    if (std::isnan(v)) return v;
  return W((v > 0) - (v < 0));
}

// Calls see(f) with the rounding f, which leaves integers unchanged.
template <class W, class See>
void with_rounding(Unary function, See&& see) {
  if constexpr (std::floating_point<W>) {
    if (function == Unary::Round) return see([](W v) { return std::round(v); });
    if (function == Unary::Rint) return see([](W v) { return std::nearbyint(v); });
    if (function == Unary::Ceil) return see([](W v) { return std::ceil(v); });
    if (function == Unary::Floor) return see([](W v) { return std::floor(v); });
    see([](W v) { return std::trunc(v); });
  } else {
    see([](W v) { return v; });
  }
}

// Calls see(f) with a function that has a value in floating types only.
template <class W, class See>
void with_real(Unary function, See&& see) {
  constexpr W kDegrees = W(180) / std::numbers::pi_v<W>;
  // clang-format off
  switch (function) {
    case Unary::Sqrt: return see([](W v) { return std::sqrt(v); });
    case Unary::Cbrt: return see([](W v) { return std::cbrt(v); });
    case Unary::Sin: return see([](W v) { return std::sin(v); });
    case Unary::Tan: return see([](W v) { return std::tan(v); });
    case Unary::Arcsin: return see([](W v) { return std::asin(v); });
    case Unary::Arctan: return see([](W v) { return std::atan(v); });
    case Unary::Sinh: return see([](W v) { return std::sinh(v); });
    case Unary::Tanh: return see([](W v) { return std::tanh(v); });
    case Unary::Arcsinh: return see([](W v) { return std::asinh(v); });
    case Unary::Arctanh: return see([](W v) { return std::atanh(v); });
    case Unary::Log1p: return see([](W v) { return std::log1p(v); });
    case Unary::Expm1: return see([](W v) { return std::expm1(v); });
    case Unary::Degrees: return see([](W v) { return v * kDegrees; });
    case Unary::Radians: return see([](W v) { return v / kDegrees; });
    case Unary::Exp: return see([](W v) { return std::exp(v); });
    case Unary::Log: return see([](W v) { return std::log(v); });
    case Unary::Cos: return see([](W v) { return std::cos(v); });
    case Unary::Cosh: return see([](W v) { return std::cosh(v); });
    case Unary::Gamma: return see([](W v) { return std::tgamma(v); });
    case Unary::Sigmoid: return see([](W v) { return W(1) / (W(1) + std::exp(-v)); });
    case Unary::Rsqrt: return see([](W v) { return W(1) / std::sqrt(v); });
    default: return see([](W v) { return std::acos(v); });
  }
  // clang-format on
}

// Calls see(f) with the function as a function object over W.
template <class W, class See>
void with_function(Unary function, See&& see) {
  switch (function) {
    case Unary::Relu:
      return see([](W v) { return v < 0 ? W(0) : v; });
    case Unary::Abs:
      return see([](W v) { return v < 0 ? W(-v) : v + W(0); });
    case Unary::Sign:
      return see([](W v) { return sign_of(v); });
    case Unary::Square:
      return see([](W v) { return W(v * v); });
    case Unary::Negative:
      return see([](W v) { return W(-v); });
    case Unary::ZerosLike:
      return see([](W) { return W(0); });
    case Unary::Round:
    case Unary::Rint:
    case Unary::Ceil:
    case Unary::Floor:
    case Unary::Trunc:
    case Unary::Fix:
      return with_rounding<W>(function, see);
    default:
      if constexpr (std::floating_point<W>) with_real<W>(function, see);
  }
}

// Calls see(f) with the function as a function object over two W.
template <class W, class See>
void with_function(Binary op, See&& see) {
  switch (op) {
    case Binary::Add:
      return see([](W a, W b) { return W(a + b); });
    case Binary::Subtract:
      return see([](W a, W b) { return W(a - b); });
    case Binary::Multiply:
      return see([](W a, W b) { return W(a * b); });
    case Binary::Divide:
      if constexpr (std::floating_point<W>) see([](W a, W b) { return W(a / b); });
      return;
    case Binary::Minimum:
      return see([](W a, W b) { return internal::least_of(a, b); });
    case Binary::Maximum:
      return see([](W a, W b) { return W(-internal::least_of(W(-a), W(-b))); });
  }
}

}  // namespace

std::string to_string(Unary function) {
  static constexpr std::string_view kNames[kUnaryCount] = {
      "relu",   "abs",     "sign",    "round",    "rint",       "ceil",    "floor",
      "trunc",  "fix",     "square",  "sqrt",     "cbrt",       "sin",     "tan",
      "arcsin", "arctan",  "sinh",    "tanh",     "arcsinh",    "arctanh", "log1p",
      "expm1",  "degrees", "radians", "negative", "zeros_like", "exp",     "log",
      "cos",    "cosh",    "gamma",   "sigmoid",  "rsqrt",      "arccos"};
  return std::string(kNames[int(function)]);
}

std::string to_string(Binary op) {
  static constexpr std::string_view kNames[] = {"add",    "subtract", "multiply",
                                                "divide", "minimum",  "maximum"};
  return std::string(kNames[int(op)]);
}

template <class T>
void require_kept_type(Binary op) {
  if (IntegerElement<T> && op == Binary::Divide) refuse_integers(to_string(op), element_name<T>());
}

template <class T>
Operation<T>::Operation(Unary function) : kind_(function) {
  if (IntegerElement<T> && !keeps_integers(function))
    refuse_integers(to_string(function), element_name<T>());
}

template <class T>
Operation<T>::Operation(Binary op, T scalar) : kind_(Scalar{op, scalar}) {
  require_kept_type<T>(op);
}

template <class T>
Operation<T> Operation<T>::assign(T value) {
  return Operation(Kind(Constant{value}));
}

template <class T>
Operation<T> Operation<T>::clip(T least, T most) {
  if (!(widen(least) <= widen(most)))
    throw Error(ErrorCode::InvalidArgument,
                "clip: the least value is above the most, or one of them is NaN");
  return Operation(Kind(Clip{least, most}));
}

template <class T>
T Operation<T>::operator()(T value) const {
  run({&value, 1}, &value);
  return value;
}

template <class T>
bool Operation<T>::keeps_zero() const {
  return (*this)(T(0)) == T(0);
}

template <class T>
void Operation<T>::run(std::span<const T> from, T* to) const {
  using W = Wide<T>;
  const auto loop = [&](auto f) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = narrow<T>(f(widen(from[i])));
  };
  if (const auto* function = std::get_if<Unary>(&kind_)) return with_function<W>(*function, loop);
  if (const auto* scalar = std::get_if<Scalar>(&kind_))
    return with_function<W>(scalar->op, [&, b = widen(scalar->value)](auto f) {
      loop([f, b](W a) { return f(a, b); });
    });
  if (const auto* constant = std::get_if<Constant>(&kind_)) {
    std::fill_n(to, from.size(), constant->value);
    return;
  }
  const auto& clip = std::get<Clip>(kind_);
  const W least = widen(clip.least), most = widen(clip.most);
  loop([least, most](W v) { return v < least ? least : v > most ? most : v; });
}

template <class T>
bool Operation<T>::may_refuse() const {
  return IntegerElement<T> && kind_.index() < 2;
}

template <class T>
std::string Operation<T>::name() const {
  if (const auto* function = std::get_if<Unary>(&kind_)) return to_string(*function);
  if (const auto* scalar = std::get_if<Scalar>(&kind_))
    return to_string(scalar->op) + " with a scalar";
  return std::holds_alternative<Constant>(kind_) ? "assign" : "clip";
}

template <class T>
void run(Binary op, std::span<const T> a, std::span<const T> b, T* to) {
  require_kept_type<T>(op);
  with_function<Wide<T>>(op, [&](auto f) {
    for (std::size_t i = 0; i < a.size(); ++i) to[i] = narrow<T>(f(widen(a[i]), widen(b[i])));
  });
}

#define TESSERA_INSTANTIATE_OPERATION(T)                                 \
  template class Operation<T>;                                           \
  template void run(Binary, std::span<const T>, std::span<const T>, T*); \
  template void require_kept_type<T>(Binary);

TESSERA_FOR_EACH_ELEMENT(TESSERA_INSTANTIATE_OPERATION)

#undef TESSERA_INSTANTIATE_OPERATION

}  // namespace tessera::arrays
