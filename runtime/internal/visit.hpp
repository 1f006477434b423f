#pragma once

#include <span>

#include "tessera/codelets/kernel.hpp"
#include "tessera/codelets/visit_cost.hpp"
#include "tessera/device/engine.hpp"
#include "tessera/runtime/pass_spec.hpp"

namespace tessera::runtime::internal {

codelets::KernelKey kernel_key(const PassSpec& spec);
bool is_block(codelets::Method method);

// [rows][z] elements of `bytes_per_element` as a kernel wants them.
codelets::Operand operand(device::ByteRows rows, std::int64_t bytes_per_element);

// What a step over these buckets costs the tile: the formula with the counts of the real words.
Cycles visit_cycles(const PassSpec& spec, const device::Machine& machine,
                    std::span<const void* const> buckets, std::int64_t sub_group);

}  // namespace tessera::runtime::internal
