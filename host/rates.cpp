#include "tessera/host/rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/pass.hpp"
#include "tessera/base/write_file.hpp"
#include "tessera/host/cpu.hpp"
#include "tessera/host/internal/default_rates.hpp"
#include "tessera/host/internal/dense_library.hpp"
#include "tessera/host/internal/rate_figures.hpp"
#include "tessera/json/reader.hpp"

namespace tessera::host {
namespace {

using Json = json::Value;

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

template <class Rates, class Use>
void each_figure(Rates& rates, const Use& use) {
  internal::each_speed(rates, use);
  internal::each_duration(rates, use);
}

constexpr json::Above kPositive{0};
constexpr json::WholeRange kCounts{1, 1 << 30};

const json::Names<Pass>& pass_names() {
  static const auto names = json::names_of({Pass::Fwd, Pass::GradA, Pass::GradW});
  return names;
}

const json::Names<DataType>& type_names() {
  static const auto names = json::names_of({DataType::Float, DataType::Half, DataType::BFloat16});
  return names;
}

void read_row(json::RowReader& items, KernelRate& rate) {
  items(rate.pass, pass_names());
  items(rate.type, type_names());
  items(rate.block, kCounts);
  items(rate.z, kCounts);
  items(rate.row_blocks, kPositive);
  items(rate.flops, kPositive);
}

void read_row(json::RowReader& items, DenseRate& rate) {
  items(rate.pass, pass_names());
  items(rate.type, type_names());
  items(rate.z, kCounts);
  items(rate.flops, kPositive);
}

template <class Rate>
void read_rows(json::ObjectReader& fields, const char* key, std::vector<Rate>& rates) {
  const json::Place place = fields.place().member(key);
  const json::List& rows = json::items_of(fields.at(key), place);
  if (rows.empty()) json::throw_bad(place, "empty", "a list of at least one rate");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    json::RowReader items(rows[i], place.item(i));
    read_row(items, rates.emplace_back());
    items.finish();
  }
}

// Every pass and type that is measured needs rates of single elements, of larger blocks and of
// dense passes, because the others are interpolated from them.
void check_complete(const HostRates& rates, const std::string& name) {
  for (const Pass pass : {Pass::Fwd, Pass::GradW})
    for (const DataType type : {DataType::Float, DataType::Half}) {
      const auto fits = [&](const auto& rate) { return rate.pass == pass && rate.type == type; };
      const auto has_kernel = [&](bool in_blocks) {
        return std::any_of(rates.kernels.begin(), rates.kernels.end(), [&](const KernelRate& k) {
          return fits(k) && (k.block > 1) == in_blocks;
        });
      };
      if (!has_kernel(false) || !has_kernel(true) ||
          std::none_of(rates.dense.begin(), rates.dense.end(), fits))
        throw Error(ErrorCode::BadInput, fmt::format("{}: it has no rates of {} in {}", name,
                                                     to_string(pass), tessera::to_string(type)));
    }
}

// The rates that this process measured and could not store, by the path of their file. Equal
// questions then have equal answers, and calls after the first one wait for no measurement. Threads
// that ask first at the same time measure beside each other, and get the same rates.
class UnstoredRates {
 public:
  std::optional<FoundRates> find(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto at = by_path_.find(path);
    return at == by_path_.end() ? std::nullopt : std::optional(at->second);
  }

  // Keeps rates, unless another thread did so before, and returns those that are kept.
  FoundRates keep(const std::string& path, FoundRates found) {
    const std::lock_guard lock(mutex_);
    return by_path_.try_emplace(path, std::move(found)).first->second;
  }

  static UnstoredRates& of_this_process() {
    static UnstoredRates all;
    return all;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, FoundRates> by_path_;
};

// Writes the text of rates, and returns why that could not be done; empty: it is written.
std::string written(const std::string& path, const std::string& text) {
  try {
    const auto folder = std::filesystem::path(path).parent_path();
    std::error_code ignored;
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    write_file(path, text);
    return "";
  } catch (const CannotWrite& error) {
    return error.what();
  }
}

// Measures rates because of `why`, and stores them if they settle.
FoundRates measured_now(const std::string& path, const std::function<HostRates()>& measure,
                        const std::string& why) {
  UnstoredRates& unstored = UnstoredRates::of_this_process();
  if (const auto before = unstored.find(path)) return *before;
  constexpr int kMostRounds = 3;  // a user waits for them
  const RoundsOfRates rounds = measure_rounds(measure, kMostRounds);
  // The text rounds the rates, and the next call reads it: both have the same rates.
  const std::string text = to_json(rounds.rates);
  FoundRates found{host_rates_from_json(text, path), fmt::format("{}: {}", path, why),
                   RatesOrigin::Measured};
  const std::string obstacle =
      rounds.unsettled.empty()
          ? written(path, text)
          : rounds.unsettled +
                "; other programs use this computer, so these rates are those of this process "
                "only; run tessera machine calibrate when they have ended";
  if (obstacle.empty()) return found;
  found.note += fmt::format(", and not stored: {}", obstacle);
  return unstored.keep(path, std::move(found));
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
  std::string text = json.dump(1);
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
  const std::string name = fmt::format("{}: this is not a file of measured rates", where);
  const json::Value value = json::parse(text, name);
  json::ObjectReader fields(value, {name, ""});
  std::int64_t version = 0;
  fields("version", version, json::WholeRange{kHostRatesVersion, kHostRatesVersion});
  HostRates rates;
  fields("cpu_model", rates.cpu_model);
  fields("dense_kernel", rates.dense_kernel);
  each_figure(rates, [&](const char* key, double& figure) { fields(key, figure, kPositive); });
  read_rows(fields, "kernels", rates.kernels);
  read_rows(fields, "dense", rates.dense);
  fields.finish();
  check_complete(rates, name);
  return rates;
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

FoundRates find_host_rates(const std::string& path, const std::function<HostRates()>& measure,
                           const std::string& model) {
  const HostRates& usual = default_host_rates();
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) {
    if (path.empty() || usual.cpu_model == model)
      return {
          usual,
          fmt::format("using default rates for {}; run tessera machine calibrate to measure this "
                      "computer",
                      usual.cpu_model),
          RatesOrigin::Default};
    return measured_now(path, measure, "measured now, at the first forecast on this computer");
  }
  HostRates rates;
  try {
    rates = host_rates_from_json(read_file(path), path);
  } catch (const Error&) {
    return measured_now(path, measure,
                        "the file is damaged or has another version; measured again");
  }
  if (rates.cpu_model != model)
    return measured_now(
        path, measure,
        fmt::format("measured on another processor, {}; measured again", rates.cpu_model));
  if (rates.dense_kernel != dense_kernel_name())
    return measured_now(
        path, measure,
        fmt::format("measured with another dense kernel, {}; measured again", rates.dense_kernel));
  return {rates, "", RatesOrigin::File};
}

}  // namespace tessera::host
