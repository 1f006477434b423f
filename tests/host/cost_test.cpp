#include "tessera/host/cost.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/host/internal/rate_figures.hpp"
#include "tessera/tests/support/process.hpp"

namespace tessera::host {
namespace {

const host::HostCpu kCpu{
    .cores = 2, .l1_data = Bytes(32 << 10), .l2 = Bytes(1 << 20), .l3 = Bytes(32 << 20)};

// Figures that are easy to multiply by hand.
HostRates plain_rates() {
  HostRates rates = default_host_rates();
  rates.memory_bytes_per_second = 1e9;
  rates.copy_seconds = 1e-9;
  rates.float_result_seconds = 2e-9;
  rates.half_result_seconds = 3e-9;
  rates.kernels.clear();
  for (const Pass pass : {Pass::Fwd, Pass::GradW})
    for (const std::int64_t block : {1, 4, 16})
      for (const std::int64_t z : {1, 64})
        for (const double row : {1.0, 100.0})
          rates.kernels.push_back(
              {pass, DataType::Float, block, z, row, 1e9 * double(block * z) * row});
  rates.dense = {{Pass::Fwd, DataType::Float, 1, 1e9},
                 {Pass::Fwd, DataType::Float, 100, 1e11},
                 {Pass::GradW, DataType::Float, 1, 5e9}};
  return rates;
}

TEST(HostRates, AreExactWhereTheyWereMeasured) {
  const HostRates rates = plain_rates();
  for (const KernelRate& k : rates.kernels) EXPECT_DOUBLE_EQ(rates.kernel_flops(k), k.flops);
}

TEST(HostRates, LieOnALineOfLogarithmsBetweenAndStopBeyond) {
  const HostRates rates = plain_rates();
  const auto flops = [&](std::int64_t block, std::int64_t z, double row) {
    return rates.kernel_flops({Pass::Fwd, DataType::Float, block, z, row, 0});
  };
  EXPECT_DOUBLE_EQ(flops(1, 1, 10), 1e10);
  EXPECT_NEAR(flops(1, 8, 10), 8e10, 1e3);
  EXPECT_DOUBLE_EQ(flops(1, 1, 0.01), 1e9);
  EXPECT_DOUBLE_EQ(flops(1, 4096, 1e6), 64e11);
  EXPECT_NEAR(rates.dense_flops({Pass::Fwd, DataType::Float, 10, 0}), 1e10, 1e2);
}

TEST(HostRates, OfABlockThatWasNotMeasuredAreThoseOfTheLargestInside) {
  const HostRates rates = plain_rates();
  const auto flops = [&](std::int64_t block) {
    return rates.kernel_flops({Pass::Fwd, DataType::Float, block, 1, 1, 0});
  };
  EXPECT_DOUBLE_EQ(flops(8), flops(4));
  EXPECT_DOUBLE_EQ(flops(40), flops(16));
  EXPECT_DOUBLE_EQ(flops(2), flops(4));  // not that of elements: blocks have a kernel of their own
}

// 1000 x 1000 elements at a tenth, z 1: one panel, nothing packed, nothing streamed.
TEST(HostForecast, IsKernelsAndResultsForABatchOfOne) {
  const HostRates rates = plain_rates();
  const HostProblem problem{{1, 1000, 1000, 1}, {1, 1}, 100'000, DataType::Float};
  const HostForecast f = forecast_sparse(Pass::Fwd, problem, {kCpu, 1, rates});
  const double in_cell =
      100.0 * double(cells_of(Pass::Fwd, problem, kCpu, 2).y) / 1000;  // values of a row
  EXPECT_NEAR(f.kernel_seconds, 2e5 / (1e9 * std::min(in_cell, 100.0)), 1e-9);
  EXPECT_EQ(f.copy_seconds, 0);
  EXPECT_EQ(f.stream_seconds, 0);
  EXPECT_DOUBLE_EQ(f.result_seconds, 2e-6);
  EXPECT_DOUBLE_EQ(f.seconds(), f.kernel_seconds + f.result_seconds);
}

TEST(HostForecast, ContainsTheCopyOfAnOperandIntoPanels) {
  HostRates rates = plain_rates();
  const HostProblem problem{{1, 1000, 2000, 256}, {1, 1}, 100'000, DataType::Float};
  const std::array copied_rows{std::pair{Pass::Fwd, 2000}, std::pair{Pass::GradA, 1000}};
  for (const auto& [pass, rows] : copied_rows) {
    ASSERT_TRUE(cells_of(pass, problem, kCpu, 2).pack);
    const HostForecast f = forecast_sparse(pass, problem, {kCpu, 1, rates});
    EXPECT_DOUBLE_EQ(f.copy_seconds, rows * 256 * 1e-9);
    EXPECT_DOUBLE_EQ(f.seconds(), f.copy_seconds + f.kernel_seconds + f.result_seconds);
    EXPECT_DOUBLE_EQ((3.0 * f).copy_seconds, 3 * f.copy_seconds);
    EXPECT_DOUBLE_EQ((3.0 * f).seconds(), 3 * f.seconds());
    rates.copy_seconds *= 2;
    EXPECT_DOUBLE_EQ(forecast_sparse(pass, problem, {kCpu, 1, rates}).seconds() - f.seconds(),
                     f.copy_seconds);
    rates.copy_seconds /= 2;
  }
}

TEST(HostForecast, HalvesWithTwoThreadsAndNotBeyondTheCores) {
  const HostRates rates = plain_rates();
  const HostProblem problem{{1, 1000, 1000, 256}, {1, 1}, 100'000, DataType::Float};
  const auto seconds = [&](int threads) {
    return forecast_sparse(Pass::Fwd, problem, {kCpu, threads, rates}).seconds();
  };
  EXPECT_DOUBLE_EQ(seconds(2), seconds(1) / 2);
  EXPECT_DOUBLE_EQ(seconds(8), seconds(2));
}

TEST(HostForecast, TakesAsLongAsReadingWeightsThatNoCacheHolds) {
  const HostRates rates = plain_rates();
  const HostProblem large{{1, 16384, 16384, 1}, {16, 16}, 1 << 19, DataType::Float};
  const HostForecast f = forecast_sparse(Pass::Fwd, large, {kCpu, 1, rates});
  EXPECT_DOUBLE_EQ(f.stream_seconds, double(1 << 19) * (256 * 4 + 2) / 1e9);
  EXPECT_GT(f.stream_seconds, f.kernel_seconds);
  EXPECT_DOUBLE_EQ(f.seconds(), f.copy_seconds + f.stream_seconds + f.result_seconds);
}

TEST(HostForecast, OfOneColumnOfBlocksReadsValuesOnceAtTheRateOfTheSecondCache) {
  HostRates rates = plain_rates();
  rates.l2_bytes_per_second = 5e9;
  const HostProblem problem{{1, 512, 1024, 1}, {8, 16}, 1000, DataType::Float};
  const HostSetting setting{kCpu, 1, rates};
  EXPECT_DOUBLE_EQ(forecast_sparse(Pass::Fwd, problem, setting).kernel_seconds,
                   1000 * 8 * 16 * 4 / 5e9);
  HostProblem others = problem;
  others.block = {8, 5};  // not in lanes
  const double cells = forecast_sparse(Pass::Fwd, others, setting).kernel_seconds;
  EXPECT_NE(cells, 1000 * 8 * 5 * 4 / 5e9);
  EXPECT_NE(forecast_sparse(Pass::GradA, problem, setting).kernel_seconds, 1000 * 8 * 16 * 4 / 5e9);
}

TEST(HostForecast, OfGradAIsThatOfTheTransposedLayer) {
  const HostRates rates = plain_rates();
  const HostProblem problem{{1, 512, 2048, 64}, {4, 16}, 3000, DataType::Float};
  const HostProblem transposed{{1, 2048, 512, 64}, {16, 4}, 3000, DataType::Float};
  const HostSetting setting{kCpu, 1, rates};
  EXPECT_DOUBLE_EQ(forecast_sparse(Pass::GradA, problem, setting).seconds(),
                   forecast_sparse(Pass::Fwd, transposed, setting).seconds());
}

TEST(HostForecast, OfADenseLayerCountsItsZeros) {
  const HostRates rates = plain_rates();
  const HostProblem problem{{1, 100, 200, 1}, {1, 1}, 1, DataType::Float};
  EXPECT_DOUBLE_EQ(forecast_dense(Pass::Fwd, problem, {kCpu, 1, rates}).seconds(), 4e4 / 1e9);
  EXPECT_DOUBLE_EQ(forecast_dense(Pass::GradW, problem, {kCpu, 1, rates}).seconds(), 4e4 / 5e9);
}

TEST(HostRatesFile, ReadsWhatItWrote) {
  const HostRates& rates = default_host_rates();
  const std::string text = to_json(rates);
  EXPECT_EQ(to_json(host_rates_from_json(text, "text")), text);
  EXPECT_GE(rates.kernels.size(), 100u);
  for (const DataType type : {DataType::Float, DataType::Half})
    for (const Pass pass : {Pass::Fwd, Pass::GradW})
      for (const std::int64_t block : {1, 4, 8, 16})
        EXPECT_GT(rates.kernel_flops({pass, type, block, 64, 8, 0}), 1e8);
}

TEST(HostRatesFile, TheDefaultHasTheSamePanelsForEveryBlockAndNoRateAboveThePeak) {
  const HostRates& rates = default_host_rates();
  std::map<std::tuple<Pass, DataType, std::int64_t, std::int64_t>, int> counts;
  for (const KernelRate& k : rates.kernels) {
    ++counts[{k.pass, k.type, k.block, k.z}];
    EXPECT_LT(k.flops, rates.peak_flops);
  }
  for (const DenseRate& d : rates.dense) EXPECT_LT(d.flops, rates.peak_flops);
  for (const auto& [key, densities] : counts) EXPECT_EQ(densities, 3) << std::get<3>(key);
  // Fwd has panels of 1, 8 and 64 columns, GradW of 256 too, with blocks of four sizes in two
  // types.
  EXPECT_EQ(counts.size(), std::size_t{(3 + 4) * 4 * 2});
}

TEST(HostRatesFile, RefusesDamageAndOtherVersionsAndNamesTheFile) {
  const std::string text = to_json(default_host_rates());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string copy = text;
    copy.replace(copy.find(from), from.size(), to);
    return copy;
  };
  for (const std::string& bad :
       {std::string(), std::string("{}"), text.substr(0, text.size() / 2),
        changed("\"version\": 1", "\"version\": 2"), changed("{", "{\"more\": 1, "),
        changed("\"Fwd\"", "\"Forward\""), changed("\"peak_flops\": ", "\"peak_flops\": -")}) {
    try {
      host_rates_from_json(bad, "rates.json");
      ADD_FAILURE() << bad.substr(0, 80);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput);
      EXPECT_EQ(std::string(error.what()).rfind("rates.json: ", 0), 0u) << error.what();
    }
  }
}

TEST(HostRatesFile, IsTheDefaultWithoutAFileAndSaysSo) {
  const test::TemporaryFolder folder;
  const HostRates& usual = default_host_rates();
  for (const std::string& path : {std::string(), folder / "none.json"}) {
    const FoundRates found = find_host_rates(path, measure_host_rates, usual.cpu_model);
    EXPECT_EQ(found.rates, default_host_rates());
    EXPECT_NE(found.note.find("tessera machine calibrate"), std::string::npos) << found.note;
    EXPECT_EQ(found.origin, RatesOrigin::Default);
  }
}

TEST(HostRatesFile, IsMeasuredAtTheFirstForecastOnAnUnknownProcessor) {
  const test::TemporaryFolder folder;
  HostRates own = default_host_rates();
  own.cpu_model = "abacus";
  own.dense_kernel = dense_kernel_name();
  const std::string path = folder / "cache/rates.json";
  const FoundRates found = find_host_rates(path, [&] { return own; }, "abacus");
  EXPECT_EQ(found.origin, RatesOrigin::Measured);
  EXPECT_NE(found.note.find("measured now"), std::string::npos) << found.note;
  const auto never = []() -> HostRates { throw Error(ErrorCode::Internal, "measured twice"); };
  EXPECT_EQ(find_host_rates(path, never, "abacus").rates, own);
}

TEST(ReadHostCpu, CountsTheCoresOfThisComputer) {
  const auto cores = std::int64_t(std::thread::hardware_concurrency());  // 0: not known
  EXPECT_EQ(read_host_cpu().cores, cores > 0 ? cores : 1);
}

// Linux lists the caches of a core in folders; elsewhere some sizes are guesses.
TEST(ReadHostCpu, HasTheCachesThatTheSystemLists) {
  const std::filesystem::path caches = "/sys/devices/system/cpu/cpu0/cache";
  const HostCpu cpu = read_host_cpu();
  for (const Bytes size : {cpu.l1_data, cpu.l2, cpu.l3}) EXPECT_GT(size, Bytes());
  if (!std::filesystem::exists(caches)) {
#ifdef _SC_LEVEL1_DCACHE_SIZE
    const auto expect = [](Bytes found, long size) {
      if (size > 0) {
        EXPECT_EQ(found, Bytes(size));
      }
    };
    expect(cpu.l1_data, sysconf(_SC_LEVEL1_DCACHE_SIZE));
    expect(cpu.l2, sysconf(_SC_LEVEL2_CACHE_SIZE));
#endif
    return;
  }
  for (const auto& cache : std::filesystem::directory_iterator(caches)) {
    if (!std::filesystem::exists(cache.path() / "size")) continue;
    const auto line = [&](const char* name) { return test::read_file(cache.path() / name); };
    if (line("type") == "Instruction\n" || std::stoi(line("level")) > 3) continue;
    const std::string size = line("size");
    const std::int64_t unit = size.find('M') != std::string::npos ? 1 << 20 : 1 << 10;
    const Bytes found[] = {cpu.l1_data, cpu.l2, cpu.l3};
    EXPECT_EQ(found[std::stoi(line("level")) - 1].value, std::stoll(size) * unit);
  }
}

// Another program slows every figure down in one of three rounds.
TEST(SettledRates, HaveTheBestOfEveryFigureInRoundsOfWhichTwoAgree) {
  int round = 0;
  const HostRates usual = default_host_rates();
  const auto rates = measure_settled_rates([&] {
    HostRates one = usual;
    int figure = 0;
    const auto slow = [&] { return (figure++ + round) % 3 == 0 ? 2.0 : 1.0; };
    internal::each_speed(one, [&](const char*, double& speed) { speed /= slow(); });
    internal::each_duration(one, [&](const char*, double& seconds) { seconds *= slow(); });
    for (KernelRate& k : one.kernels) k.flops /= slow();
    for (DenseRate& d : one.dense) d.flops /= slow();
    ++round;
    return one;
  });
  EXPECT_EQ(rates, usual);
  EXPECT_EQ(round, 3);
}

TEST(SettledRates, AreRefusedWithTheNameOfTheRateThatDoesNotSettle) {
  double factor = 1;
  const auto unstable = [&] {
    HostRates one = default_host_rates();
    one.dense[0].flops *= factor *= 2;
    return one;
  };
  try {
    measure_settled_rates(unstable, 4);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::CheckFailed);
    EXPECT_NE(std::string(error.what()).find("dense, batch "), std::string::npos) << error.what();
  }
}

TEST(HostRatesFile, IsNotWrittenIfTheRatesDoNotSettle) {
  const test::TemporaryFolder folder;
  double factor = 1;
  const auto unstable = [&] {
    HostRates one = default_host_rates();
    one.dense[0].flops *= factor *= 2;
    return one;
  };
  const std::string path = folder / "rates.json";
  const FoundRates found = find_host_rates(path, unstable, "abacus");
  EXPECT_EQ(found.origin, RatesOrigin::Measured);
  EXPECT_NEAR(found.rates.dense[0].flops / default_host_rates().dense[0].flops, factor,
              1e-3 * factor);
  EXPECT_NE(found.note.find("not stored: the rate of "), std::string::npos) << found.note;
  EXPECT_FALSE(std::filesystem::exists(path));
}

// A session of Python asks many questions: they have one answer, and only the first one waits.
TEST(HostRatesFile, IsReplacedByRatesOfThisProcessUntilThereIsAFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "rates.json";
  int measured = 0;
  const auto unstable = [&] {
    HostRates one = default_host_rates();
    one.dense[0].flops /= 3 << ++measured;
    return one;
  };
  const FoundRates first = find_host_rates(path, unstable, "abacus");
  EXPECT_EQ(measured, 3);
  const FoundRates second = find_host_rates(path, unstable, "abacus");
  EXPECT_EQ(measured, 3);
  EXPECT_EQ(second.rates, first.rates);
  EXPECT_EQ(second.note, first.note);
  EXPECT_EQ(second.origin, RatesOrigin::Measured);
  HostRates own = default_host_rates();
  own.cpu_model = "abacus";
  own.dense_kernel = dense_kernel_name();
  folder.write("rates.json", to_json(own));
  EXPECT_EQ(find_host_rates(path, unstable, "abacus").rates, own);
}

TEST(HostRatesFile, HasTheRatesThatTheCallerWhoMeasuredThemHad) {
  const test::TemporaryFolder folder;
  HostRates own = default_host_rates();
  own.cpu_model = "abacus";
  own.dense_kernel = dense_kernel_name();
  own.dense[0].flops *= 1.000012345;  // the file has four digits of it
  const std::string path = folder / "rates.json";
  const FoundRates measured = find_host_rates(path, [&] { return own; }, "abacus");
  const FoundRates read = find_host_rates(path, measure_host_rates, "abacus");
  EXPECT_EQ(read.origin, RatesOrigin::File);
  EXPECT_EQ(read.rates, measured.rates);
}

TEST(HostRatesFile, IsMeasuredAnewWhenDamagedOrOfAnotherProcessorAndKeptThen) {
  const test::TemporaryFolder folder;
  HostRates other = default_host_rates();
  other.cpu_model = "abacus";
  HostRates own = default_host_rates();
  own.cpu_model = host::host_cpu_model();
  own.dense_kernel = dense_kernel_name();
  for (const std::string& text : {std::string("{"), to_json(other)}) {
    const std::string path = folder.write("rates.json", text);
    const FoundRates found = find_host_rates(path, [&] { return own; });
    EXPECT_NE(found.note.find(path), std::string::npos) << found.note;
    EXPECT_NE(found.note.find("measured again"), std::string::npos) << found.note;
    EXPECT_EQ(found.rates, own);
    EXPECT_EQ(found.origin, RatesOrigin::Measured);
    EXPECT_EQ(find_host_rates(path).note, "");
    EXPECT_EQ(find_host_rates(path).origin, RatesOrigin::File);
    EXPECT_EQ(test::read_file(path), to_json(own));
  }
}

TEST(HostRatesFile, IsMeasuredAgainWithoutTheRatesOfOnePassAndType) {
  const test::TemporaryFolder folder;
  HostRates own = default_host_rates();
  own.cpu_model = host::host_cpu_model();
  own.dense_kernel = dense_kernel_name();
  const auto is_missing = [](const auto& rate) {
    return rate.pass == Pass::GradW && rate.type == DataType::Half;
  };
  HostRates kernels = own, dense = own;
  std::erase_if(kernels.kernels, is_missing);
  std::erase_if(dense.dense, is_missing);
  for (const HostRates& rates : {kernels, dense}) {
    const std::string path = folder.write("rates.json", to_json(rates));
    EXPECT_EQ(find_host_rates(path, [&] { return own; }).rates, own);
  }
}

TEST(HostRatesFile, IsLeftWithANoteIfItCannotBeReplaced) {
  const FoundRates found = find_host_rates("/dev/full", default_host_rates);
  EXPECT_EQ(found.origin, RatesOrigin::Measured);
  EXPECT_NE(found.note.find("not stored: /dev/full: cannot be written"), std::string::npos)
      << found.note;
}

}  // namespace
}  // namespace tessera::host
