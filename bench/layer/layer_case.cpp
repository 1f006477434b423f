#include "tessera/bench/layer/layer_case.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tessera/base/pass.hpp"
#include "tessera/bench/layer/own_pass.hpp"
#include "tessera/host/float_peak.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {
namespace {

double now(int threads) {
  timespec t;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// The peak of this computer, measured when the first case needs it.
const host::HostRates& rates() {
  static const host::HostRates measured = host::measure_host_rates();
  return measured;
}

template <class T>
Measured measure_as(const LayerCase& c, const sparse::Csr<float>& weights) {
  OwnPass<T> own(c, weights, /*batch_first=*/false, {.dense = c.dense, .rates = rates()});
  std::vector<double> kernels, copies;
  Measured measured;
  measured.forecast_seconds = own.layer().forecast(c.pass).seconds();
  measured.peak = host::measure_float_peak().fused;
  const Seconds seconds = time_of(c.threads, 15, [&] {
    const host::HostTimes times = own.run();
    kernels.push_back(times.kernel_seconds / times.seconds / c.threads);
    copies.push_back(times.copy_seconds / times.seconds);
  });
  const auto median = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + std::ssize(v) / 2, v.end());
    return v[v.size() / 2];
  };
  measured.seconds = seconds.median;
  measured.least_seconds = seconds.least;
  measured.kernel_share = median(kernels);
  measured.copy_share = median(copies);
  measured.flops = 2.0 * double(weights.values.size()) * double(c.z);
  return measured;
}

template <class Number>
Number parse_number(const std::string& text, const char* what) {
  std::istringstream stream(text);
  Number number{};
  if (!(stream >> number) || !stream.eof() || number <= 0)
    throw std::invalid_argument(fmt::format("{} \"{}\"; give a number above 0", what, text));
  return number;
}

}  // namespace

std::string LayerCase::name() const {
  const std::string sides = shape().rows == shape().cols
                                ? std::to_string(block)
                                : fmt::format("{}x{}", shape().rows, shape().cols);
  return fmt::format("{}x{} z{} block {} density {} {} {}, {} thread{}", x, y, z, sides, density,
                     to_string(pass), type, threads, threads == 1 ? "" : "s");
}

Problem LayerCase::problem() const {
  return {.size = {1, x, y, z},
          .block = shape(),
          .density = density,
          .data_type = parse_data_type(type),
          .grad_a = pass == Pass::GradA,
          .grad_w = pass == Pass::GradW};
}

Pass parse_pass(const std::string& text) {
  if (text == "fwd") return Pass::Fwd;
  if (text == "grada") return Pass::GradA;
  if (text == "gradw") return Pass::GradW;
  throw std::invalid_argument("pass \"" + text + "\"; use fwd, grada or gradw");
}

LayerCase parse_case(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  if (parts.size() != 8)
    throw std::invalid_argument("a case is out,in,z,block,density,pass,type,threads, not \"" +
                                text + "\"");
  LayerCase c;
  c.x = parse_number<std::int64_t>(parts[0], "out");
  c.y = parse_number<std::int64_t>(parts[1], "in");
  c.z = parse_number<std::int64_t>(parts[2], "z");
  c.block = parse_number<std::int64_t>(parts[3], "block");
  c.density = parse_number<double>(parts[4], "density");
  c.pass = parse_pass(parts[5]);
  c.type = parts[6];
  parse_data_type(c.type);
  c.threads = parse_number<int>(parts[7], "threads");
  return c;
}

Seconds time_of(int threads, int samples, const std::function<void()>& run) {
  std::vector<double> seconds;
  run();
  const double begin = now(threads);
  while (std::ssize(seconds) < samples || now(threads) - begin < 0.3) {
    const double start = now(threads);
    run();
    seconds.push_back(now(threads) - start);
  }
  std::nth_element(seconds.begin(), seconds.begin() + std::ssize(seconds) / 2, seconds.end());
  return {seconds[seconds.size() / 2], *std::min_element(seconds.begin(), seconds.end())};
}

Measured measure(const LayerCase& c, const sparse::Csr<float>& weights) {
  return with_type(parse_data_type(c.type), [&]<class T>(T) { return measure_as<T>(c, weights); });
}

Measured measure(const LayerCase& c) {
  return measure(c, sparse::random_pattern(c.x, c.y, c.shape(), c.density, /*seed=*/7));
}

}  // namespace tessera::bench
