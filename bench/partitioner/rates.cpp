#include "tessera/bench/partitioner/rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "tessera/base/half.hpp"
#include "tessera/bench/timing.hpp"

namespace tessera::bench {
namespace {

void copy_chunks(const std::vector<float>& from, std::vector<float>& to, Executor& executor) {
  constexpr std::int64_t kChunks = 64;
  const std::int64_t size = std::ssize(from);
  executor.for_each(kChunks, [&](std::int64_t i) {
    std::copy(from.begin() + i * size / kChunks, from.begin() + (i + 1) * size / kChunks,
              to.begin() + i * size / kChunks);
  });
}

}  // namespace

void encode_rate_half(Report& report, const std::string& name, const Layer& layer, double bar) {
  Workload w = make_encoded(layer);
  const auto one = sequential();
  std::vector<Half> values(w.matrix.values.size()), copy(values.size());
  std::transform(w.matrix.values.begin(), w.matrix.values.end(), values.begin(),
                 [](float v) { return Half(v); });
  std::vector<Half> bucket_values(w.bucket_values.size());
  const auto t =
      medians({[&] { w.encode(*one); },
               [&] { partitioner::refill<Half, Half>(w.buckets, values, bucket_values, *one); },
               [&] { std::copy(values.begin(), values.end(), copy.begin()); }});
  const double blocks = w.blocks() / kMillion;
  report.at_least("encode " + name + ", half, million blocks/s", blocks / (t[0] + t[1]), bar);
  report.tell("  values alone", blocks / t[1]);
  report.tell("  a plain copy of the values in the order of the matrix", blocks / t[2]);
}

void encode_rate(Report& report, const std::string& name, const Layer& layer, double bar) {
  Workload w = make_encoded(layer);
  const auto one = sequential();
  std::vector<float> copy(w.matrix.values.size());
  const auto t =
      medians({[&] { w.encode(*one); }, [&] { w.refill(*one); },
               [&] { std::copy(w.matrix.values.begin(), w.matrix.values.end(), copy.begin()); }});
  const double blocks = w.blocks() / kMillion;
  report.at_least("encode " + name + ", million blocks/s", blocks / (t[0] + t[1]), bar);
  report.tell("  words and source map alone", blocks / t[0]);
  report.tell("  values alone", blocks / t[1]);
  report.tell("  a plain copy of the values in the order of the matrix", blocks / t[2]);
}

void thread_ratio(Report& report, const std::string& name, const Layer& layer) {
  Workload w = make_encoded(layer);
  std::vector<float> copy(w.matrix.values.size());
  ThreadRatio ratio;
  const auto both = ratio([&](Executor& e) { w.encode(e), w.refill(e); });
  report.at_least(fmt::format("encode {}, two threads against one ({} runs)", name, both.runs),
                  both.median, 1.7);
  report.tell("  words and source map alone", ratio([&](Executor& e) { w.encode(e); }).median);
  report.tell("  values alone", ratio([&](Executor& e) { w.refill(e); }).median);
  report.tell("  a plain copy of the values",
              ratio([&](Executor& e) { copy_chunks(w.matrix.values, copy, e); }).median);
}

void column_splits(Report& report) {
  std::vector<Workload> all;
  for (const std::int64_t y : {1, 2, 4, 8})
    all.push_back(make_encoded({.splits = {1, 46, y, 32 / y}}));
  const auto one = sequential();
  std::vector<std::function<void()>> bodies;
  for (Workload& w : all) bodies.push_back([&w, &one] { w.encode(*one), w.refill(*one); });
  const auto t = medians(bodies);
  const auto [least, most] = std::minmax_element(t.begin(), t.end());
  report.at_most("encode block 1, slowest of Py 1, 2, 4, 8 against fastest", *most / *least, 1.2);
}

void decode_ratio(Report& report, const std::string& name, const Layer& layer) {
  Workload w = make_encoded(layer);
  const auto t =
      medians({[&] {
                 const auto fresh = partitioner::encode(w.matrix, w.grid);
                 partitioner::to_bucket_order<float, float>(*fresh.buckets, w.matrix.values);
               },
               [&] { partitioner::decode(w.buckets, std::span<const float>(w.bucket_values)); }});
  report.at_most("decode against encode, " + name + ", both into new storage", t[1] / t[0], 1.0);
}

}  // namespace tessera::bench
