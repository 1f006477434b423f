// What it costs on this computer to encode, decode and update buckets. --bars prints one line for
// each promise (name, figure, bar, ok or short) and exits 1 when one is short. Every result is
// checked before it is timed.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/base/random.hpp"
#include "tessera/codelets/bucket_layout.hpp"
#include "tessera/partitioner/update.hpp"
#include "tessera/sparse/random.hpp"

namespace {

using namespace tessera;
using partitioner::Buckets;
using partitioner::TileGrid;

constexpr std::uint64_t kSeed = 7;

// A pattern, where it goes, and storage that is used again and again, as a training loop would.
struct Workload {
  sparse::Csr<float> matrix;
  TileGrid grid;
  Buckets buckets;
  std::vector<float> bucket_values;

  double blocks() const { return static_cast<double>(matrix.blocks()); }
  void encode(Executor& executor) {
    if (partitioner::encode_into(buckets, matrix, grid, executor))
      throw std::runtime_error("the pattern does not fit");
  }
  void refill(Executor& executor) {
    partitioner::refill<float, float>(buckets, matrix.values, bucket_values, executor);
  }
};

// Room for the mean of all buckets and 30 % more.
void set_capacities(TileGrid& grid, std::int64_t blocks) {
  constexpr double kSlack = 1.3;
  const std::int64_t per_bucket = ceil_div(blocks, grid.buckets());
  const std::int64_t cell_rows = grid.x_range(0).size() / grid.block.rows;
  const std::int64_t rows = std::min(per_bucket, ceil_div(cell_rows, grid.splits.z) + 1);
  const auto grown = [](std::int64_t n) {
    return static_cast<std::int64_t>(kSlack * static_cast<double>(n)) + 1;
  };
  const codelets::RecordShape shape{grid.block.is_element(), grid.grad_w, grid.workers};
  grid.meta_words = grown(codelets::record_words(shape, rows, per_bucket));
  grid.blocks = grown(per_bucket);
}

// Not oneTBB's: its limit of one thread would hold for every other executor too.
std::unique_ptr<Executor> sequential() { return make_executor(ExecutorKind::Threads, 1); }

struct Layer {
  std::int64_t side = 4096;
  double density = 0.1;
  std::int64_t block = 1;
  Dims splits{1, 46, 4, 8};  // 1472 tiles
  std::int64_t word_bits = 16;
};

Workload make(const Layer& layer) {
  Workload w;
  w.matrix = sparse::random_pattern(layer.side, layer.side, {layer.block, layer.block},
                                    layer.density, kSeed);
  constexpr std::int64_t kBatchOfTile = 4;
  w.grid.size = {1, layer.side, layer.side, kBatchOfTile * layer.splits.z};
  w.grid.block = w.matrix.block;
  w.grid.splits = layer.splits;
  w.grid.word_bits = layer.word_bits;
  set_capacities(w.grid, w.matrix.blocks());
  const auto executor = sequential();
  w.encode(*executor);
  w.bucket_values.resize(
      static_cast<std::size_t>(w.grid.buckets() * w.buckets.values_per_bucket()));
  w.refill(*executor);
  if (partitioner::decode(w.buckets, std::span<const float>(w.bucket_values)) != w.matrix)
    throw std::runtime_error("decoding gives another matrix");
  return w;
}

enum class Clock { Wall, OwnThread };

double now(Clock clock) {
  timespec time{};
  clock_gettime(clock == Clock::Wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds(const std::function<void()>& body, Clock clock) {
  const double start = now(clock);
  body();
  return now(clock) - start;
}

std::vector<std::vector<double>> times_of(const std::vector<std::function<void()>>& bodies,
                                          Clock clock, int repeats) {
  std::vector<std::vector<double>> times(bodies.size());
  for (int i = 0; i <= repeats; ++i)
    for (std::size_t b = 0; b < bodies.size(); ++b) {
      const double time = seconds(bodies[b], clock);
      if (i > 0) times[b].push_back(time);  // the first fills caches
    }
  for (auto& t : times) std::sort(t.begin(), t.end());
  return times;
}

// Median times of bodies that take turns, so that neighbours on the machine disturb them alike, by
// this thread's own clock, which stands still while others have the core.
std::vector<double> medians(const std::vector<std::function<void()>>& bodies) {
  std::vector<double> result;
  for (const auto& t : times_of(bodies, Clock::OwnThread, 41)) result.push_back(t[t.size() / 2]);
  return result;
}

// Threads need a core each, which a neighbour on the machine may have. So both are measured by the
// wall's clock, and only where short counting loops before and behind say that two were free.
class ThreadRatio {
 public:
  struct Figure {
    double median = 0;  // of the ratios of neighbouring runs
    std::int64_t runs = 0;
  };

  // How much faster body(two threads) is than body(one thread).
  Figure operator()(const std::function<void(Executor&)>& body) {
    constexpr int kMostRuns = 1000, kWanted = 41;
    std::vector<double> ratios;
    for (int i = 0; i < kMostRuns && std::ssize(ratios) < kWanted; ++i) {
      if (!two_are_free()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        continue;
      }
      const double slow = seconds([&] { body(*one_); }, Clock::Wall);
      const double fast = seconds([&] { body(*two_); }, Clock::Wall);
      if (two_are_free()) ratios.push_back(slow / fast);
    }
    std::sort(ratios.begin(), ratios.end());
    return {ratios.empty() ? 0 : ratios[ratios.size() / 2], std::ssize(ratios)};
  }

 private:
  bool two_are_free() {
    const double slow = seconds([&] { count(*one_); }, Clock::Wall);
    return slow / seconds([&] { count(*two_); }, Clock::Wall) > 1.75;
  }

  // About half a millisecond on one thread.
  static void count(Executor& executor) {
    executor.for_each(32, [](std::int64_t seed) {
      Random random(static_cast<std::uint64_t>(seed));
      std::int64_t sum = 0;
      for (int i = 0; i < 5'000; ++i) sum += random.below(1000);
      if (sum < 0) throw std::runtime_error("counted below zero");
    });
  }

  std::unique_ptr<Executor> one_ = sequential(), two_ = make_executor(2);
};

class Report {
 public:
  void at_least(const std::string& name, double figure, double bar) {
    add(name, figure, bar, figure >= bar, ">=");
  }
  void at_most(const std::string& name, double figure, double bar) {
    add(name, figure, bar, figure <= bar, "<=");
  }
  void tell(const std::string& name, double figure) {
    fmt::print("{:<66}{:>9.2f}\n", name, figure);
  }
  bool all_met() const { return all_met_; }

 private:
  void add(const std::string& name, double figure, double bar, bool met, const char* sign) {
    fmt::print("{:<66}{:>9.2f}  {} {:>6.2f}  {}\n", name, figure, sign, bar, met ? "ok" : "short");
    std::fflush(stdout);
    all_met_ = all_met_ && met;
  }
  bool all_met_ = true;
};

constexpr double kMillion = 1e6;

// The same with values of two bytes, of which blocks of 16 x 16 have 512 in place of 1024.
void encode_rate_half(Report& report, const std::string& name, const Layer& layer, double bar) {
  Workload w = make(layer);
  const auto one = sequential();
  std::vector<Half> values(w.matrix.values.size()), copy(values.size());
  std::transform(w.matrix.values.begin(), w.matrix.values.end(), values.begin(),
                 [](float v) { return Half(v); });
  std::vector<Half> bucket_values(w.bucket_values.size());
  const auto t =
      medians({[&] { w.encode(*one); },
               [&] { partitioner::refill<Half, Half>(w.buckets, values, bucket_values, *one); },
               [&] { std::copy(values.begin(), values.end(), copy.begin()); }});
  const double blocks = w.blocks() / kMillion;
  report.at_least("encode " + name + ", half, million blocks/s", blocks / (t[0] + t[1]), bar);
  report.tell("  values alone", blocks / t[1]);
  report.tell("  a plain copy of the values in the order of the matrix", blocks / t[2]);
}

// Words, source map and values, from the matrix into storage that is there.
void encode_rate(Report& report, const std::string& name, const Layer& layer, double bar) {
  Workload w = make(layer);
  const auto one = sequential();
  std::vector<float> copy(w.matrix.values.size());
  const auto t =
      medians({[&] { w.encode(*one); }, [&] { w.refill(*one); },
               [&] { std::copy(w.matrix.values.begin(), w.matrix.values.end(), copy.begin()); }});
  const double blocks = w.blocks() / kMillion;
  report.at_least("encode " + name + ", million blocks/s", blocks / (t[0] + t[1]), bar);
  report.tell("  words and source map alone", blocks / t[0]);
  report.tell("  values alone", blocks / t[1]);
  report.tell("  a plain copy of the values in the order of the matrix", blocks / t[2]);
}

void copy_chunks(const std::vector<float>& from, std::vector<float>& to, Executor& executor) {
  constexpr std::int64_t kChunks = 64;
  const std::int64_t size = std::ssize(from);
  executor.for_each(kChunks, [&](std::int64_t i) {
    std::copy(from.begin() + i * size / kChunks, from.begin() + (i + 1) * size / kChunks,
              to.begin() + i * size / kChunks);
  });
}

void thread_ratio(Report& report, const std::string& name, const Layer& layer) {
  Workload w = make(layer);
  std::vector<float> copy(w.matrix.values.size());
  ThreadRatio ratio;
  const auto both = ratio([&](Executor& e) { w.encode(e), w.refill(e); });
  report.at_least(fmt::format("encode {}, two threads against one ({} runs)", name, both.runs),
                  both.median, 1.7);
  report.tell("  words and source map alone", ratio([&](Executor& e) { w.encode(e); }).median);
  report.tell("  values alone", ratio([&](Executor& e) { w.refill(e); }).median);
  report.tell("  a plain copy of the values",
              ratio([&](Executor& e) { copy_chunks(w.matrix.values, copy, e); }).median);
}

void column_splits(Report& report) {
  std::vector<Workload> all;
  for (const std::int64_t y : {1, 2, 4, 8}) all.push_back(make({.splits = {1, 46, y, 32 / y}}));
  const auto one = sequential();
  std::vector<std::function<void()>> bodies;
  for (Workload& w : all) bodies.push_back([&w, &one] { w.encode(*one), w.refill(*one); });
  const auto t = medians(bodies);
  const auto [least, most] = std::minmax_element(t.begin(), t.end());
  report.at_most("encode block 1, slowest of Py 1, 2, 4, 8 against fastest", *most / *least, 1.2);
}

void decode_ratio(Report& report, const std::string& name, const Layer& layer) {
  Workload w = make(layer);
  const auto t =
      medians({[&] {
                 const auto fresh = partitioner::encode(w.matrix, w.grid);
                 partitioner::to_bucket_order<float, float>(*fresh.buckets, w.matrix.values);
               },
               [&] { partitioner::decode(w.buckets, std::span<const float>(w.bucket_values)); }});
  report.at_most("decode against encode, " + name + ", both into new storage", t[1] / t[0], 1.0);
}

// `share` of the blocks leave and as many come: anywhere, or in the first rows of the matrix only.
sparse::PatternChange replace(const sparse::Csr<float>& m, double share, bool anywhere) {
  Random random(kSeed);
  const auto count = static_cast<std::int64_t>(share * static_cast<double>(m.blocks()));
  const double reach = anywhere ? 1.0 : std::min(1.0, 4 * share);
  const auto rows = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(reach * static_cast<double>(m.block_rows())));
  std::vector<char> stored(static_cast<std::size_t>(rows * m.block_cols()));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = m.row_begin[r]; k < m.row_begin[r + 1]; ++k)
      stored[static_cast<std::size_t>(r * m.block_cols() + m.col[k])] = 1;
  sparse::PatternChange change;
  while (std::ssize(change.removed) < count || std::ssize(change.added) < count) {
    const std::int64_t at = random.below(std::ssize(stored));
    char& state = stored[static_cast<std::size_t>(at)];
    auto& list = state == 1 ? change.removed : change.added;
    if (state == 2 || std::ssize(list) == count) continue;
    list.push_back({static_cast<std::int32_t>(at / m.block_cols()),
                    static_cast<std::int32_t>(at % m.block_cols())});
    state = 2;
  }
  std::sort(change.removed.begin(), change.removed.end());
  std::sort(change.added.begin(), change.added.end());
  return change;
}

struct UpdateTimes {
  double ratio = 0, changed_buckets = 0;
};

UpdateTimes time_update(const Layer& layer, double share, bool anywhere) {
  Workload w = make(layer), target = w;
  const auto change = replace(w.matrix, share, anywhere);
  const sparse::PatternChange back{change.added, change.removed};
  target.matrix = sparse::with_change(w.matrix, change);
  const auto one = sequential();
  Workload live = w, again = w;
  double changed = 0;
  const auto go = [&](const Workload& to, const sparse::PatternChange& by) {
    const auto result = partitioner::update(live.buckets, to.matrix, by, *one);
    if (result.misfit) throw std::runtime_error("an update does not fit");
    partitioner::refill_changed<float, float>(live.buckets, to.matrix.values, live.bucket_values,
                                              result.changed);
    changed = static_cast<double>(result.changed.size());
  };
  go(target, change);
  if (partitioner::decode(live.buckets, std::span<const float>(live.bucket_values)) !=
      target.matrix)
    throw std::runtime_error("an update gives another matrix");
  go(w, back);
  // Fresh encodes and updates take turns with both patterns, so that neither finds its input in a
  // cache that the other filled.
  const auto fresh = [&](const Workload& from) {
    if (partitioner::encode_into(again.buckets, from.matrix, from.grid, *one))
      throw std::runtime_error("the pattern does not fit");
    partitioner::refill<float, float>(again.buckets, from.matrix.values, again.bucket_values, *one);
  };
  const auto t = medians({[&] { fresh(target); }, [&] { go(target, change); }, [&] { go(w, back); },
                          [&] { fresh(w); }});
  return {(t[0] + t[3]) / (t[1] + t[2]), changed};
}

void update_ratio(Report& report, const std::string& name, const Layer& layer, bool anywhere) {
  for (const auto& [share, bar] : {std::pair(0.01, 4.0), std::pair(0.1, 1.5)}) {
    const UpdateTimes t = time_update(layer, share, anywhere);
    report.at_least(fmt::format("update of {:.0f} % {}, against a fresh encode", 100 * share, name),
                    t.ratio, bar);
    report.tell("  buckets changed", t.changed_buckets);
  }
}

// Bytes of a line of /proc/self/status.
double status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return std::stod(line.substr(key.size() + 1)) * 1024;
  throw std::runtime_error("no " + key + " in /proc/self/status");
}

// Peak over the input while words and values of 100 million non-zeros are made for the host.
void peak_memory(Report& report) {
  const Layer layer{32768, 0.0931323, 1, {1, 64, 2, 1}, 32};
  Workload w;
  w.matrix = sparse::random_pattern(layer.side, layer.side, {}, layer.density, kSeed);
  w.grid.size = {1, layer.side, layer.side, 64};
  w.grid.splits = layer.splits;
  w.grid.word_bits = layer.word_bits;
  set_capacities(w.grid, w.matrix.blocks());
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts again here
  const double before = status_bytes("VmRSS:");
  const auto encode = [&w] {
    const auto encoded = partitioner::encode(w.matrix, w.grid);
    partitioner::to_bucket_order<float, float>(*encoded.buckets, w.matrix.values);
  };
  const double time = seconds(encode, Clock::OwnThread);
  report.at_most(
      fmt::format("encode {:.1f} million on the host, GiB over the input", w.blocks() / kMillion),
      (status_bytes("VmHWM:") - before) / (1 << 30), 2.5);
  report.tell("  seconds, into new storage", time);
}

struct Measure {
  std::string name;
  std::function<void(Report&)> run;
};

std::vector<Measure> measures() {
  const Layer dense, thin{.density = 0.01}, blocks{.block = 16, .splits = {1, 32, 2, 23}};
  std::vector<Measure> list;
  for (const auto& [name, layer, bar] : {std::tuple("block 1, density 0.1", dense, 60.0),
                                         std::tuple("block 1, density 0.01", thin, 60.0),
                                         std::tuple("block 16, density 0.1", blocks, 12.0)}) {
    list.push_back({"encode", [=](Report& r) { encode_rate(r, name, layer, bar); }});
    list.push_back({"threads", [=](Report& r) { thread_ratio(r, name, layer); }});
  }
  list.push_back(
      {"encode", [=](Report& r) { encode_rate_half(r, "block 16, density 0.1", blocks, 12); }});
  list.push_back({"splits", column_splits});
  for (const auto& [name, layer, anywhere] : {std::tuple("block 16, anywhere", blocks, true),
                                              std::tuple("block 1, in some rows", dense, false),
                                              std::tuple("block 1, anywhere", dense, true)})
    list.push_back({"update", [=](Report& r) { update_ratio(r, name, layer, anywhere); }});
  list.push_back({"decode", [=](Report& r) { decode_ratio(r, "block 1, density 0.1", dense); }});
  list.push_back({"decode", [=](Report& r) { decode_ratio(r, "block 16, density 0.1", blocks); }});
  list.push_back({"memory", peak_memory});
  return list;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Rates of the partitioner on this computer"};
  bool bars = false;
  std::string only;
  app.add_flag("--bars", bars, "Exit 1 when a figure is short of its bar");
  app.add_option("--only", only, "Measures with this in their name");
  CLI11_PARSE(app, argc, argv);
  Report report;
  for (const Measure& measure : measures())
    if (measure.name.find(only) != std::string::npos) measure.run(report);
  return bars && !report.all_met() ? 1 : 0;
}
