#include "tessera/python/src/interrupt.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/base/float_mode.hpp"
#include "tessera/base/process.hpp"

namespace py = pybind11;

namespace tessera::python {
namespace {

constexpr std::chrono::milliseconds kPause(50);

// The state that the thread and its caller share; the one that ends last frees it.
struct Job {
  std::mutex mutex;
  std::condition_variable ended;
  bool is_over = false;
  std::exception_ptr failure;
};

// The threads whose callers were interrupted. Guarded by the interpreter lock. A child of fork()
// has none of them, and would wait for them without an end.
std::vector<std::jthread>& left_running() {
  static OfProcess<std::vector<std::jthread>> threads;
  return threads.get();
}

bool wait_a_moment(Job& job) {
  const py::gil_scoped_release release;
  std::unique_lock lock(job.mutex);
  return job.ended.wait_for(lock, kPause, [&] { return job.is_over; });
}

}  // namespace

void run_interruptibly(std::function<void(std::stop_token)> work) {
  const auto job = std::make_shared<Job>();
  std::jthread thread([job, work = std::move(work)](std::stop_token stop) {
    const DefaultFloatMode mode;
    std::exception_ptr failure;
    try {
      work(stop);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(job->mutex);
    job->failure = failure;
    job->is_over = true;
    job->ended.notify_all();
  });
  while (!wait_a_moment(*job)) {
    if (PyErr_CheckSignals() == 0) continue;
    py::error_already_set interrupted;
    thread.request_stop();
    left_running().push_back(std::move(thread));
    throw interrupted;
  }
  thread.join();
  if (job->failure) std::rethrow_exception(job->failure);
}

void add_interrupt(py::module_&) {
  py::module_::import("atexit").attr("register")(py::cpp_function([] {
    std::vector<std::jthread> threads = std::move(left_running());
    const py::gil_scoped_release release;
    threads.clear();  // joins
  }));
}

}  // namespace tessera::python
