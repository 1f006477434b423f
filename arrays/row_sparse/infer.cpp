#include "tessera/arrays/row_sparse/infer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::arrays {
namespace {

constexpr Inferred kFallback{Storage::Dense, true};

constexpr Inferred gives(Storage result) { return {result, false}; }

bool has(Storage wanted, Storage a, Storage b) { return a == wanted || b == wanted; }

}  // namespace

Inferred infer_dot(Storage a, Storage b, DotForm form) {
  const bool both_plain = !form.transpose_a && !form.transpose_b;
  if (a == Storage::Dense && b == Storage::Dense) return gives(Storage::Dense);
  if (a == Storage::Csr && b != Storage::Csr && !form.transpose_b)
    return gives(form.transpose_a && !form.dense_result ? Storage::RowSparse : Storage::Dense);
  if (a == Storage::Dense && b == Storage::Csr && !form.transpose_a)
    return gives(both_plain && !form.dense_result ? Storage::Csr : Storage::Dense);
  return kFallback;
}

Inferred infer_binary(Binary op, Storage a, Storage b) {
  if (a == Storage::Dense && b == Storage::Dense) return gives(Storage::Dense);
  if (op == Binary::Divide) return kFallback;
  if (a == b) return gives(a);
  if (!has(Storage::Dense, a, b)) return kFallback;
  if (op != Binary::Multiply) return gives(Storage::Dense);
  return has(Storage::RowSparse, a, b) ? gives(Storage::RowSparse) : kFallback;
}

Inferred infer_scalar(Binary op, Storage a) {
  const bool keeps = op == Binary::Multiply || op == Binary::Divide || a == Storage::Dense;
  return keeps ? gives(a) : kFallback;
}

Inferred infer_unary(Unary function, Storage a) {
  return keeps_zero(function) || a == Storage::Dense ? gives(a) : kFallback;
}

Inferred infer_sum(Storage a, bool keep_dimensions) {
  const bool fits = a == Storage::Dense || (a == Storage::Csr && !keep_dimensions);
  return fits ? gives(Storage::Dense) : kFallback;
}

void Fallbacks::record(const std::string& signature, Bytes bytes) {
  if (mode_ == Mode::Strict)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} has no sparse kernel and would make {} bytes dense, which strict "
                            "mode refuses; cast the operands to dense yourself",
                            signature, bytes.value));
  if (bytes > most_)
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("{} has no sparse kernel and would make {} bytes dense; at most {} are "
                            "allowed, see Fallbacks",
                            signature, bytes.value, most_.value));
  auto line = std::ranges::find(seen_, signature, &Fallback::signature);
  if (line == seen_.end()) line = seen_.insert(line, Fallback{signature, 0, Bytes(0)});
  ++line->times;
  line->bytes = std::max(line->bytes, bytes);
}

}  // namespace tessera::arrays
