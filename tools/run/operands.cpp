#include "tessera/tools/run/operands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "tessera/base/file.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/sparse/fit_range.hpp"

namespace tessera::tools {
namespace {

// An operand that is read from a file.
struct OperandFile {
  const std::string& path;
  const char* name;
  std::int64_t rows;
};

// Throws Error{BadInput} for a value that is not finite, or not after rounding to the type.
void check_values(const io::Array& file, DataType type, const OperandFile& of) {
  with_type(type, [&]<class T>(T) {
    for (std::size_t i = 0; i < file.values.size(); ++i) {
      const double value = file.values[i];
      if (std::isfinite(float(T(float(value))))) continue;
      throw Error(
          ErrorCode::BadInput,
          fmt::format(
              "{}: {}[{}][{}] is {}; {} holds -{} to {}; give finite values in this range{}",
              of.path, of.name, i / std::size_t(file.shape[1]), i % std::size_t(file.shape[1]),
              value, to_string(type), sparse::largest_of(type), sparse::largest_of(type),
              type == DataType::Half ? " or use --data-type float" : ""));
    }
  });
}

// Returns the number of columns of an operand's file.
std::int64_t columns_of(const OperandFile& of, DataType type) {
  const io::Array file = io::read_npy(read_file(of.path), of.path);
  if (file.shape.size() == 2 && file.shape[0] == of.rows && file.shape[1] > 0 &&
      file.type != io::ElementType::Text) {
    check_values(file, type, of);
    return file.shape[1];
  }
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: {} has the shape ({}); this layer needs ({}, batch)", of.path,
                          of.name, fmt::join(file.shape, ", "), of.rows));
}

}  // namespace

void keep_gradients(std::span<const sparse::Csr<float>> gradients,
                    std::vector<std::pair<std::string, std::string>>& files) {
  if (!io::can_read_npz()) return;
  for (std::size_t g = 0; g < gradients.size(); ++g)
    files.emplace_back(gradients.size() == 1 ? std::string("weight_gradient.npz")
                                             : fmt::format("weight_gradient_{}.npz", g),
                       io::write_npz(gradients[g]));
}

std::int64_t batch_of(const Arguments& a, const Weights& weights) {
  std::int64_t batch = a.batch_size;
  if (!a.input.empty())
    batch = columns_of({a.input, "S", weights.groups() * weights.cols}, a.data_type);
  if (a.output_gradient.empty()) return batch;
  const std::int64_t columns =
      columns_of({a.output_gradient, "dQ", weights.groups() * weights.rows}, a.data_type);
  if (!a.input.empty() && columns != batch)
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: dQ has {} columns, but S in {} has {}; both are the batch",
                            a.output_gradient, columns, a.input, batch));
  return columns;
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
