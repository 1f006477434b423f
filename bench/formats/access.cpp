#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "tessera/arrays/mapped/mapped_array.hpp"
#include "tessera/arrays/tensor/contract.hpp"
#include "tessera/arrays/tensor/slices.hpp"
#include "tessera/base/random.hpp"
#include "tessera/bench/formats/parts.hpp"

namespace tessera::bench {
namespace {

using Shape = std::vector<std::int64_t>;

std::int64_t product(const Shape& shape) {
  std::int64_t result = 1;
  for (const std::int64_t length : shape) result *= length;
  return result;
}

}  // namespace

arrays::CooTensor<float> spread(const Shape& shape, std::int64_t entries) {
  Random random(/*seed=*/3);
  const std::int64_t gap = product(shape) / entries;
  std::vector<std::int32_t> indices(static_cast<std::size_t>(entries) * shape.size());
  for (std::int64_t i = 0; i < entries; ++i) {
    std::int64_t at = i * gap + random.below(gap);
    for (std::size_t d = shape.size(); d-- > 0; at /= shape[d])
      indices[std::size_t(i) * shape.size() + d] = static_cast<std::int32_t>(at % shape[d]);
  }
  return {shape, std::move(indices), std::vector<float>(std::size_t(entries), 1)};
}

namespace {

constexpr std::int64_t kFew = 10'000, kMany = 1'000'000;

// Returns the seconds that many calls take together.
double of_calls(const std::function<void(std::int64_t)>& call) {
  return best_seconds(5, [&] {
    for (std::int64_t i = 0; i < 100'000; ++i) call(i);
  });
}

// Measures the cost of 100 times as many entries: a view should cost nothing more, a lookup a few
// steps.
Line growth(const std::string& name, double few, double many, double most) {
  return {name, fmt::format("{:.0f} ns, {:.0f} ns with 100 times", few * 1e4, many * 1e4),
          fmt::format("ratio <= {}", most), many <= most * few};
}

template <class Make>
Line view_line(const std::string& name, const Make& make) {
  double seconds[2];
  for (const int i : {0, 1}) {
    const auto whole = make(i == 0 ? kFew : kMany);
    seconds[i] = of_calls([&](std::int64_t) { (void)whole(); });
  }
  return growth("a view of " + name, seconds[0], seconds[1], 1.5);
}

const Shape kShape = {1000, 1000, 100};

Lines view_lines() {
  const auto tensor = [](std::int64_t n) {
    return [t = spread(kShape, n)] {
      return t.select({arrays::Interval{10, 900}, arrays::Point{7}}).rank();
    };
  };
  const auto csr = [](std::int64_t n) {
    return [m = arrays::to_sliced(arrays::to_csr(spread({10'000, 10'000}, n)))] {
      return m.view(arrays::Interval{10, 900}, arrays::Interval{3, 4000}).rows();
    };
  };
  const auto mapped = [](std::int64_t n) {
    return [m = arrays::to_mapped(spread(kShape, n), arrays::Mapping(kShape),
                                  arrays::MappedKind::Csr)] {
      return m.select({arrays::Slice{{}, {}, -1}, arrays::Point{7}}).rank();
    };
  };
  return {view_line("a COO tensor", tensor), view_line("a CSR", csr),
          view_line("a mapped array", mapped)};
}

// Looks up absent and present places in turn. 100 times as many entries need 6.6 more comparisons
// and miss more caches; a linear search would take 100 times as long.
Lines lookup_lines() {
  double seconds[2];
  for (const int i : {0, 1}) {
    const auto tensor = spread(kShape, i == 0 ? kFew : kMany);
    Random random(/*seed=*/4);
    float keep = 0;
    seconds[i] = of_calls([&](std::int64_t) {
      keep += tensor.get({random.below(1000), random.below(1000), random.below(100)});
    });
    if (keep < 0) return {{"lookup", "wrong result", "right", false}};
  }
  return {growth("a lookup in a COO tensor", seconds[0], seconds[1], 8)};
}

Line contraction_line(const Shape& shape) {
  const auto tensor = spread(shape, kMany);
  double least = 1e300, most = 0;
  for (std::int64_t d = 0; d < 3; ++d) {
    const std::vector<float> dense(std::size_t(shape[std::size_t(d)]), 2);
    double sum = 0;
    const auto result = arrays::contract<float>(tensor, {d}, dense);
    for (const float v : result.values()) sum += double(v);
    if (sum != 2.0 * kMany) return {"contraction", "wrong result", "right", false};
    const double seconds =
        best_seconds(5, [&] { (void)arrays::contract<float>(tensor, {d}, dense); });
    least = std::min(least, seconds), most = std::max(most, seconds);
  }
  return {fmt::format("contraction of {} x {} x {}", shape[0], shape[1], shape[2]),
          fmt::format("{:.0f} to {:.0f} ms by dimension", least * 1e3, most * 1e3), "ratio <= 1.5",
          most <= 1.5 * least};
}

// Returns the resident memory of this process in bytes; 0 on systems other than Linux.
double resident_bytes() {
  long total = 0, resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return double(resident) * double(sysconf(_SC_PAGESIZE));
}

}  // namespace

Lines access_lines() {
  Lines lines = view_lines();
  for (const Line& line : lookup_lines()) lines.push_back(line);
  for (const Shape& shape : {Shape{256, 256, 256}, {4000, 400, 40}})
    lines.push_back(contraction_line(shape));
  return lines;
}

Lines memory_lines() {
  const double before = resident_bytes();
  const auto tensor = spread({10'000, 10'000, 100}, 100'000'000);
  tensor.settle();
  const double stored = double(tensor.bytes().value), resident = resident_bytes() - before;
  return {{"10000 x 10000 x 100, 100 M floats, its buffers", fmt::format("{:.2f} GB", stored / 1e9),
           "<= 2.0 GB", tensor.nnz() == 100'000'000 && stored <= 2.0e9},
          {"  resident in this process", fmt::format("{:.2f} GB", resident / 1e9), "<= 2.0 GB",
           resident <= 2.0e9}};
}

}  // namespace tessera::bench
