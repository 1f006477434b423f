// Measures products on the caller's arrays (host::spmm and its relatives) and with a prepared
// matrix, beside SciPy and Eigen, and prints tables in Markdown. --bars exits with 1 if one is
// short.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/spmm/case.hpp"
#include "tessera/bench/spmm/orders.hpp"
#include "tessera/host/cpu.hpp"

namespace tessera::bench {
namespace {

std::string times_of(double other, double own) {
  return other == 0 ? "" : fmt::format("{:.2f}", other / own);
}

void print_row(const SpmmCase& c, const SpmmTimes& t) {
  const double flops = 2.0 * double(c.matrix.values.size()) * double(c.z);
  fmt::print("| {} | {} | {} | {:.3g} | {:.1f} | {:.2f} | {:.2f} | {:.2f} | {} | {} |\n", c.side,
             c.matrix.block.rows, c.z, 1e3 * t.call, flops / t.call / 1e9, t.call_batch / t.call,
             t.call / t.prepared, t.prepared_batch / t.prepared, times_of(t.scipy, t.call),
             times_of(t.eigen, t.call));
  std::fflush(stdout);
}

struct Size {
  std::int64_t side;
  BlockShape block;
  std::int64_t z;
};

const std::vector<Size>& sizes() {
  static const std::vector<Size> all = {
      {64, {1, 1}, 64},      {64, {1, 1}, 256},    {256, {1, 1}, 256},    {1024, {1, 1}, 256},
      {4096, {1, 1}, 16},    {4096, {1, 1}, 256},  {8192, {1, 1}, 256},   {64, {16, 16}, 256},
      {256, {16, 16}, 256},  {1024, {4, 4}, 256},  {1024, {16, 16}, 256}, {4096, {4, 4}, 256},
      {4096, {16, 16}, 256}, {8192, {16, 16}, 256}};
  return all;
}

void print_others(SpmmCase& c, double call, int repeats) {
  const OtherTimes t = measure_others(c, repeats);
  fmt::print("\n| call, {} x {}, z {} | time, by that of compressed rows |\n| --- | --- |\n",
             c.side, c.side, c.z);
  fmt::print("| spmm of compressed columns | {:.2f} |\n", t.columns / call);
  fmt::print("| spmm of a list of places, rows ascending | {:.2f} |\n", t.sorted_places / call);
  fmt::print("| spmm of a list of places in any order | {:.2f} |\n", t.places / call);
  fmt::print("| sddmm at the same places | {:.2f} |\n\n", t.sampled / call);
}

template <class T>
void print_orders(const char* type, double density, int repeats) {
  constexpr std::int64_t kBatch = 256;
  for (const std::int64_t block : {1, 4, 16})
    for (const std::int64_t side : {64, 256, 1024, 4096}) {
      const OrderTimes t = measure_orders<T>(side, block, density, kBatch, repeats);
      fmt::print("| {} | {} | {} | {:.3g} | {:.2f} | {:.2f} |\n", type, side, block, 1e3 * t.call,
                 t.call_batch / t.call, t.prepared_batch / t.prepared);
      std::fflush(stdout);
    }
}

void print_bars(const SpmmTimes& t, Report& report) {
  if (t.scipy > 0) report.at_least("SciPy by a call, 4096 x 4096, z 256", t.scipy / t.call, 3);
  if (t.eigen > 0) report.at_least("Eigen by a call", t.eigen / t.call, 1.5);
  report.at_most("a call with [batch][features]", t.call_batch / t.call, 1.3);
  report.at_most("prepared with [batch][features]", t.prepared_batch / t.prepared, 1.3);
}

int run(const std::string& python, int repeats, bool bars) {
  constexpr double kDensity = 0.05;
  fmt::print("{}, one thread, density {}, float; times are medians of processor time.\n\n",
             host::host_cpu_model(), kDensity);
  fmt::print(
      "| side | block | z | ms a call | GFLOP/s | [batch][features] by [features][batch] | call by "
      "prepared | the same for prepared | SciPy by call | Eigen by call |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  Report report;
  SpmmTimes measured;  // of the size that has bars
  for (const Size& size : sizes()) {
    SpmmCase c(size.side, size.block, kDensity, size.z);
    const SpmmTimes t = measure(c, c.matrix.block.is_element() ? python : "", repeats);
    print_row(c, t);
    if (size.side == 4096 && size.block.is_element() && size.z == 256) measured = t;
  }
  fmt::print(
      "\n| type, z 256 | side | block | ms a call | [batch][features] by [features][batch] | the "
      "same "
      "for prepared |\n| --- | --- | --- | --- | --- | --- |\n");
  print_orders<Half>("half", kDensity, repeats);
  print_orders<BFloat16>("bfloat16", kDensity, repeats);
  SpmmCase c(4096, {1, 1}, kDensity, 256);
  print_others(c, measured.call, repeats);
  print_bars(measured, report);
  const VectorTimes vector = measure_vector(repeats);
  report.at_least("spmv of 107 MB, by the time of reading them", vector.reading / vector.product,
                  0.8);
  return bars && !report.all_met() ? 1 : 0;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  CLI::App app("Products with a matrix in the caller's memory, beside other libraries");
  bool bars = false;
  int repeats = 21;
  std::string python = "/usr/bin/python3";
  app.add_flag("--bars", bars, "exit with 1 when a bar is short");
  app.add_option("--repeats", repeats, "runs of each product")->check(CLI::Range(3, 1001));
  app.add_option("--python", python, "a Python that has SciPy; empty: leave SciPy out");
  CLI11_PARSE(app, argc, argv);
  return tessera::bench::run(python, repeats, bars);
}
