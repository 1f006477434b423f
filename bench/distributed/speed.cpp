#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/distributed/parts.hpp"
#include "tessera/bench/ratios.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/part.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

struct SpeedCase {
  std::int64_t size, block, z;
  double density;

  std::string name() const {
    return fmt::format("{} square, density {}{}, z {}", size, density,
                       block > 1 ? fmt::format(", block {}", block) : "", z);
  }
};

constexpr SpeedCase kCases[] = {{4096, 1, 256, 0.1},
                                {4096, 1, 64, 0.1},
                                {4096, 1, 256, 0.01},
                                {4096, 16, 256, 0.1},
                                {8192, 16, 64, 0.05}};

// The times of one turn, each the mean of several runs.
struct Times {
  double one = 0, two = 0;  // one rank of one and of two threads
  double panels = 0;        // ranks, operand gathered in panels
  double local = 0;         // ranks whose operand is there already
  double one_cpu = 0;       // of `one` and of the busier rank of `panels`, by the CPU clock of the
  double panels_cpu = 0;    // thread, for a computer that others use too; waiting counts in part
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A case on this rank, and on rank 0 that of one rank.
class Runs {
 public:
  Runs(const SpeedCase& c, distributed::Communicator& ranks)
      : ranks_(ranks),
        problem_{.size = {1, c.size, c.size, c.z},
                 .block = {c.block, c.block},
                 .density = c.density,
                 .data_type = DataType::Float},
        weights_(sparse::random_pattern(c.size, c.size, problem_.block, c.density, 1)),
        s_(random_matrix<float>(c.size, c.z, 2)),
        q_(c.size, c.z),
        panels_(problem_, caches_, *one_, ranks) {
    panels_.set_weights(sparse::checked(weights_));
    rows_ = panels_.outputs();
    cols_ = panels_.inputs();
    Problem of_rank = problem_;
    of_rank.size.x = rows_.size();
    local_ = std::make_unique<host::HostLayer>(of_rank, caches_, *one_);
    local_->set_weights(sparse::rows_of(weights_, rows_));
    if (ranks.rank() != 0) return;
    alone_one_ = std::make_unique<host::HostLayer>(problem_, caches_, *one_);
    alone_one_->set_weights(weights_);
    alone_two_ = std::make_unique<host::HostLayer>(problem_, caches_, *two_);
    alone_two_->set_weights(weights_);
  }

  Times turn() {
    Times t;
    const auto s = std::as_const(s_).view();
    if (ranks_.rank() == 0) {
      t.one = mean([&] { alone_one_->forward<float>(s, q_.view()); });
      t.one_cpu = cpu_;
      t.two = mean([&] { alone_two_->forward<float>(s, q_.view()); });
    }
    const auto own_s = s.sub(cols_, {0, s.cols});
    const auto own_q = q_.view().sub(rows_, {0, s.cols});
    t.panels = together([&] { panels_.forward<float>(own_s, own_q); });
    t.panels_cpu = slowest(ranks_, cpu_);
    t.local = together([&] { local_->forward<float>(s, own_q); });
    return t;
  }

 private:
  template <class Body>
  double mean(const Body& body) {
    constexpr int kRuns = 10;
    body();
    const auto all = [&] {
      for (int i = 0; i < kRuns; ++i) body();
    };
    double wall = 0;
    cpu_ = seconds([&] { wall = seconds(all, Clock::Wall); }, Clock::OwnThread) / kRuns;
    return wall / kRuns;
  }
  template <class Body>
  double together(const Body& body) {
    ranks_.barrier("turn");
    return slowest(ranks_, mean(body));
  }

  distributed::Communicator& ranks_;
  Problem problem_;
  host::HostCpu caches_ = host::read_host_cpu();
  double cpu_ = 0;  // seconds of this thread in the last mean()
  std::unique_ptr<Executor> one_ = sequential(), two_ = make_executor(2);
  sparse::Csr<float> weights_;
  Matrix<float> s_, q_;
  distributed::RankLayer panels_;
  Range rows_, cols_;
  std::unique_ptr<host::HostLayer> local_, alone_one_, alone_two_;
};

}  // namespace

double slowest(distributed::Communicator& ranks, double seconds) {
  double most = 0;
  for (const auto& list : gather_lists(ranks, "times", std::vector<double>{seconds}))
    most = std::max(most, list[0]);
  return most;
}

bool run_rank_speed(distributed::Communicator& ranks, int turns) {
  const bool speaks = ranks.rank() == 0;
  Report report;
  Ratios by_two, by_one;
  for (const SpeedCase& c : kCases) {
    Runs runs(c, ranks);
    std::vector<double> one, two, panels, local, to_two, to_one, by_cpu;
    for (int i = 0; i < turns; ++i) {
      const Times t = runs.turn();
      one.push_back(t.one);
      two.push_back(t.two);
      panels.push_back(t.panels);
      local.push_back(t.local);
      to_two.push_back(t.two / t.panels);
      to_one.push_back(t.one / t.panels);
      by_cpu.push_back(t.one_cpu / t.panels_cpu);
    }
    by_two.add(median(to_two));
    by_one.add(median(to_one));
    if (!speaks) continue;
    const auto least = [](const std::vector<double>& v) {
      return *std::min_element(v.begin(), v.end());
    };
    fmt::print(
        "{:<42} ms: 1 thread {:.2f}, 2 threads {:.2f}, 2 ranks {:.2f} (without a gather {:.2f})\n",
        c.name(), 1e3 * median(one), 1e3 * median(two), 1e3 * median(panels), 1e3 * median(local));
    report.at_least("  two ranks by two threads", median(to_two), 0.90);
    report.tell("  two ranks by one thread", median(to_one));
    report.tell("  two ranks by two threads, least times", least(two) / least(panels));
    report.tell("  two ranks by one thread, CPU time of the threads", median(by_cpu));
    report.tell("  two ranks by one thread, least times", least(one) / least(panels));
  }
  if (speaks) {
    report.at_least("two ranks by two threads, geometric mean", by_two.mean(), 0.97);
    report.at_least("two ranks by one thread, geometric mean", by_one.mean(), 1.75);
  }
  return report.all_met();
}

}  // namespace tessera::bench
