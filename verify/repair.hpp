#pragma once

#include <string>

#include "tessera/base/error.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::verify {

// Without options.repair, calls run(options), which runs a pass and returns whether it finished.
// Else calls run(once), where `once` is `options` without `repair`. If then the self-check of the
// pass fails, it is run once more, without the fault that was injected into the first run.
// options.self_check then has the outcome of the second run, and in first_failure the message of
// the first. A second failure reaches the caller. Options is layer::PassOptions or has its first
// fields; a field `is_repeated` is set for the second run.
template <class Options, class Run>
bool run_and_repair(const Options& options, Run&& run) {
  if (!options.repair) return run(options);
  Options once = options;
  once.repair = false;
  std::string failure;
  try {
    return run(once);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::CheckFailed) throw;
    failure = error.what();
  }
  if constexpr (requires { once.is_repeated; }) once.is_repeated = true;
  const bool finished = run(once);
  if (options.self_check != nullptr) options.self_check->first_failure = failure;
  return finished;
}

}  // namespace tessera::verify
