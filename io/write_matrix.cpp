#include "tessera/io/write_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <type_traits>

#include "tessera/base/error.hpp"
#include "tessera/base/half.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::io {
namespace {

// A dense file has 8 bytes per element.
constexpr std::int64_t kMostPlaces = std::int64_t{1} << 28;

template <class T>
Matrix<T> dense(const sparse::Csr<double>& matrix) {
  if (matrix.cols != 0 && matrix.rows > kMostPlaces / matrix.cols)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} x {} is too large for a dense file, which holds at most {} "
                            "elements; write .npz or .mtx",
                            matrix.rows, matrix.cols, kMostPlaces));
  const Matrix<double> all = sparse::to_dense(matrix);
  Matrix<T> typed(all.rows(), all.cols());
  std::ranges::transform(all.elements(), typed.elements().begin(), [](double value) {
    if constexpr (std::is_same_v<T, Half>)
      return Half(float(value));
    else
      return T(value);
  });
  return typed;
}

// Calls use(zero) with a zero of the type that a file gets for numbers of a type.
template <class Use>
std::string with_element_type(ElementType type, Use&& use) {
  switch (type) {
    case ElementType::F16:
      return use(Half());
    case ElementType::F32:
    case ElementType::BF16:  // no format that is written here has it
      return use(0.0F);
    default:
      return use(0.0);
  }
}

// SciPy has no sparse matrices of halves, so they become floats.
std::string npz_bytes(const sparse::Csr<double>& matrix, ElementType type, const WriteOptions& a) {
  const sparse::Csr<double> blocks =
      sparse::with_block(sparse::with_shape(matrix, round_up(matrix.rows, a.block.rows),
                                            round_up(matrix.cols, a.block.cols)),
                         a.block);
  return with_element_type(type, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, double>)
      return write_npz(blocks);
    else
      return write_npz(sparse::cast<float>(blocks));
  });
}

}  // namespace

std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return ending;
}

std::string matrix_bytes(const std::string& path, const ReadMatrix& file, ElementType type,
                         const WriteOptions& a) {
  const sparse::Csr<double>& matrix = file.matrix;
  const std::string ending = ending_of(path);
  if (ending == ".smtx") return write_smtx(matrix);
  if (ending == ".mtx")
    return write_mtx(matrix, file.has_values ? MtxField::Real : MtxField::Pattern);
  if (ending == ".npz") return npz_bytes(matrix, type, a);
  if (ending == ".npy")
    return with_element_type(type, [&]<class T>(T) {
      const Matrix<T> all = dense<T>(matrix);
      return write_npy(all.view());
    });
  if (ending == ".safetensors")
    return with_element_type(type, [&]<class T>(T) {
      const Matrix<T> all = dense<T>(matrix);
      return write_safetensors(all.view(), a.tensor);
    });
  throw Error(
      ErrorCode::InvalidArgument,
      fmt::format(
          "{}: the file name must end in .smtx (pattern only), .mtx, .npz, .npy or .safetensors",
          path));
}

}  // namespace tessera::io
