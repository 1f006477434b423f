#include "tessera/runtime/internal/layer_check.hpp"

#include <fmt/format.h>

#include "tessera/base/pass.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::runtime::internal {
namespace {

template <class T>
MatrixView<T> group_of(MatrixView<T> all, std::int64_t groups, std::int64_t g) {
  const std::int64_t rows = all.rows / groups;
  return all.sub({g * rows, (g + 1) * rows}, {0, all.cols});
}

}  // namespace

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
void check_layer_product(Pass pass, std::span<const sparse::CheckedCsr<float>* const> weights,
                         MatrixView<const T> in, MatrixView<const T> out, const CheckFacts& facts,
                         verify::Checksums& all) {
  const std::int64_t groups = std::ssize(weights);
  for (std::int64_t g = 0; g < groups; ++g) {
    const sparse::CheckedCsr<float>& given = *weights[std::size_t(g)];
    const auto in_g = group_of(in, groups, g), out_g = group_of(out, groups, g);
    const bool turned = pass == Pass::GradA;
    verify::add_group(pass, g,
                      verify::check_product<T>(turned ? *sparse::transpose(given) : *given, in_g,
                                               out_g, facts.rounding, facts.damage),
                      all);
  }
}

template <class T>
void check_layer_gradient(std::span<const sparse::Csr<float>> gradients, MatrixView<const T> q_grad,
                          MatrixView<const T> s, const CheckFacts& facts, verify::Checksums& all) {
  const std::int64_t groups = std::ssize(gradients);
  for (std::int64_t g = 0; g < groups; ++g)
    verify::add_group(
        Pass::GradW, g,
        verify::check_gradient<T>(gradients[std::size_t(g)], group_of(q_grad, groups, g),
                                  group_of(s, groups, g), facts.rounding,
                                  verify::GradientRows::Sample, facts.damage),
        all);
}

#define TESSERA_LAYER_CHECK(T)                                                                   \
  template void check_layer_product(Pass, std::span<const sparse::CheckedCsr<float>* const>,     \
                                    MatrixView<const T>, MatrixView<const T>, const CheckFacts&, \
                                    verify::Checksums&);                                         \
  template void check_layer_gradient(std::span<const sparse::Csr<float>>, MatrixView<const T>,   \
                                     MatrixView<const T>, const CheckFacts&, verify::Checksums&);
TESSERA_LAYER_CHECK(float)
TESSERA_LAYER_CHECK(Half)
TESSERA_LAYER_CHECK(BFloat16)
#undef TESSERA_LAYER_CHECK

}  // namespace tessera::runtime::internal
