#pragma once

#include <span>
#include <string>
#include <variant>

#include "tessera/arrays/ops/element.hpp"

namespace tessera::arrays {

// Functions of one element. For the functions up to ZerosLike f(0) = 0, so they keep the storage.
enum class Unary {
  Relu,
  Abs,
  Sign,
  Round,
  Rint,
  Ceil,
  Floor,
  Trunc,
  Fix,
  Square,
  Sqrt,
  Cbrt,
  Sin,
  Tan,
  Arcsin,
  Arctan,
  Sinh,
  Tanh,
  Arcsinh,
  Arctanh,
  Log1p,
  Expm1,
  Degrees,
  Radians,
  Negative,
  ZerosLike,
  Exp,
  Log,
  Cos,
  Cosh,
  Gamma,
  Sigmoid,
  Rsqrt,
  Arccos
};

// The number of values of Unary.
inline constexpr int kUnaryCount = int(Unary::Arccos) + 1;

// Returns true if f(0) = 0.
constexpr bool keeps_zero(Unary function) { return function <= Unary::ZerosLike; }

// Returns true if the function of an integer is an integer: relu, abs, sign, the roundings, square,
// negative and zeros_like.
constexpr bool keeps_integers(Unary function) {
  return function <= Unary::Square || function == Unary::Negative || function == Unary::ZerosLike;
}

// Returns the name in lower case, for example "relu" or "zeros_like".
std::string to_string(Unary function);

// Functions of two elements. A minimum or maximum with a NaN is NaN.
enum class Binary { Add, Subtract, Multiply, Divide, Minimum, Maximum };

// Returns the name in lower case, for example "add".
std::string to_string(Binary op);

// An element-wise operation as a value: a function of one element that gives an element of the same
// type. Its effect on elements that are not stored follows from its value at zero. Storages decide
// how they run it: the values come in runs, and run() is a loop over one of them.
// T is any type of element.hpp. Operations of integers are those that give integers; the others are
// Error{InvalidArgument}, and the remedy is cast<double>. Values may be used by any number of
// threads.
template <class T>
class Operation {
 public:
  // x -> function(x).
  Operation(Unary function);  // NOLINT(google-explicit-constructor): map(Unary::Sqrt, x) reads well

  // x -> x op scalar.
  Operation(Binary op, T scalar);

  // x -> value.
  static Operation assign(T value);

  // x -> least or most if x is outside of them. Throws Error{InvalidArgument} unless least <= most.
  static Operation clip(T least, T most);

  T operator()(T value) const;

  // Returns true if the operation of zero is zero, so that elements that are not stored stay so.
  bool keeps_zero() const;

  // Writes the operation of each element of `from` to `to`, which may be the same memory. Throws
  // Error{LimitExceeded} for an integer that does not fit; some results are then written.
  void run(std::span<const T> from, T* to) const;

  // Returns true if run() can throw.
  bool may_refuse() const;

  // Returns the operation as text, for example "sqrt", "multiply by a scalar" or "assign".
  std::string name() const;

 private:
  struct Scalar {
    Binary op;
    T value;
  };
  struct Constant {
    T value;
  };
  struct Clip {
    T least, most;
  };
  using Kind = std::variant<Unary, Scalar, Constant, Clip>;
  explicit Operation(Kind kind) : kind_(kind) {}

  Kind kind_;
};

// Writes a[i] op b[i] to to[i], which may be the memory of `a` or `b`. Both have the same length.
// Throws Error{LimitExceeded} for an integer that does not fit.
template <class T>
void run(Binary op, std::span<const T> a, std::span<const T> b, T* to);

// Returns a op b.
template <class T>
T run_one(Binary op, T a, T b) {
  run<T>(op, {&a, 1}, {&b, 1}, &a);
  return a;
}

// Throws Error{InvalidArgument} if the operation of integers gives no integer.
template <class T>
void require_kept_type(Binary op);

}  // namespace tessera::arrays
