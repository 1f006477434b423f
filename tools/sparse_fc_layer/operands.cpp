#include "tessera/tools/sparse_fc_layer/operands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>

#include "tessera/base/file.hpp"

namespace tessera::tools {
namespace {

// Returns the largest finite value of a type.
double largest_of(DataType type) {
  switch (type) {
    case DataType::Half:
      return 65504;
    case DataType::BFloat16:
      return 0x1.FEp127;
    case DataType::Float:
      break;
  }
  return std::numeric_limits<float>::max();
}

// Throws Error{BadInput} for a value that is not finite, or not after rounding to the type.
void check_values(const io::Array& file, DataType type, const std::string& name) {
  with_type(type, [&]<class T>(T) {
    for (std::size_t i = 0; i < file.values.size(); ++i) {
      const double value = file.values[i];
      if (std::isfinite(float(T(float(value))))) continue;
      throw Error(
          ErrorCode::BadInput,
          fmt::format("{}: S[{}][{}] is {}; {} holds -{} to {}; give finite values in this range{}",
                      name, i / std::size_t(file.shape[1]), i % std::size_t(file.shape[1]), value,
                      to_string(type), largest_of(type), largest_of(type),
                      type == DataType::Half ? " or use --data-type float" : ""));
    }
  });
}

}  // namespace

std::int64_t batch_of(const Arguments& a, const Weights& weights) {
  if (a.input.empty()) return a.batch_size;
  const io::Array file = io::read_npy(read_file(a.input), a.input);
  if (file.shape.size() == 2 && file.shape[0] == weights.cols && file.shape[1] > 0 &&
      file.type != io::ElementType::Text) {
    check_values(file, a.data_type, a.input);
    return file.shape[1];
  }
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: S has the shape ({}); this layer needs ({}, batch)", a.input,
                          fmt::join(file.shape, ", "), weights.cols));
}

double unscaled(Pass pass, double value, std::int64_t row, std::int64_t col, int scale_exponent) {
  const double given = std::ldexp(value, -scale_exponent);
  if (std::isfinite(given) || !std::isfinite(value)) return given;
  throw Error(ErrorCode::LimitExceeded,
              fmt::format("{}: the result [{}][{}] is {} times 2^{}, which exceeds the range of "
                          "double; scale the weights of the file",
                          to_string(pass), row, col, value, -scale_exponent));
}

}  // namespace tessera::tools
