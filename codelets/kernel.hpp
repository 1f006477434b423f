#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"

namespace tessera::codelets {

// The operation of a tile on the records of one bucket that carry its sub-group id. R is the sparse
// cell; x and y count inside the cell, z inside the tile's batch share.
//   Fwd             out[x][z]      += sum over (x, y) in R:  r * in[y][z]
//   GradATransposed out[y][z]      += sum over (x, y) in R:  r * in[x][z]   forward bucket
//   GradA           the same sums, from a separate GradA bucket (element format only)
//   GradW           gradient(x, y) += sum over z:  q_grad[x][z] * s[y][z]   for (x, y) in R
enum class Operation { Fwd, GradATransposed, GradA, GradW };

// The format of the records: single values, or blocks.
enum class Format { Element, Block };

// A dense operand whose element type is given elsewhere. There may be gaps between rows; the
// elements of a row are contiguous.
struct Operand {
  const void* data = nullptr;
  std::int64_t rows = 0, z = 0;
  std::int64_t row_stride = 0;  // elements
};

// A dense result, with the same layout.
struct Result {
  void* data = nullptr;
  std::int64_t rows = 0, z = 0;
  std::int64_t row_stride = 0;  // elements
};

// The arguments of a kernel: one visit of one tile to one bucket.
//   meta      words of the bucket, up to its end marker; records of other cells are skipped
//   values    the bucket's values, input type, in record order              (all but GradW)
//   gradients the bucket's partial sums, sum type, same order, added to     (GradW)
//   in        dense operand, input type: S [y][z] or dQ [x][z]              (GradW: dQ [x][z])
//   in_s      S [y][z]                                                      (GradW)
//             or `in` of the call that probably follows, which may be fetched into a cache
//             meanwhile; may be empty                                       (Fwd)
//   out       sum type, added to, never cleared                             (all but GradW)
//   replaces  true: rows of `out`, or gradients, that the words name count as zeros, whatever they
//             hold; the words must name a row only once. Saves clearing them first and reading
//             them.                                                         (Fwd, GradW)
//   streams   true: with `replaces`, results may be written past the caches. Rows of `out` must
//             begin at multiples of 64 bytes                                (Fwd of elements)
//   pairs     true: values and operand are numbers of BFloat16 that are kept as floats, and
//             results have the bits of the kernel of BFloat16          (Fwd of blocks of floats)
struct KernelArgs {
  const void* meta = nullptr;
  const void* values = nullptr;
  void* gradients = nullptr;
  std::int64_t sub_group = 0;
  BlockShape block;
  Operand in, in_s;
  Result out;
  bool replaces = false, streams = false, pairs = false;
};

// A kernel never allocates, throws or prints. It needs 2 * (values of matching records) * z flops.
// It may run on many tiles at the same time, because it writes only `out` or `gradients`. Additions
// to an output are in the order of the bucket's words; the README names the two sums that use lanes
// (GradW over z, and element Fwd with one column).
using Kernel = void (*)(const KernelArgs&) noexcept;

// The properties that distinguish kernels.
struct KernelKey {
  Operation operation = Operation::Fwd;
  Format format = Format::Element;
  DataType in = DataType::Float;
  DataType sum = DataType::Float;
  std::int64_t word_bits = 16;

  friend bool operator==(const KernelKey&, const KernelKey&) = default;
};

// One kernel: the reference kernel, which defines its bits, and the kernel that runs.
struct KernelEntry {
  KernelKey key;
  std::string_view name;  // kernel_name(key)
  Kernel reference;       // defines the bits
  Kernel run;             // the fastest kernel of this build
};

// True if this CPU multiplies blocks of BFloat16 faster as they are than as floats: it has a dot
// product of pairs that takes the time of a fused product.
bool multiplies_pairs_fast();

// Returns the list of all kernels, which tests, benchmarks and the runtime use.
std::span<const KernelEntry> kernels();

// Returns <operation>_<format>_<in>_<sum>_w<bits>, for example "fwd_element_f16_f32_w16", for any
// key, even if there is no such kernel.
std::string kernel_name(const KernelKey& key);

// Returns the kernel for a key. Throws Error{InvalidArgument}, which lists all kernels, if there is
// none.
const KernelEntry& find_kernel(const KernelKey& key);

}  // namespace tessera::codelets
