#include "tessera/base/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "tessera/base/error.hpp"
#include "tessera/base/instruction_sets.hpp"
#include "tessera/base/internal/executors.hpp"
#include "tessera/base/process.hpp"

namespace tessera {
namespace {

int cores() { return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1); }

int checked_threads(int threads) {
  if (threads < 0 || threads > kMostThreads)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} threads; use 1 to {}, or 0 for all cores", threads, kMostThreads));
  return threads > 0 ? threads : std::min(cores(), kMostThreads);
}

}  // namespace

bool has_executor(ExecutorKind kind) {
#ifdef TESSERA_HAS_TBB
  (void)kind;
  return true;
#else
  return kind == ExecutorKind::Threads;
#endif
}

std::unique_ptr<Executor> make_executor(ExecutorKind kind, int threads) {
  static_cast<void>(allowed_instruction_sets());  // throws for a choice that this CPU does not have
  const int count = checked_threads(threads);
  if (kind == ExecutorKind::Threads) return internal::make_thread_executor(count);
#ifdef TESSERA_HAS_TBB
  // A child of fork() has no oneTBB: see TbbExecutor.
  if (process_number() != 0) return internal::make_thread_executor(std::min(count, cores()));
  return internal::make_tbb_executor(count);
#else
  throw Error(
      ErrorCode::InvalidArgument,
      "this build has no oneTBB; use the std::jthread executor or configure TESSERA_TBB=ON");
#endif
}

std::unique_ptr<Executor> make_executor(int threads) {
  const bool tbb = has_executor(ExecutorKind::Tbb) && threads <= cores();
  return make_executor(tbb ? ExecutorKind::Tbb : ExecutorKind::Threads, threads);
}

}  // namespace tessera
