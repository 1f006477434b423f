#include "tessera/tools/run/ranks.hpp"

#include <CLI/CLI.hpp>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/launcher.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/options/numbers.hpp"

namespace tessera::tools {
namespace {

Launcher& launcher() {
  static Launcher of_this_program;
  return of_this_program;
}

Ranks* all_ranks = nullptr;

}  // namespace

void set_launcher(Launcher of_this_program) { launcher() = std::move(of_this_program); }

void set_ranks(Ranks* ranks) { all_ranks = ranks; }

Ranks* ranks() { return all_ranks; }

bool is_first_rank() { return all_ranks == nullptr || all_ranks->rank() == 0; }

void add_rank_options(CLI::App& app, double& timeout_seconds) {
  constexpr double kLongest = 1e6;  // 11 days
  require_number(app.add_option("--timeout", timeout_seconds,
                                "with several ranks (mpirun), seconds that one waits for another "
                                "before it ends all of them with an error"),
                 1, kLongest)
      ->capture_default_str();
}

void add_replicas_option(CLI::App& app, int& replicas) {
  constexpr int kMostRanks = 1 << 20;
  require_whole(app.add_option("--replicas", replicas,
                               "with several ranks (mpirun), parts of the columns of the weights, "
                               "a divisor of the ranks: many ranks exchange less; 0: the number "
                               "that exchanges least"),
                0, kMostRanks)
      ->capture_default_str();
}

void check_rank_options(const CLI::App& app) {
  if (is_started_by_mpi()) return;
  for (const char* const name : {"--timeout", "--replicas"}) {
    const CLI::Option* const option = app.get_option_no_throw(name);
    if (option != nullptr && option->count() > 0)
      throw CLI::ValidationError(name,
                                 "is for several ranks, which a launcher starts: mpirun -np 4 ...");
  }
}

int with_ranks(const char* program, double timeout_seconds, const std::function<int()>& body) {
  if (!is_started_by_mpi()) return body();
  if (!launcher())
    throw Error(ErrorCode::InvalidArgument,
                std::string(program) + " runs in one process; start it without mpirun");
  return launcher()(program, timeout_seconds, body);
}

int in_one_process(const char* program, const std::function<int()>& body) {
  constexpr double kSeconds = 60;  // that ranks wait for the first one to end them
  return with_ranks(program, kSeconds, [&] {
    if (all_ranks == nullptr || all_ranks->size() == 1) return body();
    if (all_ranks->rank() == 0)
      throw Error(ErrorCode::InvalidArgument,
                  std::string(program) + " runs in one process; start it without mpirun");
    all_ranks->barrier("the message of the first rank");
    return int(kOk);
  });
}

}  // namespace tessera::tools
