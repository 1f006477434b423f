#include "tessera/tools/ranks/mpi_ranks.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/mpi_ranks.hpp"
#include "tessera/tools/options/exit_code.hpp"
#include "tessera/tools/ranks/rank_run.hpp"
#include "tessera/tools/ranks/train_share.hpp"
#include "tessera/tools/run/ranks.hpp"

namespace tessera::tools {
namespace {

using distributed::Communicator, distributed::Digest, distributed::Given;

class MpiRanks final : public Ranks {
 public:
  explicit MpiRanks(Communicator& all) : all_(all) {}

  int rank() const override { return all_.rank(); }
  int size() const override { return all_.size(); }

  void require_same_options(const Arguments& a) override {
    const std::array<std::int64_t, 13> options{is_host(a),
                                               !a.matrix.empty(),
                                               !a.values.empty(),
                                               a.batch_size,
                                               a.block.rows,
                                               a.block.cols,
                                               std::int64_t(a.stop),
                                               std::int64_t(a.data_type),
                                               std::int64_t(a.self_check),
                                               !a.output_dir.empty(),
                                               a.devices_simulated,
                                               a.groups,
                                               a.replicas};
    require_same(Given{"command line", Digest().add(std::span<const std::int64_t>(options)).value(),
                       fmt::format("{}, batch {}, block {} x {}, {}, {}",
                                   a.matrix.empty() ? "random weights" : a.matrix, a.batch_size,
                                   a.block.rows, a.block.cols, to_string(a.data_type),
                                   is_host(a) ? "this computer" : "a modelled machine")});
  }

  void require_same_problem(const Problem& problem) override {
    require_same(distributed::given_problem(problem));
  }

  void require_same_weights(std::span<const sparse::CheckedCsr<float>> weights) override {
    require_same(distributed::given_weights(weights));
  }

  void require_same(const char* name, std::span<const std::byte> bytes) override {
    require_same(Given{name, Digest().add(bytes).value()});
  }

  std::uint64_t seed_of_all(std::uint64_t own) override {
    return distributed::list_of_first(all_, "the seed", std::vector<std::uint64_t>{own})[0];
  }

  void share(pod::DeviceOptions& devices) override { devices.ranks = &all_; }

  HostRun run(const Arguments& arguments, const char* program) override {
    return run_on_ranks(arguments, program, *this, all_);
  }

  std::unique_ptr<train::BatchShare> batch_share(std::int64_t batch) override {
    return make_batch_share(all_, batch);
  }

  int threads(int asked) const override { return threads_of_rank(asked); }

  void barrier(const char* what) override { all_.barrier(what); }

 private:
  void require_same(const Given& given) { distributed::require_same(all_, "run", {given}); }

  Communicator& all_;
};

int launch(const char* program, double timeout_seconds, const std::function<int()>& body) {
  std::optional<MpiRanks> own;
  const auto on_rank = [&](Communicator& all) {
    set_ranks(&own.emplace(all));
    // The results of all ranks are the same, so one copy is enough.
    if (all.rank() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr)
      throw Error(ErrorCode::Internal, "/dev/null cannot be opened");
    return body();
  };
  const auto failed = [&] {
    const std::string name =
        ranks() == nullptr ? program
                           : std::string(program) + ": rank " + std::to_string(ranks()->rank());
    return print_failure(name.c_str());
  };
  const int exit = distributed::run_mpi_rank(
      on_rank, failed, std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * timeout_seconds)));
  set_ranks(nullptr);
  return exit;
}

}  // namespace

void use_mpi_ranks() { set_launcher(launch); }

}  // namespace tessera::tools
