#include "tessera/runtime/internal/visit.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"

namespace tessera::runtime::internal {
namespace {

using codelets::Method;
using codelets::Operation;

Operation operation_of(Method method) {
  switch (method) {
    case Method::ElementFwd:
    case Method::BlockFwd:
      return Operation::Fwd;
    case Method::ElementGradA:
      return Operation::GradA;
    case Method::ElementTranspose:
    case Method::BlockTranspose:
      return Operation::GradATransposed;
    case Method::ElementGradW:
    case Method::BlockGradW:
    case Method::BlockGradWAmp:
      return Operation::GradW;
  }
  throw Error(ErrorCode::Internal, "unknown method");
}

}  // namespace

codelets::KernelKey kernel_key(const PassSpec& spec) {
  const bool element = spec.grid.block.is_element();
  return {operation_of(spec.method), element ? codelets::Format::Element : codelets::Format::Block,
          spec.data_type(), spec.partials_type, spec.grid.word_bits};
}

void check_bucket_words(const PassSpec& spec, TileId tile, const codelets::KernelArgs& args,
                        const codelets::BucketCapacity& capacity) {
  const auto fault = codelets::check_words(kernel_key(spec), args, capacity);
  if (!fault) return;
  throw Error(ErrorCode::CheckFailed, fmt::format("self-check: tile {}: bucket words, word {}: {}",
                                                  tile.value, fault->word, fault->what));
}

codelets::Operand operand(device::ByteRows rows, std::int64_t bytes_per_element) {
  return {rows.data, rows.rows, rows.row_bytes / bytes_per_element,
          rows.stride / bytes_per_element};
}

namespace {

codelets::VisitCostArgs visit_args(const PassSpec& spec, const device::Machine& machine) {
  return {.key = kernel_key(spec),
          .grad_w_amp = spec.method == Method::BlockGradWAmp,
          .block = spec.grid.block,
          .z = spec.grid.z_per_tile(),
          .workers = machine.workers,
          .conv_units = machine.conv_units(spec.data_type(), spec.partials_type)};
}

}  // namespace

Cycles visit_cycles(const PassSpec& spec, const device::Machine& machine,
                    std::span<const void* const> buckets, std::int64_t sub_group) {
  codelets::VisitCostArgs args = visit_args(spec, machine);
  args.buckets = buckets;
  args.sub_group = sub_group;
  return codelets::visit_cycles(args);
}

partitioner::LoadCost load_cost(const PassSpec& spec, const device::Machine& machine) {
  const std::int64_t bytes = spec.grid.meta_words * spec.word_bytes() +
                             spec.grid.blocks * spec.grid.block.area() * bytes_of(spec.data_type());
  const Cycles moved =
      machine.receive_start + Cycles(ceil_div(bytes, machine.exchange_bytes_per_cycle));
  // A distance costs one question and a step for each part of the batch.
  const Cycles asked = machine.control + machine.sync + machine.launch;
  return {
      codelets::cost_kernel(visit_args(spec, machine)),
      moved + machine.sync + machine.launch + Cycles(ceil_div(asked.value, spec.grid.splits.z))};
}

}  // namespace tessera::runtime::internal
