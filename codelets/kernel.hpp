#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/block_shape.hpp"
#include "tessera/base/data_type.hpp"

namespace tessera::codelets {

// What a tile does with the records of one bucket that carry its sub-group id. R is the sparse
// cell, x and y count inside the cell, z inside the tile's batch share:
//   Fwd             out[x][z]      += sum over (x, y) in R:  r * in[y][z]
//   GradATransposed out[y][z]      += sum over (x, y) in R:  r * in[x][z]   forward bucket
//   GradA           the same sums, from a separate GradA bucket (element format only)
//   GradW           gradient(x, y) += sum over z:  q_grad[x][z] * s[y][z]   for (x, y) in R
enum class Operation { Fwd, GradATransposed, GradA, GradW };
// Records of single values, or of blocks.
enum class Format { Element, Block };

// A dense operand of unnamed element type. Rows may lie apart; elements of a row are contiguous.
struct Operand {
  const void* data = nullptr;
  std::int64_t rows = 0, z = 0;
  std::int64_t row_stride = 0;  // elements
};
// The same, to be written.
struct Result {
  void* data = nullptr;
  std::int64_t rows = 0, z = 0;
  std::int64_t row_stride = 0;  // elements
};

// One visit of one tile to one bucket.
//   meta      words of the bucket, ended by its end marker; other cells' records are passed over
//   values    the bucket's values, input type, in record order              (all but GradW)
//   gradients the bucket's partial sums, sum type, same order, added to     (GradW)
//   in        dense operand, input type: S [y][z] or dQ [x][z]              (GradW: dQ [x][z])
//   in_s      S [y][z]                                                      (GradW only)
//   out       sum type, added to, never cleared                             (all but GradW)
//   replaces  rows of `out`, or gradients, that the words name hold zeros, whatever is in them; the
//             words name a row once. Saves clearing before and reading.     (Fwd, GradW)
struct KernelArgs {
  const void* meta = nullptr;
  const void* values = nullptr;
  void* gradients = nullptr;
  std::int64_t sub_group = 0;
  BlockShape block;
  Operand in, in_s;
  Result out;
  bool replaces = false;
};

// Never allocates, throws or prints. 2 * (values of matching records) * z flops. Safe on many tiles
// at once: writes only `out` or `gradients`. The order of additions is that of the bucket's words.
using Kernel = void (*)(const KernelArgs&) noexcept;

// What tells kernels apart.
struct KernelKey {
  Operation operation = Operation::Fwd;
  Format format = Format::Element;
  DataType in = DataType::Float;
  DataType sum = DataType::Float;
  std::int64_t word_bits = 16;

  friend bool operator==(const KernelKey&, const KernelKey&) = default;
};

// One kernel: the slow twin that defines its bits, and what runs.
struct KernelEntry {
  KernelKey key;
  std::string_view name;  // kernel_name(key)
  Kernel reference;       // the slow twin
  Kernel run;             // the fastest one this build has
};

// The one list of kernels. Tests, benchmarks and the runtime read it.
std::span<const KernelEntry> kernels();

// <operation>_<format>_<in>_<sum>_w<bits>, for example "fwd_element_f16_f32_w16"; of any key,
// whether there is such a kernel or not.
std::string kernel_name(const KernelKey& key);

// The kernel for a key; Error{InvalidArgument} that lists what there is when there is none.
const KernelEntry& find_kernel(const KernelKey& key);

}  // namespace tessera::codelets
