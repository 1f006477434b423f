#pragma once

#include <pybind11/numpy.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/data_type.hpp"
#include "tessera/base/matrix.hpp"

struct DLManagedTensor;

namespace tessera::python {

// Whether a call reads or writes an argument.
enum class Access { Read, Write };

// The memory of an argument: a NumPy array, or anything with __dlpack__ on the CPU, for example a
// torch tensor. Nothing is copied. The argument must outlive the object, which is made, used and
// destroyed by one call; making and destroying need the interpreter lock.
class Tensor {
 public:
  // `name` is that of the argument in messages. Throws TypeError for an object without memory, for
  // memory that is not on the CPU, and for elements of another type than `type`, with the call that
  // would convert it; ValueError if it is read-only but written, or if elements are not aligned.
  // TypeError also where the memory alone is not the argument: a masked array of NumPy, and a
  // tensor of torch that is negated lazily or stores no zeros. bfloat16 is torch's, or NumPy's
  // uint16.
  Tensor(pybind11::handle object, const char* name, DataType type, Access access);
  ~Tensor();
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  // Returns the argument as a matrix. Throws InvalidArgument if it does not have two dimensions.
  template <class T>
  MatrixView<T> matrix() const {
    require_two_dimensions();
    return {static_cast<T*>(data_), shape_[0], shape_[1], strides_[0], strides_[1]};
  }

  // Returns true for an argument of one dimension.
  bool is_vector() const { return dimensions_ == 1; }

  // Returns an argument of one dimension as a matrix of one column.
  template <class T>
  MatrixView<T> column() const {
    return {static_cast<T*>(data_), shape_[0], 1, strides_[0], 1};
  }

  // Returns the first of all elements, which are contiguous. Throws InvalidArgument if they are not
  // or if there are not `count`.
  float* values(std::int64_t count) const;

 private:
  static constexpr int kMostDimensions = 3;

  void read_numpy(pybind11::handle object, DataType type, Access access);
  void read_dlpack(pybind11::handle object, DataType type);
  void set_shape(int dimensions, const std::int64_t* shape);
  void require_two_dimensions() const;
  std::string shape_text() const;

  const char* name_;
  void* data_ = nullptr;
  int dimensions_ = 0;
  std::array<std::int64_t, kMostDimensions> shape_ = {};
  std::array<std::int64_t, kMostDimensions> strides_ = {};  // in elements
  DLManagedTensor* managed_ = nullptr;
};

// Returns true for an argument that is a NumPy array.
bool is_numpy(pybind11::handle object);

// Returns a new NumPy array whose elements are not set. It begins on a cache line, which NumPy's
// own arrays need not do, so vector loads do not cross lines. BFloat16 is stored as uint16.
pybind11::array new_array(DataType type, const std::vector<std::int64_t>& shape);

}  // namespace tessera::python
