#include "tessera/base/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "tessera/base/error.hpp"
#include "tessera/base/internal/executors.hpp"

namespace tessera {
namespace {

int cores() { return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1); }

int checked_threads(int threads) {
  if (threads < 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{} threads; use 1 or more, or 0 for all cores", threads));
  return threads > 0 ? threads : cores();
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
  const int count = checked_threads(threads);
  if (kind == ExecutorKind::Threads) return internal::make_thread_executor(count);
#ifdef TESSERA_HAS_TBB
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
