#include "tessera/distributed/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/bench/distributed/parts.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/io/npz.hpp"
#include "tessera/io/write.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t kSize = 8192;  // 8 million entries: 64 MB in memory
constexpr double kDensity = 0.125;

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Returns a figure of /proc/self/status in bytes.
std::int64_t memory_figure(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::int64_t kib = 0;
  while (status >> word)
    if (word == name + ":") status >> kib;
  return kib * 1024;
}

}  // namespace

void write_rank_files(const std::string& folder) {
  auto matrix = sparse::random_pattern(kSize, kSize, {1, 1}, kDensity, 1);
  Random random(2);
  for (float& value : matrix.values) value = float(random.unit());
  write(folder + "/a.smtx", io::write_smtx(matrix));
  write(folder + "/a.mtx", io::write_mtx(matrix));
  if (io::can_read_npz()) write(folder + "/a.npz", io::write_npz(matrix));
}

bool run_rank_files(distributed::Communicator& ranks, const std::string& folder) {
  Report report;
  for (const std::string kind : {"smtx", "mtx", "npz"}) {
    if (kind == "npz" && !io::can_read_npz()) continue;
    ranks.barrier("file");
    const std::int64_t before = memory_figure("VmRSS");
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts again (man proc)
    std::int64_t entries = 0, rows = 0;
    const double time = seconds(
        [&] {
          const auto own = distributed::read_own_rows(ranks, folder + "/a." + kind);
          entries = std::ssize(own.rows.col);
          rows = own.rows.rows;
        },
        Clock::Wall);
    const auto share = double(entries * 8 + (rows + 1) * 8);
    const double peak = double(memory_figure("VmHWM") - before) / share;
    double worst = 0, slowest = 0;
    for (const auto& list : gather_lists(ranks, "peaks", std::vector<double>{peak, time})) {
      worst = std::max(worst, list[0]);
      slowest = std::max(slowest, list[1]);
    }
    if (ranks.rank() != 0) continue;
    report.at_most(fmt::format(".{}: peak of a rank of {} by its share of {:.0f} MB", kind,
                               ranks.size(), 1e-6 * double(kSize * kSize) * kDensity * 8),
                   worst, 1.10);
    report.tell(fmt::format(".{}: seconds of the slowest rank", kind), slowest);
  }
  return report.all_met();
}

}  // namespace tessera::bench
