#include "tessera/runtime/internal/layer_on_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/runtime/internal/layer_check.hpp"

namespace tessera::runtime::internal {

const OwnProgram& LayerOnTiles::planned(Pass pass) const {
  if (has(pass)) return *programs[std::size_t(pass)];
  throw_invalid(
      fmt::format("{}: the plan of this layer does not include this pass", to_string(pass)));
}

verify::MemoryDamage LayerOnTiles::damage(Pass pass) const {
  return memory_damage({planned(pass).damage()});
}

void put_values(std::span<const float> values, sparse::CheckedCsr<float>& matrix) {
  if (values.size() != matrix->values.size())
    throw_invalid(fmt::format("{} values were given; the pattern has {}", values.size(),
                              matrix->values.size()));
  std::copy(values.begin(), values.end(), matrix.mutable_values().begin());
}

Bytes LayerOnTiles::high_water() const {
  Bytes most;
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW})
    if (has(pass)) most = std::max(most, planned(pass).high_water());
  return most;
}

std::int64_t LayerOnTiles::values() const {
  std::int64_t sum = 0;
  for (std::int64_t g = 0; !empty() && g < problem.size.g; ++g) sum += std::ssize(given(g)->values);
  return sum;
}

layer::LayerFacts LayerOnTiles::facts() const {
  const Dims& size = problem.size;
  return {.problem = problem,
          .passes = {true, has(Pass::GradA), has(Pass::GradW)},
          .has_weights = !empty(),
          .values = values(),
          .output_rows = size.g * size.x,
          .input_rows = size.g * size.y};
}

template <class T>
Padded<T> LayerOnTiles::operand(Pass pass, MatrixView<T> view, std::int64_t Dims::* side) {
  const Dims size = padded(pass);
  return {view, problem.size.g, size.*side, size.z, copies_[side == &Dims::x ? 0 : 1]};
}

template <class T>
void LayerOnTiles::check_product(Pass pass, MatrixView<const T> in, MatrixView<const T> out,
                                 verify::Checksums& all) {
  const std::int64_t groups = problem.size.g;
  const auto factor = pass == Pass::GradA ? verify::Factor::Transpose : verify::Factor::Matrix;
  for (std::int64_t g = 0; g < groups; ++g) {
    const sparse::Csr<float>& matrix = *given(g);
    const auto in_g = group_of(in, in.rows / groups, g),
               out_g = group_of(out, out.rows / groups, g);
    const verify::ProductSums& sums = sums_.of<T>(matrix, factor, g, out_g.rows, in_g.rows);
    verify::add_group(pass, g,
                      verify::check_product<T>(matrix, sums, in_g, out_g, rounding(pass),
                                               damage(pass), &executor),
                      all);
  }
}

template <class T>
void LayerOnTiles::check_gradient(MatrixView<const T> q_grad, MatrixView<const T> s,
                                  std::span<const float> gradients, verify::Checksums& all) const {
  const std::int64_t groups = problem.size.g;
  for (std::int64_t g = 0; g < groups; ++g) {
    const sparse::Csr<float>& pattern = *given(g);
    const auto own = gradients.first(pattern.values.size());
    gradients = gradients.subspan(own.size());
    verify::add_group(
        Pass::GradW, g,
        verify::check_gradient<T>(pattern, own, group_of(q_grad, problem.size.x, g),
                                  group_of(s, problem.size.y, g), rounding(Pass::GradW),
                                  verify::GradientRows::Sample, damage(Pass::GradW)),
        all);
  }
}

template <class T>
bool LayerOnTiles::compute_product(Pass pass, const layer::Operands& operands,
                                   const PassOptions& options, device::Ledger& ledger) {
  const bool forward = pass == Pass::Fwd;
  const MatrixView<const T> in = operands.in.as<T>();
  const MatrixView<T> out = operands.out.as<T>();
  auto from = operand(pass, in, forward ? &Dims::y : &Dims::x);
  auto to = operand(pass, out, forward ? &Dims::x : &Dims::y);
  from.read();
  if (!product(pass, from.bytes(), to.bytes(), options, ledger)) return false;
  to.write_back();
  if (options.self_check != nullptr) check_product<T>(pass, in, out, *options.self_check);
  return true;
}

template <class T>
bool LayerOnTiles::compute_gradient(const layer::Operands& operands, const PassOptions& options,
                                    device::Ledger& ledger) {
  const MatrixView<const T> q_grad = operands.in.as<T>(), s = operands.in_s.as<T>();
  auto q_in = operand(Pass::GradW, q_grad, &Dims::x), s_in = operand(Pass::GradW, s, &Dims::y);
  q_in.read();
  s_in.read();
  if (!gradient(q_in.bytes(), s_in.bytes(), operands.gradients, options, ledger)) return false;
  if (options.self_check != nullptr)
    check_gradient<T>(q_grad, s, operands.gradients, *options.self_check);
  return true;
}

bool LayerOnTiles::compute(Pass pass, const layer::Operands& operands, const PassOptions& options,
                           device::Ledger& ledger) {
  return with_type(problem.data_type, [&]<class T>(T) {
    return pass == Pass::GradW ? compute_gradient<T>(operands, options, ledger)
                               : compute_product<T>(pass, operands, options, ledger);
  });
}

}  // namespace tessera::runtime::internal
