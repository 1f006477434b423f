#include "tessera/tools/internal/ranks.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/mpi_ranks.hpp"
#include "tessera/tools/exit_code.hpp"
#include "tessera/tools/internal/numbers.hpp"

namespace tessera::tools::internal {
namespace {

distributed::Communicator* all_ranks = nullptr;

}  // namespace

void add_rank_options(CLI::App& app, double& timeout_seconds) {
  constexpr double kLongest = 1e6;  // 11 days
  require_number(app.add_option("--timeout", timeout_seconds,
                                "with several ranks (mpirun), seconds that one waits for another "
                                "before it ends all of them with an error"),
                 1, kLongest)
      ->capture_default_str();
}

void check_rank_options(const CLI::App& app) {
  if (app.count("--timeout") > 0 && !distributed::is_started_by_mpi())
    throw CLI::ValidationError("--timeout",
                               "is for several ranks, which a launcher starts: mpirun -np 4 ...");
}

int with_ranks(const char* program, double timeout_seconds, const std::function<int()>& body) {
  if (!distributed::is_started_by_mpi()) return body();
  const auto on_rank = [&](distributed::Communicator& own) {
    all_ranks = &own;
    // The results of all ranks are the same, so one copy is enough.
    if (own.rank() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr)
      throw Error(ErrorCode::Internal, "/dev/null cannot be opened");
    return body();
  };
  const auto failed = [&] {
    const std::string name =
        all_ranks == nullptr ? program
                             : std::string(program) + ": rank " + std::to_string(all_ranks->rank());
    return print_failure(name.c_str());
  };
  return distributed::run_mpi_rank(
      on_rank, failed, std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * timeout_seconds)));
}

int in_one_process(const char* program, const std::function<int()>& body) {
  if (!distributed::is_started_by_mpi()) return body();
  constexpr double kSeconds = 60;  // that ranks wait for the first one to end them
  return with_ranks(program, kSeconds, [&] {
    if (all_ranks->size() == 1) return body();
    if (all_ranks->rank() == 0)
      throw Error(ErrorCode::InvalidArgument,
                  std::string(program) + " runs in one process; start it without mpirun");
    all_ranks->barrier("the message of the first rank");
    return int(kOk);
  });
}

std::uint64_t seed_of_all(std::uint64_t own) {
  if (all_ranks == nullptr) return own;
  return distributed::list_of_first(*all_ranks, "the seed", std::vector<std::uint64_t>{own})[0];
}

distributed::Communicator* ranks() { return all_ranks; }

}  // namespace tessera::tools::internal
