#include "tessera/base/process.hpp"

#include <pthread.h>

namespace tessera {
namespace {

std::atomic<std::uint32_t> forks = 0;

// The handler is registered before main(), so that no fork() is missed. Without memory for it the
// registration fails, and children behave as those of any program with threads.
[[maybe_unused]] const int kRegistered =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint32_t process_number() noexcept { return forks.load(std::memory_order_relaxed); }

}  // namespace tessera
