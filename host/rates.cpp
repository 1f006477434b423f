#include "tessera/host/rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/internal/default_rates.hpp"
#include "tessera/host/internal/dense_library.hpp"

namespace tessera::host {
namespace {

using Json = nlohmann::ordered_json;

struct Point {
  double at, value;
};

// Interpolates linearly between logarithms; outside the points it returns the nearest one's value.
double interpolate(std::vector<Point> points, double at) {
  std::sort(points.begin(), points.end(), [](Point a, Point b) { return a.at < b.at; });
  const auto above =
      std::find_if(points.begin(), points.end(), [&](Point p) { return p.at >= at; });
  if (above == points.begin()) return points.front().value;
  if (above == points.end()) return points.back().value;
  const Point low = *(above - 1), high = *above;
  const double share = std::log(at / low.at) / std::log(high.at / low.at);
  return low.value * std::pow(high.value / low.value, share);
}

// The scalar fields of the rates, each with its key in the file.
template <class Rates, class Visit>
void each_figure(Rates& rates, const Visit& visit) {
  visit("peak_flops", rates.peak_flops);
  visit("l1_bytes_per_second", rates.l1_bytes_per_second);
  visit("l2_bytes_per_second", rates.l2_bytes_per_second);
  visit("memory_bytes_per_second", rates.memory_bytes_per_second);
  visit("copy_seconds", rates.copy_seconds);
  visit("float_result_seconds", rates.float_result_seconds);
  visit("half_result_seconds", rates.half_result_seconds);
}

double positive(const Json& json) {
  const double value = json.get<double>();
  if (!(value > 0) || !std::isfinite(value)) throw std::invalid_argument("a figure is not above 0");
  return value;
}

Pass pass_of(const std::string& name) {
  if (name == to_string(Pass::Fwd)) return Pass::Fwd;
  if (name == to_string(Pass::GradA)) return Pass::GradA;
  if (name == to_string(Pass::GradW)) return Pass::GradW;
  throw std::invalid_argument("pass " + name);
}

HostRates read_rates(const Json& json) {
  if (json.at("version") != kHostRatesVersion)
    throw std::invalid_argument(
        fmt::format("its version is {}, not {}", json.at("version").dump(), kHostRatesVersion));
  HostRates rates;
  rates.cpu_model = json.at("cpu_model");
  rates.dense_kernel = json.at("dense_kernel");
  each_figure(rates, [&](const char* key, double& value) { value = positive(json.at(key)); });
  for (const Json& k : json.at("kernels"))
    rates.kernels.push_back({pass_of(k.at(0)), parse_data_type(k.at(1).get<std::string>()), k.at(2),
                             k.at(3), positive(k.at(4)), positive(k.at(5))});
  for (const Json& d : json.at("dense"))
    rates.dense.push_back({pass_of(d.at(0)), parse_data_type(d.at(1).get<std::string>()), d.at(2),
                           positive(d.at(3))});
  if (rates.kernels.empty() || rates.dense.empty()) throw std::invalid_argument("it has no rates");
  return rates;
}

FoundRates measured_again(const std::string& path, HostRates rates, const std::string& why) {
  FoundRates found{std::move(rates), fmt::format("{}: {}; measured again", path, why),
                   RatesOrigin::Measured};
  write_file(path, to_json(found.rates));
  return found;
}

// bfloat16 counts as half: it is as wide, and only its blocks have a separate instruction.
DataType measured_type(DataType type) { return type == DataType::BFloat16 ? DataType::Half : type; }

}  // namespace

double HostRates::kernel_flops(const KernelRate& of) const {
  const DataType type = measured_type(of.type);
  const auto fits = [&](const KernelRate& k) { return k.pass == of.pass && k.type == type; };
  std::int64_t block = 0;
  for (const KernelRate& k : kernels)
    if (fits(k) && k.block <= of.block) block = std::max(block, k.block);
  if (of.block > 1 && block == 1) {  // no measured block is so small: take the smallest
    block = of.block * of.block;
    for (const KernelRate& k : kernels)
      if (fits(k) && k.block > 1) block = std::min(block, k.block);
  }
  std::vector<Point> by_z;
  for (const KernelRate& one : kernels) {
    if (!fits(one) || one.block != block) continue;
    if (std::any_of(by_z.begin(), by_z.end(), [&](Point p) { return p.at == double(one.z); }))
      continue;
    std::vector<Point> by_row;
    for (const KernelRate& k : kernels)
      if (fits(k) && k.block == block && k.z == one.z) by_row.push_back({k.row_blocks, k.flops});
    by_z.push_back({double(one.z), interpolate(by_row, of.row_blocks)});
  }
  TESSERA_ASSERT(!by_z.empty());
  return interpolate(by_z, double(of.z));
}

double HostRates::dense_flops(const DenseRate& of) const {
  std::vector<Point> points;
  for (const DenseRate& d : dense)
    if (d.pass == of.pass && d.type == measured_type(of.type))
      points.push_back({double(d.z), d.flops});
  TESSERA_ASSERT(!points.empty());
  return interpolate(points, double(of.z));
}

std::string dense_kernel_name() {
  const char* library = internal::dense_library();
  return library != nullptr ? library : "blocks of 16";
}

const HostRates& default_host_rates() {
  static const HostRates rates = host_rates_from_json(internal::kDefaultRates, "default rates");
  return rates;
}

std::string to_json(const HostRates& rates) {
  Json json = {{"version", kHostRatesVersion},
               {"cpu_model", rates.cpu_model},
               {"dense_kernel", rates.dense_kernel}};
  each_figure(rates, [&](const char* key, double value) { json[key] = value; });
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // the closing brace and its line
  text += ",\n \"kernels\": [";
  for (const KernelRate& k : rates.kernels)
    text += fmt::format("{}\n  [\"{}\", \"{}\", {}, {}, {:.4g}, {:.4g}]",
                        &k == rates.kernels.data() ? "" : ",", to_string(k.pass),
                        tessera::to_string(k.type), k.block, k.z, k.row_blocks, k.flops);
  text += "\n ],\n \"dense\": [";
  for (const DenseRate& d : rates.dense)
    text += fmt::format("{}\n  [\"{}\", \"{}\", {}, {:.4g}]", &d == rates.dense.data() ? "" : ",",
                        to_string(d.pass), tessera::to_string(d.type), d.z, d.flops);
  return text + "\n ]\n}\n";
}

HostRates host_rates_from_json(std::string_view text, std::string_view where) {
  try {
    return read_rates(Json::parse(text));
  } catch (const std::exception& error) {
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: this is not a file of measured rates: {}", where, error.what()));
  }
}

std::string to_string(RatesOrigin origin) {
  switch (origin) {
    case RatesOrigin::Default:
      return "default";
    case RatesOrigin::File:
      return "file";
    case RatesOrigin::Measured:
      return "measured";
  }
  return "?";
}

FoundRates find_host_rates(const std::string& path, const std::function<HostRates()>& measure) {
  const std::string model = host::host_cpu_model();
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored))
    return {
        default_host_rates(),
        fmt::format(
            "using default rates for {}; run tessera machine calibrate to measure this computer",
            default_host_rates().cpu_model),
        RatesOrigin::Default};
  HostRates rates;
  try {
    rates = host_rates_from_json(read_file(path), path);
  } catch (const Error&) {
    return measured_again(path, measure(), "the file is damaged or has another version");
  }
  if (rates.cpu_model != model)
    return measured_again(path, measure(),
                          fmt::format("measured on another processor, {}", rates.cpu_model));
  if (rates.dense_kernel != dense_kernel_name())
    return measured_again(
        path, measure(), fmt::format("measured with another dense kernel, {}", rates.dense_kernel));
  return {rates, "", RatesOrigin::File};
}

}  // namespace tessera::host
