#include "tessera/codelets/kernel.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <type_traits>

#include "tessera/base/error.hpp"
#include "tessera/codelets/internal/block_kernels.hpp"
#include "tessera/codelets/internal/element_kernels.hpp"
#include "tessera/codelets/internal/fast/fast_kernels.hpp"
#include "tessera/codelets/internal/fast/pair_sums.hpp"

namespace tessera::codelets {
namespace {

using internal::BlockFwd, internal::BlockGradATransposed, internal::BlockGradW;
using internal::ElementFwd, internal::ElementGradA, internal::ElementGradATransposed,
    internal::ElementGradW;
using W16 = std::uint16_t;
using W32 = std::uint32_t;

// Returns the fastest kernel. Half sums of blocks have only the reference kernel, because each of
// their additions is rounded twice; those of elements have the reference walk on vectors of z.
template <template <class...> class Twin, class Slow, class In, class Sum, class Word>
constexpr Kernel fastest() {
  constexpr bool kElement = Slow::kFormat == Format::Element;
  if constexpr (!std::is_same_v<Sum, float> && kElement)
    return Twin<In, Sum, Word, internal::HalfRows>::run;
  else if constexpr (!std::is_same_v<Sum, float>)
    return Slow::run;
  else if constexpr (Slow::kOperation == Operation::Fwd)
    return kElement ? internal::fast_element_fwd<In, Word> : internal::fast_block_fwd<In, Word>;
  else if constexpr (Slow::kOperation == Operation::GradATransposed)
    return kElement ? internal::fast_element_grad_a_transposed<In, Word>
                    : internal::fast_block_grad_a_transposed<In, Word>;
  else if constexpr (Slow::kOperation == Operation::GradA)
    return internal::fast_element_grad_a<In, Word>;
  else
    return kElement ? internal::fast_element_grad_w<In, Word>
                    : internal::fast_block_grad_w<In, Word>;
}

template <template <class...> class Twin, class In, class Sum, class Word>
constexpr KernelEntry entry(std::string_view name) {
  using Slow = Twin<In, Sum, Word>;
  return {
      {Slow::kOperation, Slow::kFormat, data_type_of<In>(), data_type_of<Sum>(), 8 * sizeof(Word)},
      name,
      &Slow::run,
      fastest<Twin, Slow, In, Sum, Word>()};
}

// To add a kernel, write its file and one line here.
constexpr auto kKernels = std::to_array<KernelEntry>({
    entry<ElementFwd, float, float, W16>("fwd_element_f32_f32_w16"),
    entry<ElementFwd, float, float, W32>("fwd_element_f32_f32_w32"),
    entry<ElementFwd, Half, float, W16>("fwd_element_f16_f32_w16"),
    entry<ElementFwd, Half, float, W32>("fwd_element_f16_f32_w32"),
    entry<ElementFwd, BFloat16, float, W16>("fwd_element_bf16_f32_w16"),
    entry<ElementFwd, BFloat16, float, W32>("fwd_element_bf16_f32_w32"),
    entry<ElementFwd, Half, Half, W16>("fwd_element_f16_f16_w16"),
    entry<ElementFwd, Half, Half, W32>("fwd_element_f16_f16_w32"),
    entry<ElementGradATransposed, float, float, W16>("grad_a_transposed_element_f32_f32_w16"),
    entry<ElementGradATransposed, float, float, W32>("grad_a_transposed_element_f32_f32_w32"),
    entry<ElementGradATransposed, Half, float, W16>("grad_a_transposed_element_f16_f32_w16"),
    entry<ElementGradATransposed, Half, float, W32>("grad_a_transposed_element_f16_f32_w32"),
    entry<ElementGradATransposed, BFloat16, float, W16>("grad_a_transposed_element_bf16_f32_w16"),
    entry<ElementGradATransposed, BFloat16, float, W32>("grad_a_transposed_element_bf16_f32_w32"),
    entry<ElementGradATransposed, Half, Half, W16>("grad_a_transposed_element_f16_f16_w16"),
    entry<ElementGradATransposed, Half, Half, W32>("grad_a_transposed_element_f16_f16_w32"),
    entry<ElementGradA, float, float, W16>("grad_a_element_f32_f32_w16"),
    entry<ElementGradA, float, float, W32>("grad_a_element_f32_f32_w32"),
    entry<ElementGradA, Half, float, W16>("grad_a_element_f16_f32_w16"),
    entry<ElementGradA, Half, float, W32>("grad_a_element_f16_f32_w32"),
    entry<ElementGradA, BFloat16, float, W16>("grad_a_element_bf16_f32_w16"),
    entry<ElementGradA, BFloat16, float, W32>("grad_a_element_bf16_f32_w32"),
    entry<ElementGradA, Half, Half, W16>("grad_a_element_f16_f16_w16"),
    entry<ElementGradA, Half, Half, W32>("grad_a_element_f16_f16_w32"),
    entry<ElementGradW, float, float, W16>("grad_w_element_f32_f32_w16"),
    entry<ElementGradW, float, float, W32>("grad_w_element_f32_f32_w32"),
    entry<ElementGradW, Half, float, W16>("grad_w_element_f16_f32_w16"),
    entry<ElementGradW, Half, float, W32>("grad_w_element_f16_f32_w32"),
    entry<ElementGradW, BFloat16, float, W16>("grad_w_element_bf16_f32_w16"),
    entry<ElementGradW, BFloat16, float, W32>("grad_w_element_bf16_f32_w32"),
    entry<ElementGradW, Half, Half, W16>("grad_w_element_f16_f16_w16"),
    entry<ElementGradW, Half, Half, W32>("grad_w_element_f16_f16_w32"),
    entry<BlockFwd, float, float, W16>("fwd_block_f32_f32_w16"),
    entry<BlockFwd, float, float, W32>("fwd_block_f32_f32_w32"),
    entry<BlockFwd, Half, float, W16>("fwd_block_f16_f32_w16"),
    entry<BlockFwd, Half, float, W32>("fwd_block_f16_f32_w32"),
    entry<BlockFwd, BFloat16, float, W16>("fwd_block_bf16_f32_w16"),
    entry<BlockFwd, BFloat16, float, W32>("fwd_block_bf16_f32_w32"),
    entry<BlockFwd, Half, Half, W16>("fwd_block_f16_f16_w16"),
    entry<BlockFwd, Half, Half, W32>("fwd_block_f16_f16_w32"),
    entry<BlockGradATransposed, float, float, W16>("grad_a_transposed_block_f32_f32_w16"),
    entry<BlockGradATransposed, float, float, W32>("grad_a_transposed_block_f32_f32_w32"),
    entry<BlockGradATransposed, Half, float, W16>("grad_a_transposed_block_f16_f32_w16"),
    entry<BlockGradATransposed, Half, float, W32>("grad_a_transposed_block_f16_f32_w32"),
    entry<BlockGradATransposed, BFloat16, float, W16>("grad_a_transposed_block_bf16_f32_w16"),
    entry<BlockGradATransposed, BFloat16, float, W32>("grad_a_transposed_block_bf16_f32_w32"),
    entry<BlockGradATransposed, Half, Half, W16>("grad_a_transposed_block_f16_f16_w16"),
    entry<BlockGradATransposed, Half, Half, W32>("grad_a_transposed_block_f16_f16_w32"),
    entry<BlockGradW, float, float, W16>("grad_w_block_f32_f32_w16"),
    entry<BlockGradW, float, float, W32>("grad_w_block_f32_f32_w32"),
    entry<BlockGradW, Half, float, W16>("grad_w_block_f16_f32_w16"),
    entry<BlockGradW, Half, float, W32>("grad_w_block_f16_f32_w32"),
    entry<BlockGradW, BFloat16, float, W16>("grad_w_block_bf16_f32_w16"),
    entry<BlockGradW, BFloat16, float, W32>("grad_w_block_bf16_f32_w32"),
    entry<BlockGradW, Half, Half, W16>("grad_w_block_f16_f16_w16"),
    entry<BlockGradW, Half, Half, W32>("grad_w_block_f16_f16_w32"),
});

std::string_view operation_name(Operation operation) {
  switch (operation) {
    case Operation::Fwd:
      return "fwd";
    case Operation::GradATransposed:
      return "grad_a_transposed";
    case Operation::GradA:
      return "grad_a";
    case Operation::GradW:
      return "grad_w";
  }
  return "?";
}

std::string_view type_name(DataType type) {
  switch (type) {
    case DataType::Float:
      return "f32";
    case DataType::Half:
      return "f16";
    case DataType::BFloat16:
      return "bf16";
  }
  return "?";
}

}  // namespace

bool multiplies_pairs_fast() { return internal::pair_sums_are_fast(); }

std::span<const KernelEntry> kernels() { return kKernels; }

std::string kernel_name(const KernelKey& key) {
  return fmt::format("{}_{}_{}_{}_w{}", operation_name(key.operation),
                     key.format == Format::Element ? "element" : "block", type_name(key.in),
                     type_name(key.sum), key.word_bits);
}

const KernelEntry& find_kernel(const KernelKey& key) {
  std::string names;
  for (const KernelEntry& kernel : kKernels) {
    if (kernel.key == key) return kernel;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kernel.name);
  }
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("there is no kernel {}; choose one of: {}", kernel_name(key), names));
}

}  // namespace tessera::codelets
