#include "tessera/python/src/tensor.hpp"

#include <dlpack/dlpack.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/base/error.hpp"

namespace py = pybind11;

namespace tessera::python {
namespace {

using py::detail::npy_api;

constexpr int kNumpyHalf = 23;
// The bytes of a small array. NumPy keeps blocks of this size for later arrays and makes one in a
// fourth of the time that it takes to hand it a block of memory.
constexpr std::size_t kMostOfNumpy = 1024;
constexpr const char* kCapsule = "dltensor";
constexpr const char* kUsedCapsule = "used_dltensor";

int numpy_type(DataType type) {
  switch (type) {
    case DataType::Half:
      return kNumpyHalf;
    case DataType::BFloat16:
      return npy_api::NPY_UINT16_;
    case DataType::Float:
      break;
  }
  return npy_api::NPY_FLOAT_;
}

// The type as users of NumPy and torch write it.
const char* user_type(DataType type) {
  switch (type) {
    case DataType::Half:
      return "float16";
    case DataType::BFloat16:
      return "bfloat16";
    case DataType::Float:
      break;
  }
  return "float32";
}

[[noreturn]] void refuse_type(const char* name, const std::string& given, DataType type,
                              bool is_torch) {
  std::string remedy = fmt::format("{}.astype(np.{})", name, user_type(type));
  if (type == DataType::BFloat16)
    remedy = "a torch tensor of bfloat16, or its bits in an array of uint16";
  else if (is_torch)
    remedy = fmt::format("{}.to(torch.{})", name, user_type(type));
  throw py::type_error(
      fmt::format("{} is {}; this layer needs {}: pass {}", name, given, user_type(type), remedy));
}

std::string text_of(py::handle object) { return py::str(object).cast<std::string>(); }

// Refuses an object without memory.
[[noreturn]] void refuse_kind(const char* name, py::handle object, DataType type) {
  std::string remedy = "a NumPy array, a torch tensor or another object with __dlpack__";
  if (py::isinstance<py::list>(object) && type != DataType::BFloat16)
    remedy = fmt::format("np.array({}, np.{})", name, user_type(type));
  else if (py::hasattr(object, "toarray"))
    remedy = fmt::format("{}.toarray(): this operand is dense", name);
  throw py::type_error(fmt::format("{} is of type {}; pass {}", name,
                                   text_of(py::type::handle_of(object).attr("__name__")), remedy));
}

// Refuses an array with a mask, which is no part of its memory.
void refuse_mask(const char* name, py::handle array) {
  if (Py_TYPE(array.ptr()) == npy_api::get().PyArray_Type_) return;
  if (py::isinstance(array, py::module_::import("numpy.ma").attr("MaskedArray")))
    throw py::type_error(
        fmt::format("{} is a masked array; a mask would be lost: pass {}.filled(0)", name, name));
}

// Returns what object.__dlpack__() does. torch changes a tensor's sign without touching its memory,
// and does not say so in DLPack.
py::object dlpack_of(const char* name, py::handle object) {
  if (py::hasattr(object, "is_neg") && object.attr("is_neg")().cast<bool>())
    throw py::type_error(fmt::format(
        "{} is negated lazily, which its memory does not show: pass {}.resolve_neg()", name, name));
  try {
    return object.attr("__dlpack__")();
  } catch (py::error_already_set& error) {
    const bool is_dense =
        !py::hasattr(object, "layout") || text_of(object.attr("layout")) == "torch.strided";
    const std::string remedy = fmt::format(
        "{} cannot be read ({}); pass a dense tensor on the CPU without a gradient: {}.{}()", name,
        text_of(error.value()), name, is_dense ? "detach" : "to_dense");
    py::raise_from(error, PyExc_TypeError, remedy.c_str());
    throw py::error_already_set();
  }
}

bool is_type(const DLDataType& given, DataType type) {
  const int code = type == DataType::BFloat16 ? kDLBfloat : kDLFloat;
  return given.code == code && given.bits == 8 * bytes_of(type) && given.lanes == 1;
}

}  // namespace

bool is_numpy(py::handle object) { return py::isinstance<py::array>(object); }

Tensor::Tensor(py::handle object, const char* name, DataType type, Access access) : name_(name) {
  if (is_numpy(object))
    read_numpy(object, type, access);
  else if (py::hasattr(object, "__dlpack__"))
    read_dlpack(object, type);
  else
    refuse_kind(name, object, type);
}

Tensor::~Tensor() {
  if (managed_ != nullptr && managed_->deleter != nullptr) managed_->deleter(managed_);
}

void Tensor::set_shape(int dimensions, const std::int64_t* shape) {
  if (dimensions > kMostDimensions)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} has {} dimensions; an operand has 2, or 1 for a vector: reshape {} "
                            "to [-1, features] or [features, -1]",
                            name_, dimensions, name_));
  dimensions_ = dimensions;
  for (int i = 0; i < dimensions; ++i) shape_[std::size_t(i)] = shape[i];
}

void Tensor::read_numpy(py::handle object, DataType type, Access access) {
  refuse_mask(name_, object);
  const auto* const array = py::detail::array_proxy(object.ptr());
  const auto* const descr = py::detail::array_descriptor_proxy(array->descr);
  if (descr->type_num != numpy_type(type) || descr->byteorder == '>')
    refuse_type(name_, text_of(py::handle(array->descr)), type, false);
  if (access == Access::Write && (array->flags & npy_api::NPY_ARRAY_WRITEABLE_) == 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} is read-only; pass an array that may be written", name_));
  set_shape(array->nd, array->dimensions);
  data_ = array->data;
  const std::int64_t size = bytes_of(type);
  bool whole = (array->flags & npy_api::NPY_ARRAY_ALIGNED_) != 0;
  for (int i = 0; i < dimensions_; ++i) {
    whole = whole && (array->strides[i] % size == 0 || shape_[std::size_t(i)] < 2);
    strides_[std::size_t(i)] = array->strides[i] / size;
  }
  if (!whole)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format(
            "{} has elements that are not aligned or not whole elements apart; pass {}.copy()",
            name_, name_));
}

void Tensor::read_dlpack(py::handle object, DataType type) {
  const py::object capsule = dlpack_of(name_, object);
  auto* const managed =
      static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
  if (managed == nullptr) throw py::error_already_set();
  const DLTensor& tensor = managed->dl_tensor;
  if (tensor.device.device_type != kDLCPU)
    throw py::type_error(fmt::format(
        "{} is on another device; this layer runs on the CPU: pass {}.cpu()", name_, name_));
  if (!is_type(tensor.dtype, type))
    refuse_type(name_, text_of(py::getattr(object, "dtype", py::str("of another type"))), type,
                true);
  set_shape(tensor.ndim, tensor.shape);
  std::int64_t compact = 1;
  for (int i = dimensions_ - 1; i >= 0; --i) {
    strides_[std::size_t(i)] = tensor.strides == nullptr ? compact : tensor.strides[i];
    compact *= shape_[std::size_t(i)];
  }
  if (tensor.data == nullptr && compact != 0)
    throw py::type_error(fmt::format("{} stores no elements; pass {}.clone()", name_, name_));
  data_ = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(data_) % std::uintptr_t(bytes_of(type)) != 0)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("{} has elements that are not aligned; pass a copy of it: {}.clone() in torch",
                    name_, name_));
  // From here on the memory is ours to release; before, the capsule does it.
  PyCapsule_SetName(capsule.ptr(), kUsedCapsule);
  managed_ = managed;
}

std::string Tensor::shape_text() const {
  return fmt::format("[{}]", fmt::join(shape_.begin(), shape_.begin() + dimensions_, ", "));
}

void Tensor::require_two_dimensions() const {
  if (dimensions_ != 2)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} has the shape {}; an operand has 2 dimensions, or 1 for a vector: "
                            "reshape {} to [-1, features] or [features, -1]",
                            name_, shape_text(), name_));
}

float* Tensor::values(std::int64_t count) const {
  std::int64_t elements = 1;
  bool contiguous = true;
  for (int i = dimensions_ - 1; i >= 0; --i) {
    const std::size_t at(i);
    contiguous = contiguous && (strides_[at] == elements || shape_[at] < 2);
    elements *= shape_[at];
  }
  if (elements != count)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} has the shape {}, {} numbers; this layer needs {}", name_,
                            shape_text(), elements, count));
  if (!contiguous && elements > 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} is not contiguous; pass np.ascontiguousarray({})", name_, name_));
  return static_cast<float*>(data_);
}

py::array new_array(DataType type, const std::vector<std::int64_t>& shape) {
  std::size_t bytes = std::size_t(bytes_of(type));
  for (const std::int64_t side : shape)
    if (__builtin_mul_overflow(bytes, std::size_t(side), &bytes))
      throw Error(ErrorCode::LimitExceeded,
                  fmt::format("a result of [{}] does not fit into memory", fmt::join(shape, ", ")));
  if (bytes <= kMostOfNumpy) return py::array(py::dtype(numpy_type(type)), shape);
  // The block remembers its size, which freeing it takes.
  struct Block {
    void* memory;
    std::size_t bytes;
  };
  auto* const block = new Block{allocate_lines(bytes), bytes};
  const py::capsule owner(block, [](void* given) {
    auto* const ours = static_cast<Block*>(given);
    free_lines(ours->memory, ours->bytes);
    delete ours;
  });
  return py::array(py::dtype(numpy_type(type)), shape, block->memory, owner);
}

}  // namespace tessera::python
