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
#include "tessera/base/random_matrix.hpp"
#include "tessera/host/float_peak.hpp"
#include "tessera/host/layer.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/verify/verify.hpp"

namespace tessera::bench {
namespace {

double now(int threads) {
  timespec t;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

void require(const verify::Verdict& verdict, const LayerCase& c) {
  if (!verdict.ok()) throw std::runtime_error(c.name() + ": wrong result, " + to_string(verdict));
}

// GradW in panels adds one partial sum for each panel to a row.
verify::Rounding rounding_of(const LayerCase& c) {
  return {parse_data_type(c.type), DataType::Float, 1 + c.z / 64 + c.y / 16};
}

// The peak of this computer, measured when the first case needs it.
const host::HostRates& rates() {
  static const host::HostRates measured = host::measure_host_rates();
  return measured;
}

template <class T>
class Runner {
 public:
  Runner(const LayerCase& c, const sparse::Csr<float>& weights)
      : case_(c),
        weights_(weights),
        executor_(make_executor(c.threads)),
        layer_(c.problem(), c.cpu, *executor_, {.dense = c.dense, .rates = rates()}),
        s_(random_matrix<T>(c.y, c.z, 1)),
        q_(random_matrix<T>(c.x, c.z, 2)),
        gradient_(weights) {
    layer_.set_weights(weights);
    check();
  }
  double forecast_seconds() const { return layer_.forecast(case_.pass).seconds(); }
  host::HostTimes run() {
    if (case_.pass == Pass::Fwd)
      return layer_.template forward<T>(std::as_const(s_).view(), q_.view());
    if (case_.pass == Pass::GradA)
      return layer_.template grad_a<T>(std::as_const(q_).view(), s_.view());
    return layer_.template grad_w<T>(std::as_const(q_).view(), std::as_const(s_).view(),
                                     gradient_.values);
  }

 private:
  void check() {
    run();
    if (case_.pass == Pass::GradW) return check_gradient();
    const bool fwd = case_.pass == Pass::Fwd;
    const auto matrix = fwd ? weights_ : sparse::transpose(weights_);
    const auto in = std::as_const(fwd ? s_ : q_).view(), out = std::as_const(fwd ? q_ : s_).view();
    for (const std::int64_t first : {std::int64_t{0}, std::max<std::int64_t>(case_.z - 2, 0)}) {
      const Range cols{first, std::min(first + 2, case_.z)};
      require(verify::verify_product<T>(matrix, in.sub({0, in.rows}, cols),
                                        out.sub({0, out.rows}, cols), rounding_of(case_)),
              case_);
    }
  }
  void check_gradient() {
    if (weights_.values.size() * std::size_t(case_.z) > 500'000'000) return;
    require(verify::verify_gradient<T>(weights_, gradient_, std::as_const(q_).view(),
                                       std::as_const(s_).view(),
                                       {DataType::Float, DataType::Float, 1 + case_.z / 16}),
            case_);
  }

  LayerCase case_;
  const sparse::Csr<float>& weights_;
  std::unique_ptr<Executor> executor_;
  host::HostLayer layer_;
  Matrix<T> s_, q_;
  sparse::Csr<float> gradient_;
};

template <class T>
Measured measure_as(const LayerCase& c, const sparse::Csr<float>& weights) {
  Runner<T> runner(c, weights);
  std::vector<double> kernels, copies;
  Measured measured;
  measured.forecast_seconds = runner.forecast_seconds();
  measured.peak = host::measure_float_peak().fused;
  const Seconds seconds = time_of(c.threads, 15, [&] {
    const host::HostTimes times = runner.run();
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
