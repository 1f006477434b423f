#pragma once

// The scalar figures of HostRates, each with its key in the file.
namespace tessera::host::internal {

// Calls use(key, figure) for every figure of which more is better.
template <class Rates, class Use>
void each_speed(Rates& rates, const Use& use) {
  use("peak_flops", rates.peak_flops);
  use("l1_bytes_per_second", rates.l1_bytes_per_second);
  use("l2_bytes_per_second", rates.l2_bytes_per_second);
  use("memory_bytes_per_second", rates.memory_bytes_per_second);
}

// Calls use(key, figure) for every figure of which less is better.
template <class Rates, class Use>
void each_duration(Rates& rates, const Use& use) {
  use("copy_seconds", rates.copy_seconds);
  use("float_result_seconds", rates.float_result_seconds);
  use("half_result_seconds", rates.half_result_seconds);
}

}  // namespace tessera::host::internal
