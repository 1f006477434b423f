#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/sparse/formats.hpp"

namespace tessera::io {

// Dense arrays of numbers in files: NumPy's .npy and the tensors of .safetensors. The readers never
// execute or unpickle any content. Their errors are Error{BadInput} "<name>: byte <offset>: the
// fault, the legal values". A length that a header declares is compared with the bytes of the file
// before memory is allocated, so the numbers of an array take at most 8 times the bytes of the
// file. Any number of threads may read and write.

// The type of the elements in a file.
enum class ElementType { F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, Bool, Text };

// Returns the bytes of one element, or 0 for Text, whose length depends on the file.
std::int64_t bytes_of(ElementType type);

// Returns the name that safetensors gives a type, "F64" to "BOOL"; "TEXT" for Text, which it has
// not.
std::string_view to_string(ElementType type);

// A dense array of any rank. Numbers of all types are converted to double.
struct Array {
  ElementType type = ElementType::F64;
  std::vector<std::int64_t> shape;  // empty: a single element
  std::vector<double> values;       // row-major; whole numbers beyond 2^53 are refused
  std::vector<std::string> text;    // for Text, in place of values
};

// Reads a file of NumPy's format 1 to 3: numbers of either byte order, fixed-length text, C or
// Fortran order. Objects (pickles), complex numbers, records, dates, text of other letters than
// ASCII and arrays of more than 1024 texts are refused by name.
Array read_npy(std::string_view bytes, std::string_view name);

// Returns the file of a matrix in C order, little-endian. T is float, double, Half or BFloat16
// (written as float).
template <class T>
std::string write_npy(MatrixView<const T> matrix);

// Returns the file of a one-dimensional array. T is float, double, Half, std::int32_t or
// std::int64_t.
template <class T>
std::string write_npy(const std::vector<T>& line);

// One entry in the table of contents of a safetensors file.
struct TensorInfo {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  // bytes after the header
};

// Returns the byte of a safetensors file at which the data begin. Throws Error{BadInput} if the
// file is shorter than its header claims.
std::int64_t safetensors_data_begin(std::string_view bytes, std::string_view name);

// Returns the tensors of a file in the order of their data. The header may have 100 MB and 2^20
// values at most; more are Error{LimitExceeded}. The
// tensors must cover the rest of the file without gaps or overlaps and have the length that shape
// and type require; a name that is given twice is refused.
std::vector<TensorInfo> list_safetensors(std::string_view bytes, std::string_view name);

// Reads the tensor of that name or, if `tensor` is empty, the only tensor with two dimensions.
// Throws Error{BadInput}, which lists the names of the file, if there is not exactly one such
// tensor.
Array read_safetensors(std::string_view bytes, std::string_view name, std::string_view tensor);

// Returns a file with one tensor [rows][cols] of that name. T is float, double or Half.
template <class T>
std::string write_safetensors(MatrixView<const T> matrix, std::string_view tensor);

// One tensor of a file to write.
struct NamedTensor {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<std::int64_t> shape;
  std::string bytes;  // little-endian, row-major
};

// Returns the type of the elements of a list. T is float, double, Half, BFloat16, or a signed or
// unsigned whole number of fixed width.
template <class T>
constexpr ElementType element_type_of() {
  constexpr bool kSigned = std::is_signed_v<T>;
  if constexpr (std::is_same_v<T, Half>)
    return ElementType::F16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return ElementType::BF16;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 8 ? ElementType::F64 : ElementType::F32;
  else if constexpr (sizeof(T) == 8)
    return kSigned ? ElementType::I64 : ElementType::U64;
  else if constexpr (sizeof(T) == 4)
    return kSigned ? ElementType::I32 : ElementType::U32;
  else if constexpr (sizeof(T) == 2)
    return kSigned ? ElementType::I16 : ElementType::U16;
  else
    return kSigned ? ElementType::I8 : ElementType::U8;
}

// Returns a tensor of these numbers. T is float, double, Half, BFloat16, std::int32_t,
// std::int64_t, std::uint8_t, std::uint16_t or std::uint32_t. Throws Error{InvalidArgument} if the
// shape has another number of elements.
template <class T>
NamedTensor make_tensor(std::string name, const std::vector<T>& numbers,
                        std::vector<std::int64_t> shape);

// The texts of a file beside its tensors ("__metadata__"), each with its key.
using TensorNotes = std::vector<std::pair<std::string, std::string>>;

// Returns a file with these tensors and notes. Throws Error{InvalidArgument} for a name that is
// given twice and for a tensor whose bytes are not those of its shape and type. Equal arguments
// give equal bytes.
std::string write_safetensors(const std::vector<NamedTensor>& tensors, const TensorNotes& notes);

// Returns the non-zero elements of a two-dimensional array. Throws Error{BadInput} for another
// number of dimensions, for text, and for more than 2^31 - 1 rows or columns, and
// Error{LimitExceeded} for more than 2^20 rows or columns of an array without elements.
sparse::Csr<double> to_csr(const Array& array, std::string_view name);

}  // namespace tessera::io
