#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/arrays/ops/operation.hpp"
#include "tessera/arrays/row_sparse/arrays.hpp"
#include "tessera/base/units.hpp"

namespace tessera::arrays {

// The form of a product op(a) * op(b). `dense_result` asks for a dense result where the rule would
// give a sparse one.
struct DotForm {
  bool transpose_a = false, transpose_b = false, dense_result = false;
};

// The storage of a result, which depends on the storages of the operands alone. If no sparse kernel
// fits, dense copies of the operands are made and the result is dense: a fallback.
struct Inferred {
  Storage result = Storage::Dense;
  bool falls_back = false;
  friend bool operator==(const Inferred&, const Inferred&) = default;
};

// Returns the storage of a product. csr . dense and csr . row_sparse are dense, and row_sparse with
// transpose_a; dense . csr is csr, and dense with transpose_b; dense . dense is dense; everything
// else falls back.
Inferred infer_dot(Storage a, Storage b, DotForm form = {});

// Returns the storage of a combination of two arrays. Two row_sparse or two csr keep their storage
// under add, subtract and multiply; row_sparse times dense is row_sparse; a sparse array plus or
// minus dense is dense; two dense arrays are dense; everything else falls back.
Inferred infer_binary(Binary op, Storage a, Storage b);

// Returns the storage of a combination of an array and a scalar. Multiply and divide keep the
// storage; add and subtract of a sparse array fall back.
Inferred infer_scalar(Binary op, Storage a);

// Returns the storage of a function of an array. Functions with f(0) = 0 keep the storage; others
// fall back for a sparse array.
Inferred infer_unary(Unary function, Storage a);

// Returns the storage of sums and means, which are dense. A csr with kept dimensions, and
// row_sparse, fall back.
Inferred infer_sum(Storage a, bool keep_dimensions);

// The fallbacks of one operator signature.
struct Fallback {
  std::string signature;   // for example "divide(row_sparse, dense)"
  std::int64_t times = 0;  // number of fallbacks
  Bytes bytes;             // the most that one call made dense
  friend bool operator==(const Fallback&, const Fallback&) = default;
};

// Counts the fallbacks of operators, one line for each signature, or forbids them. Callers pass the
// object to operators; one thread at a time may use it.
class Fallbacks {
 public:
  // The behaviour if an operator has no sparse form.
  enum class Mode {
    Report,  // make dense copies and count them
    Strict   // throw Error{InvalidArgument}, which names the signature, and copy nothing
  };

  // A call that would make more than `most` bytes dense throws Error{LimitExceeded} before it
  // allocates memory.
  explicit Fallbacks(Mode mode = Mode::Report, Bytes most = Bytes(std::int64_t{1} << 30))
      : mode_(mode), most_(most) {}

  // Returns the fallbacks so far, in the order of their first occurrence.
  const std::vector<Fallback>& seen() const { return seen_; }

  // Records a fallback; operators call it before they make dense copies.
  void record(const std::string& signature, Bytes bytes);

 private:
  Mode mode_;
  Bytes most_;
  std::vector<Fallback> seen_;
};

}  // namespace tessera::arrays
