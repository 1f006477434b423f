#include "tessera/runtime/internal/transpose_pass.hpp"

#include <fmt/format.h>

#include <cstring>

#include "tessera/base/data_type.hpp"
#include "tessera/base/error.hpp"
#include "tessera/codelets/cost/dense_cycles.hpp"
#include "tessera/codelets/transpose.hpp"
#include "tessera/runtime/internal/padded.hpp"

namespace tessera::runtime::internal {

using device::ByteRows;
using device::SlotKind;

TransposePass::TransposePass(const planner::TransposePlan& made, Bytes resident,
                             TileProgram& of_pass)
    : plan(made), program(of_pass), engine(of_pass.engine()) {
  buckets = program.add_buffer("buckets of the layer", /*resident=*/true);
  home = {plan.groups * plan.rows,
          plan.cols,
          program.add_buffer("operand share", /*resident=*/true),
          {}};
  arrived = program.add_buffer("part of the operand");
  turned = {plan.groups * plan.cols, plan.rows, program.add_buffer("transposed part"), {}};
  add_parts(resident);
}

void TransposePass::start(ByteRows of_operand, ByteRows of_result) {
  from = of_operand;
  to = of_result;
}

void TransposePass::add_parts(Bytes resident) {
  for (std::int64_t g = 0; g < plan.groups; ++g)
    for (std::int64_t i = 0; i < plan.row_parts; ++i)
      for (std::int64_t j = 0; j < plan.col_parts; ++j) {
        const Range rows = plan.rows_of(i), cols = plan.cols_of(j);
        if (rows.size() == 0 || cols.size() == 0) continue;
        const TileId tile = tiles.emplace_back(std::ssize(tiles));
        program.add_slot(buckets, tile, 1, resident.value);
        const Range all{0, rows.size() * cols.size()};
        home.shares.push_back(
            {{g * plan.rows + rows.begin, cols.begin, cols.size(), all},
             tile,
             program.add_slot(home.buffer, tile, rows.size(), cols.size() * element())});
        arrived_parts.push_back(
            program.add_slot(arrived, tile, rows.size(), cols.size() * element()));
        turned.shares.push_back({{g * plan.cols + cols.begin, rows.begin, rows.size(), all},
                                 tile,
                                 program.add_slot(turned.buffer, tile, cols.size(),
                                                  rows.size() * element(), SlotKind::Owned)});
      }
}

void TransposePass::declare_alone(Executor&) {
  program.step(NodeKind::Load, {}, {{}, {buckets, home.buffer}},
               [this] { load_rows(engine, home, from, element()); });
  program.charge(Phase::TransposeOperand, {{home.buffer}, {}}, tiles, plan.arrange);
  std::vector<device::Gather> gathers;
  for (std::size_t t = 0; t < tiles.size(); ++t)
    gathers.push_back(
        {{{home.shares[t].slot, {0, home.shares[t].rows()}}}, {arrived_parts[t]}, plan.senders});
  program.exchange(Phase::TransposeOperand, {{home.buffer}, {arrived}}, std::move(gathers));
  program.compute(Phase::TransposeOperand, {{arrived}, {turned.buffer}}, tiles,
                  [this](const device::Tile& tile) { return transpose(tile); });
  program.step(NodeKind::Collect, {}, {{turned.buffer}, {}},
               [this] { collect_rows(engine, turned, to, element()); });
}

Cycles TransposePass::transpose(const device::Tile& tile) const {
  const auto t = std::size_t(tile.id().value);
  const HomeShare& part = home.shares[t];
  const ByteRows in = tile.view(arrived_parts[t]), out = tile.view(turned.shares[t].slot);
  with_type(plan.data_type, [&]<class T>(T) {
    constexpr auto kSize = std::int64_t{sizeof(T)};
    codelets::transpose(reinterpret_cast<const T*>(in.data), in.stride / kSize, in.rows, part.width,
                        reinterpret_cast<T*>(out.data), out.stride / kSize);
  });
  return codelets::dense_reorder_cycles(
      {.data_type = plan.data_type, .workers = engine.machine().workers}, part.rows(), part.width,
      /*transposed=*/true);
}

template <class T>
bool transpose_operand(OwnPass<TransposePass>& pass, MatrixView<const T> given, Matrix<T>& turned,
                       const PassOptions& options, device::Ledger& ledger) {
  const std::int64_t groups = pass->plan.groups, rows = given.rows / groups;
  std::vector<std::byte> copy;
  turned = Matrix<T>(groups * given.cols, rows);
  const std::int64_t row_bytes = rows * std::int64_t{sizeof(T)};
  const ByteRows bytes_of_rows{reinterpret_cast<std::byte*>(turned.elements().data()),
                               turned.rows(), row_bytes, row_bytes};
  if (!pass.run(options, ledger, contiguous<T>(given, copy), bytes_of_rows)) return false;
  for (std::int64_t r = 0; options.self_check != nullptr && r < given.rows; ++r)
    for (std::int64_t c = 0; c < given.cols; ++c) {
      const T& moved = turned(r / rows * given.cols + c, r % rows);
      if (std::memcmp(&given(r, c), &moved, sizeof(T)) == 0) continue;
      throw Error(ErrorCode::CheckFailed,
                  fmt::format("self-check: the dense operand [{}][{}] is {}, but {} after it was "
                              "transposed on the machine",
                              r, c, float(given(r, c)), float(moved)));
    }
  return true;
}

#define TESSERA_TRANSPOSE_OPERAND(T)                                                        \
  template bool transpose_operand(OwnPass<TransposePass>&, MatrixView<const T>, Matrix<T>&, \
                                  const PassOptions&, device::Ledger&);
TESSERA_TRANSPOSE_OPERAND(float)
TESSERA_TRANSPOSE_OPERAND(Half)
TESSERA_TRANSPOSE_OPERAND(BFloat16)
#undef TESSERA_TRANSPOSE_OPERAND

}  // namespace tessera::runtime::internal
