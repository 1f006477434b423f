// Trains on Fashion-MNIST and compares accuracy and speed with bars: one line for each, exit 1 if
// one is missed. --case NAME --seed N trains one case of the accuracy bars and prints its accuracy.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/bench/report.hpp"
#include "tessera/bench/train/accuracy.hpp"
#include "tessera/bench/train/speed.hpp"
#include "tessera/bench/train/update.hpp"

namespace {

using namespace tessera;

int run_case(const std::string& name, std::uint64_t seed, const train::DataSet& data,
             Executor& executor) {
  std::string names;
  for (const bench::TrainCase& one : bench::train_cases()) {
    names += names.empty() ? one.name : ", " + one.name;
    if (one.name != name) continue;
    fmt::print("{}, seed {}: {:.2f}\n", name, seed,
               bench::test_accuracy(one, data, seed, executor));
    return 0;
  }
  throw Error(ErrorCode::InvalidArgument, fmt::format("no case {}; there are: {}", name, names));
}

int run_bars(const std::string& bars, const train::DataSet& data, Executor& executor) {
  bench::Report report;
  const bool all = bars == "all";
  if (all || bars == "accuracy") bench::accuracy_bars(data, executor, report);
  if (all || bars == "update") bench::update_bars(report);
  for (const bench::SpeedPart& part : bench::speed_parts())
    if (all || bars == "speed" || bars == part.name) part.run(data, report);
  return report.all_met() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares training on Fashion-MNIST with bars of accuracy and speed.",
               "train_bench");
  std::string bars = "all", name, folder = "/usr/share/datasets/fashion-mnist";
  std::uint64_t seed = 1;
  int threads = 0;
  std::vector<std::string> names = {"accuracy", "speed", "update", "all"};
  for (const bench::SpeedPart& part : bench::speed_parts()) names.emplace_back(part.name);
  app.add_option("--bars", bars, "accuracy, speed or a part of it, update, or all")
      ->check(CLI::IsMember(names))
      ->expected(0, 1);
  app.add_option("--case", name, "trains one case of the accuracy bars");
  app.add_option("--seed", seed, "of that case");
  app.add_option("--threads", threads, "for the accuracy bars; 0: one for each core");
  app.add_option("--data", folder, "folder of the data set");
  CLI11_PARSE(app, argc, argv);
  try {
    const train::DataSet data = train::read_fashion_mnist(folder);
    const auto executor = make_executor(threads);
    return name.empty() ? run_bars(bars, data, *executor) : run_case(name, seed, data, *executor);
  } catch (const std::exception& error) {
    fmt::print(stderr, "train_bench: {}\n", error.what());
    return 2;
  }
}
