// Prints the bars of the storage formats, one line each. --bars exits with 1 if one is short.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>

#include "tessera/bench/formats/parts.hpp"

namespace tessera::bench {

double best_seconds(int times, const std::function<void()>& run) {
  double best = 1e300;
  for (int i = 0; i < times; ++i) {
    const std::clock_t begin = std::clock();
    run();
    best = std::min(best, double(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return best;
}

namespace {

double wall_seconds(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

double ratio_of_best(const std::function<void()>& a, const std::function<void()>& b) {
  double best_a = 1e300, best_b = 1e300;
  for (int i = 0; i < 25; ++i) {
    best_a = std::min(best_a, wall_seconds(a));
    best_b = std::min(best_b, wall_seconds(b));
  }
  return best_a / best_b;
}

}  // namespace tessera::bench

int main(int argc, char** argv) {
  using tessera::bench::Lines;
  CLI::App app("What the storage formats promise, measured on this computer");
  bool bars = false;
  std::string only, python = "python3";
  app.add_flag("--bars", bars, "exit with 1 when a bar is short");
  app.add_option("--only", only, "one of convert, access, operations, memory")
      ->check(CLI::IsMember({"convert", "access", "operations", "memory"}));
  app.add_option("--python", python, "a Python that has SciPy");
  CLI11_PARSE(app, argc, argv);

  Lines lines;
  const auto measure = [&](const std::string& part, const std::function<Lines()>& run) {
    if (!only.empty() && only != part) return;
    const Lines more = run();
    lines.insert(lines.end(), more.begin(), more.end());
  };
  measure("convert", [&] { return tessera::bench::conversion_lines(python); });
  measure("access", tessera::bench::access_lines);
  measure("operations", tessera::bench::operation_lines);
  measure("memory", tessera::bench::memory_lines);

  bool all_kept = true;
  for (const auto& line : lines) {
    const std::string verdict = line.bar.empty() ? "" : line.is_kept ? "ok" : "short";
    fmt::print("{:<44} {:<34} {:<16} {}\n", line.name, line.figure, line.bar, verdict);
    all_kept = all_kept && line.is_kept;
  }
  return bars && !all_kept ? 1 : 0;
}
