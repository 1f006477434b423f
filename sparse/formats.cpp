#include "tessera/sparse/formats.hpp"

#include <fmt/format.h>

#include <ostream>
#include <string_view>

#include "tessera/base/half.hpp"

namespace tessera::sparse {
namespace {

template <class Matrix>
std::ostream& print(std::ostream& out, std::string_view format, const Matrix& matrix) {
  return out << fmt::format("{} {} x {}, blocks of {} x {}, {} blocks", format, matrix.rows,
                            matrix.cols, matrix.block.rows, matrix.block.cols, matrix.blocks());
}

}  // namespace

template <class T>
std::ostream& operator<<(std::ostream& out, const Csr<T>& matrix) {
  return print(out, "CSR", matrix);
}

template <class T>
std::ostream& operator<<(std::ostream& out, const Csc<T>& matrix) {
  return print(out, "CSC", matrix);
}

template <class T>
std::ostream& operator<<(std::ostream& out, const Coo<T>& matrix) {
  return print(out, "COO", matrix);
}

template std::ostream& operator<<(std::ostream&, const Csr<float>&);
template std::ostream& operator<<(std::ostream&, const Csr<double>&);
template std::ostream& operator<<(std::ostream&, const Csr<Half>&);
template std::ostream& operator<<(std::ostream&, const Csr<BFloat16>&);
template std::ostream& operator<<(std::ostream&, const Csr<std::int32_t>&);
template std::ostream& operator<<(std::ostream&, const Csr<std::int64_t>&);
template std::ostream& operator<<(std::ostream&, const Csc<float>&);
template std::ostream& operator<<(std::ostream&, const Csc<double>&);
template std::ostream& operator<<(std::ostream&, const Coo<float>&);
template std::ostream& operator<<(std::ostream&, const Coo<double>&);

}  // namespace tessera::sparse
