// Figures beside the results: the times of passes, the numbers of a file of rates, the peaks of
// this computer, and what options and figures are before anybody sets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/random_matrix.hpp"
#include "tessera/host/cost.hpp"
#include "tessera/host/float_peak.hpp"
#include "tessera/host/internal/rate_figures.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/host/prepared.hpp"
#include "tessera/host/sddmm.hpp"
#include "tessera/host/spmm.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tests/support/message_of.hpp"

namespace tessera::host {
namespace {

constexpr std::int64_t kRows = 96, kCols = 160;
constexpr int kThreads = 2;

// Runs a pass and expects times that fit each other and the time that the call took from outside.
template <class Run>
HostTimes expect_parts_of_the_call(const Run& run) {
  const auto start = std::chrono::steady_clock::now();
  const HostTimes times = run();
  const double outside =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GT(times.seconds, 0);
  EXPECT_LE(times.seconds, outside);
  EXPECT_GT(times.kernel_seconds, 0);
  EXPECT_LE(times.kernel_seconds, kThreads * times.seconds * (1 + 1e-9));
  EXPECT_LE(times.copy_seconds, times.seconds);
  return times;
}

template <class T>
void expect_times(BlockShape block, std::int64_t z, const HostOptions& options) {
  SCOPED_TRACE(testing::Message() << block.rows << "x" << block.cols << " " << sizeof(T)
                                  << " bytes, z " << z << ", dense " << int(options.dense)
                                  << (options.own_dense_kernel ? " with own kernel" : ""));
  static const HostCpu cpu = read_host_cpu();
  const auto executor = make_executor(kThreads);
  HostLayer layer({.size = {1, kRows, kCols, z},
                   .block = block,
                   .density = 0.3,
                   .data_type = data_type_of<T>(),
                   .grad_a = true,
                   .grad_w = true},
                  cpu, *executor, options);
  layer.set_weights(sparse::random_pattern(kRows, kCols, block, 0.3, /*seed=*/1));
  const Matrix<T> s = random_matrix<T>(kCols, z, 1), q_grad = random_matrix<T>(kRows, z, 2);
  Matrix<T> q(kRows, z), s_grad(kCols, z);
  std::vector<float> gradients(std::size_t(layer.values()));
  const HostTimes forward =
      expect_parts_of_the_call([&] { return layer.forward<T>(s.view(), q.view()); });
  expect_parts_of_the_call([&] { return layer.grad_a<T>(q_grad.view(), s_grad.view()); });
  const HostTimes gradient =
      expect_parts_of_the_call([&] { return layer.grad_w<T>(q_grad.view(), s.view(), gradients); });
  const bool converts = options.dense == DenseChoice::Always && !options.own_dense_kernel &&
                        sizeof(T) == 2 && dense_kernel_name() != "blocks of 16";
  if (converts) {
    EXPECT_GT(forward.copy_seconds, 0);
    EXPECT_GT(gradient.copy_seconds, 0);
  }
  // Rows of 200 numbers do not begin at cache lines.
  if (options.dense == DenseChoice::Never && z == 200) {
    EXPECT_GT(gradient.copy_seconds, 0);
  }
  const bool is_copied = options.dense == DenseChoice::Never && layer.cells(Pass::Fwd).pack;
  if (is_copied && !layer.is_packed(Pass::Fwd)) {
    EXPECT_GT(forward.copy_seconds, 0);
  }
}

TEST(HostTimes, OfEveryPassAndKernelArePartsOfTheCall) {
  for (const HostOptions& options :
       {HostOptions{}, HostOptions{.reads_rows = false}, HostOptions{.dense = DenseChoice::Always},
        HostOptions{.dense = DenseChoice::Always, .own_dense_kernel = true}})
    for (const BlockShape block : {BlockShape{1, 1}, BlockShape{4, 4}, BlockShape{16, 16}})
      for (const std::int64_t z : {1, 200}) {
        expect_times<float>(block, z, options);
        expect_times<Half>(block, z, options);
      }
}

// Four instructions of vectors of 64 bytes in each cycle of 8 GHz are out of reach, and a hundredth
// of what the slowest computers do is a mistake.
TEST(FloatPeak, IsWhatAComputerCanDo) {
  constexpr double kMost = 8e9 * 4 * 16 * 2, kLeast = 1e7;
  const FloatPeak peak = measure_float_peak();
  EXPECT_FALSE(peak.target.empty());
  for (const double flops : {peak.fused, peak.separate}) {
    EXPECT_GT(flops, kLeast);
    EXPECT_LT(flops, kMost);
  }
  EXPECT_GT(peak.fused, 0.5 * peak.separate);
  for (const std::int64_t bytes : {0, 16 << 10, 8 << 20}) {
    const double rate = measure_read_rate(Bytes(bytes));
    EXPECT_GT(rate, kLeast);
    EXPECT_LT(rate, 4 * kMost);
  }
}

using nlohmann::json;

// Every number of a file of rates is in its range, whose ends are legal.
TEST(HostRatesFile, TakesBothEndsOfItsRangesAndNothingBeyond) {
  const json whole = json::parse(to_json(default_host_rates()));
  const auto refuses = [&](const json& changed, const std::string& place) {
    EXPECT_THAT(test::message_of([&] { host_rates_from_json(changed.dump(), "f"); }),
                testing::HasSubstr(place))
        << place;
  };
  for (const auto& [key, value] : whole.items()) {
    json missing = whole;
    missing.erase(key);
    refuses(missing, key);
    if (!value.is_number_float()) continue;
    for (const double bad : {0.0, -1.0}) {
      json changed = whole;
      changed[key] = bad;
      refuses(changed, key);
    }
  }
  for (const char* const list : {"kernels", "dense"}) {
    const std::size_t items = whole[list][0].size();
    for (std::size_t item = 0; item < items; ++item) {
      json changed = whole;
      json& number = changed[list].back()[item];
      const bool is_count = number.is_number_integer();
      for (const json& bad : {json(0), json(-1), is_count ? json((1 << 30) + 1) : json("Bwd")}) {
        number = bad;
        refuses(changed, list);
      }
      if (!is_count) continue;
      for (const std::int64_t good : {1, 1 << 30}) {
        number = good;
        const HostRates rates = host_rates_from_json(changed.dump(), "f");
        EXPECT_EQ(json::parse(to_json(rates))[list], changed[list]) << item;
      }
    }
    json longer = whole;
    longer[list][0].push_back(1);
    refuses(longer, list);
    longer[list] = json::array();
    refuses(longer, list);
  }
}

// The headers name these, and callers who set one field rely on the others.
TEST(HostDefaults, AreThoseOfTheHeaders) {
  EXPECT_EQ(HostCpu(),
            (HostCpu{.cores = 1, .l1_data = {}, .l2 = {}, .l3 = {}, .vector = Bytes(64)}));
  EXPECT_EQ(HostCells(), (HostCells{.x = 1, .y = 1, .z = 1, .pack = false, .gather = false}));
  EXPECT_EQ(HostColumns(), (HostColumns{.width = 1, .stride = 1, .pack = false}));
  EXPECT_EQ(KernelRate(), (KernelRate{Pass::Fwd, DataType::Float, 1, 1, 0, 0}));
  EXPECT_EQ(DenseRate(), (DenseRate{Pass::Fwd, DataType::Float, 1, 0}));
  EXPECT_EQ(SpmmOptions<float>().alpha, 1);
  EXPECT_EQ(SpmmOptions<float>().beta, 0);
  EXPECT_EQ(SddmmOptions().alpha, 1);
  EXPECT_EQ(SddmmOptions().beta, 0);
  EXPECT_EQ(PreparedOptions().batch, 256);
  EXPECT_FALSE(PreparedOptions().transpose);
  EXPECT_TRUE(HostOptions().reads_rows);
  EXPECT_FALSE(HostOptions().own_dense_kernel);
  EXPECT_EQ(HostProblem().blocks, 0);
  const HostRates rates;
  const auto is_zero = [](const char* key, double figure) { EXPECT_EQ(figure, 0) << key; };
  internal::each_speed(rates, is_zero);
  internal::each_duration(rates, is_zero);
  const HostForecast forecast;
  for (const double seconds : {forecast.copy_seconds, forecast.kernel_seconds,
                               forecast.stream_seconds, forecast.result_seconds})
    EXPECT_EQ(seconds, 0);
  const HostTimes times;
  for (const double seconds : {times.seconds, times.copy_seconds, times.kernel_seconds})
    EXPECT_EQ(seconds, 0);
}

}  // namespace
}  // namespace tessera::host
