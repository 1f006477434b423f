#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tessera/base/problem.hpp"
#include "tessera/pod/pod_layer.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/tools/run/arguments.hpp"
#include "tessera/tools/run/host_run.hpp"
#include "tessera/train/batch_share.hpp"

namespace CLI {
class App;
}

// Programs that a launcher such as mpirun has started as several ranks. Only a program that links
// tools/ranks can run so; it says how in set_launcher().
namespace tessera::tools {

// The ranks of a program, as a run uses them. A launcher may give each rank a command line and
// files of its own, so what a run depends on is compared before results are exchanged: without
// that, messages of another size arrive, or results of two layers are compared. These comparisons
// are collective, and throw Error{InvalidArgument} on every rank if there is a difference.
class Ranks {
 public:
  virtual ~Ranks() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Must come first.
  virtual void require_same_options(const Arguments& arguments) = 0;
  virtual void require_same_problem(const Problem& problem) = 0;
  virtual void require_same_weights(std::span<const sparse::CheckedCsr<float>> weights) = 0;
  virtual void require_same(const char* name, std::span<const std::byte> bytes) = 0;

  // Returns the seed of the first rank, which may have taken it from its clock. Collective.
  virtual std::uint64_t seed_of_all(std::uint64_t own) = 0;

  // Spreads the devices of a pass on a pod over the ranks.
  virtual void share(pod::DeviceOptions& devices) = 0;

  // Runs a layer on this computer that is spread over the ranks. Collective.
  virtual HostRun run(const Arguments& arguments, const char* program) = 0;

  // Returns this rank's part of a network that all ranks train with batches of so many columns.
  // Throws Error{InvalidArgument} for an odd batch. Collective.
  virtual std::unique_ptr<train::BatchShare> batch_share(std::int64_t batch) = 0;

  // Returns the threads of this rank, of which `asked` were asked for; 0: its share of the cores.
  virtual int threads(int asked) const = 0;

  virtual void barrier(const char* what) = 0;
};

// Returns body() on each rank, which ranks() knows meanwhile. An exception on one rank is printed
// there, as the program's, and ends all ranks with its exit code.
using Launcher = std::function<int(const char* program, double timeout_seconds,
                                   const std::function<int()>& body)>;

// Lets this program run as several ranks.
void set_launcher(Launcher launcher);

// Sets the ranks that ranks() returns; nullptr: none.
void set_ranks(Ranks* ranks);

// Returns the ranks inside of with_ranks, and null in a program that is one process.
Ranks* ranks();

// Returns true on the first rank and in a program that is one process: it writes the files.
bool is_first_rank();

// Adds --timeout, in seconds.
void add_rank_options(CLI::App& app, double& timeout_seconds);

// Adds --replicas, of distributed::Cut.
void add_replicas_option(CLI::App& app, int& replicas);

// Throws CLI::ValidationError if --timeout or --replicas is given to a program that is one process.
void check_rank_options(const CLI::App& app);

// Returns body(), called on each rank if a launcher has started the program.
int with_ranks(const char* program, double timeout_seconds, const std::function<int()>& body);

// Returns body() of a program that one process runs. On several ranks, which would each do all of
// it, the first one throws Error{InvalidArgument} that says so, and all end.
int in_one_process(const char* program, const std::function<int()>& body);

}  // namespace tessera::tools
