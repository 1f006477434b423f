#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/base/units.hpp"

namespace tessera::arrays {

// Functions of one element. Up to ZerosLike f(0) = 0, so they keep the storage.
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
inline constexpr int kUnaryCount = int(Unary::Arccos) + 1;
constexpr bool keeps_zero(Unary function) { return function <= Unary::ZerosLike; }
std::string to_string(Unary function);  // "relu", "zeros_like"

// Functions of two elements.
enum class Binary { Add, Subtract, Multiply, Divide };
std::string to_string(Binary op);  // "add", ...

// op(a) * op(b). Where a sparse result is the rule, `dense_result` asks for a dense one.
struct DotForm {
  bool transpose_a = false, transpose_b = false, dense_result = false;
};

// The storage of a result, from that of the operands alone. Where no sparse kernel fits, operands
// are made dense for the time being and the result is dense: a fallback.
struct Inferred {
  Storage result = Storage::Dense;
  bool falls_back = false;
  friend bool operator==(const Inferred&, const Inferred&) = default;
};
// csr . dense and csr . row_sparse are dense, with transpose_a row_sparse; dense . csr is csr, with
// transpose_b dense; dense . dense is dense; anything else falls back.
Inferred infer_dot(Storage a, Storage b, DotForm form = {});
// Two row_sparse or two csr keep their storage under add, subtract and multiply; row_sparse times
// dense is row_sparse; one of them plus or minus dense is dense; anything else falls back.
Inferred infer_binary(Binary op, Storage a, Storage b);
// Array op scalar: multiply and divide keep the storage, add and subtract fall back.
Inferred infer_scalar(Binary op, Storage a);
Inferred infer_unary(Unary function, Storage a);
// Sums and means: a csr over axis 0, 1 or all gives dense; kept dimensions, and row_sparse, fall
// back.
Inferred infer_sum(Storage a, bool keep_dimensions);

// One operator signature that fell back.
struct Fallback {
  std::string signature;   // "divide(row_sparse, dense)"
  std::int64_t times = 0;  // how often
  Bytes bytes;             // the most that one call made dense
  friend bool operator==(const Fallback&, const Fallback&) = default;
};

// Keeps count of what was made dense behind the caller's back, one line for each signature, or
// forbids it. An object that is handed to operators; one thread at a time.
class Fallbacks {
 public:
  // What happens where an operator has no sparse form.
  enum class Mode {
    Report,  // densify and keep the count
    Strict   // Error{InvalidArgument} that names the signature; nothing is made dense
  };
  // No call may make more than `most` dense: Error{LimitExceeded} before anything is allocated.
  explicit Fallbacks(Mode mode = Mode::Report, Bytes most = Bytes(std::int64_t{1} << 30))
      : mode_(mode), most_(most) {}

  // In the order in which they first came.
  const std::vector<Fallback>& seen() const { return seen_; }
  // What operators call before they densify.
  void record(const std::string& signature, Bytes bytes);

 private:
  Mode mode_;
  Bytes most_;
  std::vector<Fallback> seen_;
};

}  // namespace tessera::arrays
