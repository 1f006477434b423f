#include "tessera/partitioner/internal/stream_copy.hpp"

#include "tessera/base/vector_targets.hpp"

// foreach_target includes this file again, once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tessera/partitioner/internal/stream_copy.cpp"
#include <hwy/foreach_target.h>
// The list of targets must come before everything that depends on the target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tessera::partitioner::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Lists of the standard library are aligned to 16 bytes only. Wider vectors would gain nothing,
// because streamed data leaves in whole cache lines in any case.
using Lanes = hn::CappedTag<std::uint8_t, kStreamGrain>;

void StreamCopy(const std::uint8_t* from, std::uint8_t* to, std::int64_t bytes) {
  const Lanes d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < bytes; i += step) hn::Stream(hn::LoadU(d, from + i), d, to + i);
}

void StreamZeros(std::uint8_t* to, std::int64_t bytes) {
  const Lanes d;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < bytes; i += step) hn::Stream(hn::Zero(d), d, to + i);
}

}  // namespace tessera::partitioner::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::partitioner::internal {

HWY_EXPORT(StreamCopy);
HWY_EXPORT(StreamZeros);

void stream_copy(const void* from, void* to, std::int64_t bytes) {
  HWY_DYNAMIC_DISPATCH(StreamCopy)
  (static_cast<const std::uint8_t*>(from), static_cast<std::uint8_t*>(to), bytes);
}

void stream_zeros(void* to, std::int64_t bytes) {
  HWY_DYNAMIC_DISPATCH(StreamZeros)(static_cast<std::uint8_t*>(to), bytes);
}

void finish_streams() { hwy::FlushStream(); }

}  // namespace tessera::partitioner::internal
#endif
