// Measures the rate of every reference and vector kernel on one tile's share of a layer. The shapes
// are read from bench/shapes/kernels.txt. A kernel whose result is wrong is not timed.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/codelets/best_places.hpp"
#include "tessera/codelets/kernel.hpp"
#include "tessera/host/float_peak.hpp"
#include "tessera/tests/codelets/kernel_case.hpp"

namespace {

using namespace tessera;
using codelets::Format, codelets::KernelEntry, codelets::Kernel;

struct Shape {
  std::int64_t x = 0, y = 0, z = 0, block = 1;
  double density = 0;

  std::string name() const {
    std::ostringstream text;
    text << x << "x" << y << "x" << z << "/block:" << block << "/density:" << density;
    return text.str();
  }
};

std::vector<Shape> read_shapes(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Shape> shapes;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    Shape shape;
    std::istringstream text(line);
    if (!(text >> shape.x >> shape.y >> shape.z >> shape.block >> shape.density))
      throw std::runtime_error("bad line in " + path + ": " + line);
    shapes.push_back(shape);
  }
  return shapes;
}

// The rows are sorted by falling number of non-zeros, in the order of the encoder.
test::DrawnRecord random_record(const Shape& shape, Random& random) {
  test::DrawnRecord record;
  for (std::int64_t x = 0; x < shape.x; x += shape.block) {
    test::DrawnRow row{x, {}};
    for (std::int64_t y = 0; y < shape.y; y += shape.block)
      if (random.unit() < shape.density) row.columns.push_back(y);
    if (!row.columns.empty()) record.rows.push_back(row);
  }
  std::stable_sort(record.rows.begin(), record.rows.end(), [](const auto& a, const auto& b) {
    return a.columns.size() > b.columns.size();
  });
  return record;
}

test::KernelCase make_case(const KernelEntry& kernel, const Shape& shape) {
  Random random(/*seed=*/7);
  test::KernelCase c(kernel.key, {shape.block, shape.block}, {shape.x, shape.y, shape.z, 0},
                     {random_record(shape, random)});
  c.fill([&random] { return 2 * random.unit() - 1; });
  return c;
}

// Dense rows begin on a cache line, as on a machine. A vector that straddles two lines costs two
// loads, so the figures would otherwise depend on the addresses that malloc returns.
class AlignedCopy {
 public:
  AlignedCopy(const void* from, std::size_t bytes) : memory_(bytes + kLine) {
    std::size_t room = memory_.size();
    data_ = memory_.data();
    std::align(kLine, bytes, data_, room);
    std::memcpy(data_, from, bytes);
  }
  AlignedCopy(const AlignedCopy&) = delete;
  AlignedCopy& operator=(const AlignedCopy&) = delete;
  void* data() const { return data_; }

 private:
  static constexpr std::size_t kLine = 64;
  std::vector<std::byte> memory_;
  void* data_ = nullptr;
};

AlignedCopy aligned_copy(test::StoredRows& rows, DataType type) {
  return {rows.store.data(), std::size_t(rows.rows * rows.stride * bytes_of(type))};
}

// `flops` counts the useful operations, `dense_flops` those of a dense share of the same size.
// `of_peak` divides flops by the float peak of this core with fused operations, which is measured
// when the program starts.
void run_kernel(benchmark::State& state, const KernelEntry& entry, Kernel kernel,
                const Shape& shape, double peak) {
  test::KernelCase c = make_case(entry, shape);
  // Half sums of more than 60 terms have no error bound, so they are compared with the reference
  // kernel only.
  if (entry.key.sum == DataType::Float && test::worst_excess(c, kernel) > 0)
    return state.SkipWithError("wrong result");
  const AlignedCopy x_side = aligned_copy(c.x_side, c.x_is_result() ? entry.key.sum : entry.key.in);
  const AlignedCopy y_side = aligned_copy(c.y_side, c.y_is_result() ? entry.key.sum : entry.key.in);
  codelets::KernelArgs args = c.args();
  args.in.data = c.x_is_result() ? y_side.data() : x_side.data();
  args.in_s.data = y_side.data();
  args.out.data = c.x_is_result() ? x_side.data() : y_side.data();
  for (auto _ : state) {
    kernel(args);
    benchmark::ClobberMemory();
  }
  const double flops = 2.0 * double(c.value_count()) * double(shape.z);
  const auto rate = [](double work) {
    return benchmark::Counter(work, benchmark::Counter::kIsIterationInvariantRate);
  };
  state.counters["flops"] = rate(flops);
  state.counters["dense_flops"] = rate(2.0 * double(shape.x * shape.y * shape.z));
  state.counters["of_peak"] = rate(flops / peak);
}

// The last column must fit into a word, as the encoder demands.
bool fits(const KernelEntry& kernel, const Shape& shape) {
  const std::int64_t last = kernel.key.format == Format::Block
                                ? shape.y
                                : bytes_of(kernel.key.in) * shape.z * std::max(shape.x, shape.y);
  const double values = double(shape.x * shape.y) * shape.density * 1.5;
  return kernel.key.word_bits == 32 || (last <= 65536 && values * 4 <= 65535);
}

void add_benchmarks(double peak) {
  const auto shapes = read_shapes(TESSERA_SOURCE_DIR "/bench/shapes/kernels.txt");
  for (const KernelEntry& entry : codelets::kernels())
    for (const Shape& shape : shapes) {
      if ((entry.key.format == Format::Element) != (shape.block == 1) || !fits(entry, shape))
        continue;
      const auto add = [&](const std::string& twin, Kernel kernel) {
        const std::string name = std::string(entry.name) + twin + "/" + shape.name();
        benchmark::RegisterBenchmark(name.c_str(),
                                     [&entry, kernel, shape, peak](auto& state) {
                                       run_kernel(state, entry, kernel, shape, peak);
                                     })
            ->MinTime(0.05)
            ->Unit(benchmark::kMicrosecond);
      };
      if (entry.run != entry.reference) add("", entry.run);
      add("/slow_twin", entry.reference);
    }
}

// One round of a search for the largest gradients on a tile: a tenth of the blocks is stored, and
// the list keeps one in eight. `bytes` counts those of the gradient.
void run_search(benchmark::State& state, bool is_reference, BlockShape block) {
  constexpr std::int64_t kRows = 128, kColumns = 256;
  Random random(/*seed=*/7);
  std::vector<float> gradients(std::size_t(kRows * kColumns));
  for (float& g : gradients) g = float(random.unit()) - 0.5f;
  const std::int64_t blocks = kRows * kColumns / block.area(), keep = blocks / 8;
  std::vector<std::uint32_t> taken(std::size_t((blocks + 31) / 32));
  for (std::int64_t b = 0; b < blocks; ++b)
    taken[std::size_t(b / 32)] |= std::uint32_t(random.below(10) == 0) << (b % 32);
  const codelets::GradientPart part{.gradients = gradients.data(),
                                    .rows = kRows,
                                    .columns = kColumns,
                                    .block = block,
                                    .matrix_columns = kColumns / block.cols,
                                    .taken = taken};
  std::vector<codelets::ScoredPlace> places(std::size_t(2 * keep)), wanted = places;
  codelets::BestList expected{.places = wanted.data(), .keep = keep};
  codelets::add_best_reference(part, expected);
  codelets::finish_best(expected);
  const auto search = [&] {
    codelets::BestList list{.places = places.data(), .keep = keep};
    is_reference ? codelets::add_best_reference(part, list) : codelets::add_best(part, list);
    codelets::finish_best(list);
  };
  search();
  if (places != wanted) return state.SkipWithError("wrong result");
  for (auto _ : state) {
    search();
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kRows * kColumns * std::int64_t(sizeof(float)));
}

void add_searches() {
  for (const std::int64_t side : {1, 4, 16})
    for (const bool is_reference : {false, true}) {
      const std::string name = std::string("best_places") + (is_reference ? "/slow_twin" : "") +
                               "/128x256/block:" + std::to_string(side);
      benchmark::RegisterBenchmark(
          name.c_str(),
          [is_reference, side](auto& state) { run_search(state, is_reference, {side, side}); })
          ->MinTime(0.05)
          ->Unit(benchmark::kMicrosecond);
    }
}

}  // namespace

int main(int argc, char** argv) {
  const host::FloatPeak peak = host::measure_float_peak();
  benchmark::AddCustomContext("instruction set", peak.target);
  benchmark::AddCustomContext("fused multiply-add peak, flops", std::to_string(peak.fused));
  benchmark::AddCustomContext("multiply and add peak, flops", std::to_string(peak.separate));
  add_benchmarks(peak.fused);
  add_searches();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
