#include "tessera/runtime/internal/layer_check.hpp"

#include <fmt/format.h>

#include "tessera/base/pass.hpp"

namespace tessera::runtime::internal {
namespace {

template <class T>
MatrixView<T> group_of(MatrixView<T> all, std::int64_t groups, std::int64_t g) {
  const std::int64_t rows = all.rows / groups;
  return all.sub({g * rows, (g + 1) * rows}, {0, all.cols});
}

}  // namespace

Bytes resident_bytes(const planner::Plan& plan, DataType type, const device::Machine& machine) {
  const Words words = plan.fwd_meta_words + plan.grad_a_meta_words;
  Bytes bytes(words.value * machine.word_bits / 8 + plan.nonzeros_per_bucket * bytes_of(type));
  for (const planner::Plan& layout : plan.backward) bytes += resident_bytes(layout, type, machine);
  return bytes;
}

verify::MemoryDamage memory_damage(std::initializer_list<device::Damage> programs) {
  verify::MemoryDamage all;
  for (const device::Damage& damage : programs) {
    if (damage.slots == 0) continue;
    if (all.slots == 0) all.first = fmt::format("tile {}, \"{}\"", damage.tile.value, damage.slot);
    all.slots += damage.slots;
  }
  return all;
}

template <class T>
void check_layer_product(Pass pass, const CheckedWeights& weights, MatrixView<const T> in,
                         MatrixView<const T> out, const CheckFacts& facts, verify::Checksums& all) {
  const std::int64_t groups = std::ssize(weights.groups);
  const auto factor = pass == Pass::GradA ? verify::Factor::Transpose : verify::Factor::Matrix;
  for (std::int64_t g = 0; g < groups; ++g) {
    const sparse::Csr<float>& given = **weights.groups[std::size_t(g)];
    const auto in_g = group_of(in, groups, g), out_g = group_of(out, groups, g);
    const verify::ProductSums& sums = weights.sums.of<T>(given, factor, g, out_g.rows, in_g.rows);
    verify::add_group(pass, g,
                      verify::check_product<T>(given, sums, in_g, out_g, facts.rounding,
                                               facts.damage, &weights.executor),
                      all);
  }
}

template <class T>
void check_layer_gradient(const CheckedWeights& weights, std::span<const float> gradients,
                          MatrixView<const T> q_grad, MatrixView<const T> s,
                          const CheckFacts& facts, verify::Checksums& all) {
  const std::int64_t groups = std::ssize(weights.groups);
  for (std::int64_t g = 0; g < groups; ++g) {
    const sparse::Csr<float>& pattern = **weights.groups[std::size_t(g)];
    const auto own = gradients.first(pattern.values.size());
    gradients = gradients.subspan(own.size());
    verify::add_group(
        Pass::GradW, g,
        verify::check_gradient<T>(pattern, own, group_of(q_grad, groups, g), group_of(s, groups, g),
                                  facts.rounding, verify::GradientRows::Sample, facts.damage),
        all);
  }
}

#define TESSERA_LAYER_CHECK(T)                                                                    \
  template void check_layer_product(Pass, const CheckedWeights&, MatrixView<const T>,             \
                                    MatrixView<const T>, const CheckFacts&, verify::Checksums&);  \
  template void check_layer_gradient(const CheckedWeights&, std::span<const float>,               \
                                     MatrixView<const T>, MatrixView<const T>, const CheckFacts&, \
                                     verify::Checksums&);
TESSERA_LAYER_CHECK(float)
TESSERA_LAYER_CHECK(Half)
TESSERA_LAYER_CHECK(BFloat16)
#undef TESSERA_LAYER_CHECK

}  // namespace tessera::runtime::internal
