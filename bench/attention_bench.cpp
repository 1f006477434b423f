// Measures one head of block-sparse attention on this computer beside dense attention by the
// fastest libraries (bench/attention/dense_attention.py) and prints a table in Markdown. The other
// program runs before and after ours, and its faster run counts. --bars exits with 1 if a bar is
// short.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/timing.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/softmax.hpp"
#include "tessera/sparse/block_mask.hpp"

namespace tessera::bench {
namespace {

struct HeadSize {
  std::int64_t sequence, head;
  BlockShape block;
  double density;
};

// Seconds of the parts of a head.
struct HeadTimes {
  std::string by;
  double scores = 0, softmax = 0, output = 0, whole = 0;

  double sum() const { return scores + softmax + output; }
};

// Returns the times of the libraries; none if the program cannot run.
HeadTimes dense_times(const HeadSize& size, const std::string& python, int repeats) {
  const std::string command =
      fmt::format("{} {}/bench/attention/dense_attention.py {} {} {}", python, TESSERA_SOURCE_DIR,
                  size.sequence, size.head, repeats);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  char by[64] = "";
  HeadTimes t;
  if (pipe == nullptr || std::fscanf(pipe.get(), "%63s %lf %lf %lf %lf", by, &t.scores, &t.softmax,
                                     &t.output, &t.whole) != 5)
    return {};
  t.by = by;
  return t;
}

// A head with a random mask, whose result is compared with double precision before it is timed.
class SparseHead {
 public:
  explicit SparseHead(const HeadSize& size)
      : size_(size),
        executor_(sequential()),
        mask_(sparse::random_mask(size.sequence, size.sequence, size.block, size.density, 1)),
        q_(random_matrix<float>(size.sequence, size.head, 2)),
        k_(random_matrix<float>(size.sequence, size.head, 3)),
        v_(random_matrix<float>(size.sequence, size.head, 4)),
        o_(size.sequence, size.head),
        p_(mask_.values.size()),
        layer_({.size = {1, size.sequence, size.sequence, size.head},
                .block = size.block,
                .density = size.density,
                .data_type = DataType::Float,
                .grad_w = true},
               host::read_host_cpu(), *executor_) {
    layer_.set_weights(mask_);
  }

  void scores() { layer_.grad_w<float>(view(q_), view(k_), std::span<float>(p_)); }
  void softmax() {
    host::softmax_rows(mask_, p_, p_, *executor_, 1 / std::sqrt(float(size_.head)));
  }
  void output() {
    layer_.set_values(p_);
    layer_.forward<float>(view(v_), o_.view());
  }

  // Returns the largest difference of some rows from double precision.
  double worst() {
    scores();
    softmax();
    output();
    double worst = 0;
    for (std::int64_t r = 0; r < size_.sequence; r += size_.sequence / 7)
      worst = std::max(worst, worst_of_row(r));
    return worst;
  }

  HeadTimes times(int repeats) {
    const std::vector<double> t =
        medians({[this] { scores(); }, [this] { softmax(); }, [this] { output(); },
                 [this] {
                   scores();
                   softmax();
                   output();
                 }},
                repeats);
    return {"tessera", t[0], t[1], t[2], t[3]};
  }

 private:
  static MatrixView<const float> view(const Matrix<float>& m) { return m.view(); }

  double worst_of_row(std::int64_t r) const {
    const std::int64_t block_row = r / size_.block.rows;
    std::vector<double> out(static_cast<std::size_t>(size_.head));
    double sum = 0;
    for (auto i = mask_.row_begin[std::size_t(block_row)];
         i < mask_.row_begin[std::size_t(block_row) + 1]; ++i)
      for (std::int64_t c = mask_.col[std::size_t(i)] * size_.block.cols, n = 0;
           n < size_.block.cols; ++n, ++c) {
        double s = 0;
        for (std::int64_t d = 0; d < size_.head; ++d) s += double(q_(r, d)) * double(k_(c, d));
        const double p = std::exp(s / std::sqrt(double(size_.head)));
        sum += p;
        for (std::int64_t d = 0; d < size_.head; ++d) out[std::size_t(d)] += p * double(v_(c, d));
      }
    double worst = 0;
    for (std::int64_t d = 0; d < size_.head; ++d)
      worst =
          std::max(worst, std::abs(double(o_(r, d)) - (sum > 0 ? out[std::size_t(d)] / sum : 0.0)));
    return worst;
  }

  HeadSize size_;
  std::unique_ptr<Executor> executor_;
  sparse::Csr<float> mask_;
  Matrix<float> q_, k_, v_, o_;
  std::vector<float> p_;
  host::HostLayer layer_;
};

void print_row(const HeadSize& size, const HeadTimes& t) {
  fmt::print("| {} | {} | {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", size.sequence,
             size.head, size.block.rows, size.density, t.by, 1e3 * t.scores, 1e3 * t.softmax,
             1e3 * t.output, 1e3 * t.sum());
  std::fflush(stdout);
}

int run(const std::string& python, int repeats, bool bars) {
  fmt::print("{}, one thread, float, forward; ms, medians of processor time.\n\n",
             host::host_cpu_model());
  fmt::print(
      "| sequence | head | block | density | by | scores | softmax | output | all |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  Report report;
  std::vector<std::pair<std::string, double>> ratios;
  for (const HeadSize& size :
       {HeadSize{1024, 64, {16, 16}, 0.1}, HeadSize{4096, 64, {16, 16}, 0.1},
        HeadSize{4096, 64, {16, 16}, 0.05}, HeadSize{4096, 64, {8, 8}, 0.1}}) {
    SparseHead head(size);
    const double worst = head.worst();
    if (!(worst < 1e-4)) {
      fmt::print(stderr, "attention_bench: the result differs by {} from double precision\n",
                 worst);
      return 2;
    }
    const HeadTimes before = python.empty() ? HeadTimes() : dense_times(size, python, repeats);
    const HeadTimes own = head.times(repeats);
    const HeadTimes after = python.empty() ? HeadTimes() : dense_times(size, python, repeats);
    const HeadTimes& dense = before.sum() < after.sum() ? before : after;
    if (dense.by.empty())
      fmt::print(stderr, "attention_bench: {} has no torch; dense attention is left out\n", python);
    else
      print_row(size, dense);
    print_row(size, own);
    const double best = dense.whole > 0 ? std::min(dense.whole, dense.sum()) : dense.sum();
    ratios.emplace_back(fmt::format("dense by sparse, {} x {}, block {}, density {}", size.sequence,
                                    size.head, size.block.rows, size.density),
                        best / own.whole);
  }
  fmt::print("\n");
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const bool has_bar = i == 1;  // sequence 4096, block 16, density 0.1
    if (has_bar)
      report.at_least(ratios[i].first, ratios[i].second, 4);
    else
      report.tell(ratios[i].first, ratios[i].second);
  }
  return bars && !report.all_met() ? 1 : 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  CLI::App app("Block-sparse attention on this computer beside dense attention");
  bool bars = false;
  int repeats = 11;
  std::string python = "/usr/bin/python3";
  app.add_flag("--bars", bars, "exit with 1 when a bar is short");
  app.add_option("--repeats", repeats, "runs of each part")->check(CLI::Range(3, 1001));
  app.add_option("--python", python, "a Python that has torch; empty: leave it out");
  CLI11_PARSE(app, argc, argv);
  return tessera::bench::run(python, repeats, bars);
}
