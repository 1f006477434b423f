#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::io {

// Dense arrays of numbers in files: NumPy's .npy and the tensors of .safetensors. Nothing in them
// is ever executed or unpickled. Errors of the readers are Error{BadInput} "<name>: byte <offset>:
// what is wrong, what is legal"; a length that a header declares is held against the bytes that are
// there before anything is allocated, so memory stays below 8 times the file. Any number of threads
// may read and write.

// How the elements lie in a file.
enum class ElementType { F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool, Text };

// Bytes of one element; 0 for Text, whose length the file gives.
std::int64_t bytes_of(ElementType type);

// A dense array of any rank, as files hold it.
struct Array {
  ElementType type = ElementType::F64;
  std::vector<std::int64_t> shape;  // empty: one element
  std::vector<double> values;       // row-major; whole numbers beyond 2^53 are refused
  std::vector<std::string> text;    // of Text, instead of values
};

// NumPy format 1 to 3: numbers of either byte order, fixed-length text, C or Fortran order. Objects
// (pickles), complex numbers, records and dates are refused by name.
Array read_npy(std::string_view bytes, std::string_view name);

// A matrix in C order, little-endian. T is float, double, Half or BFloat16 (written as float).
template <class T>
std::string write_npy(MatrixView<const T> matrix);
// A line of numbers. T is float, double, Half, std::int32_t or std::int64_t.
template <class T>
std::string write_npy(const std::vector<T>& line);

// A safetensors file's table of contents.
struct TensorInfo {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  // bytes after the header
};

// In the order they lie in the file. The header is at most 100 MB; tensors must cover the rest of
// the file without gaps or overlaps and be as long as shape and type say; a name given twice is
// refused.
std::vector<TensorInfo> list_safetensors(std::string_view bytes, std::string_view name);

// The tensor of that name; an empty name: the only tensor with two dimensions. Error{BadInput}
// lists the names there are.
Array read_safetensors(std::string_view bytes, std::string_view name, std::string_view tensor);

// One tensor [rows][cols] of that name. T is float, double or Half.
template <class T>
std::string write_safetensors(MatrixView<const T> matrix, std::string_view tensor);

// The stored elements of a two-dimensional array: those that are not zero. Error{BadInput} for
// another number of dimensions, or more than 2^31 - 1 rows or columns.
sparse::Csr<double> to_csr(const Array& array, std::string_view name);

}  // namespace tessera::io
