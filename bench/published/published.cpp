#include "tessera/bench/published/published.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/bench/published/measured_pattern.hpp"
#include "tessera/bench/published/nested_loops.hpp"
#include "tessera/io/table.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/sparse/random.hpp"

namespace tessera::bench {

std::vector<PublishedPoint> published_points() {
  using enum DataType;
  return {{4096, {16, 16}, 1.0 / 16, 27.0},     {4096, {16, 16}, 1.0 / 4, 55.0},
          {4096, {8, 8}, 1.0 / 16, 21.3},       {4096, {1, 1}, 1.0 / 16, 5.9},
          {2048, {16, 16}, 1.0 / 16, 21.6},     {512, {16, 16}, 1.0 / 16, 6.5},
          {8192, {16, 16}, 1.0 / 16, 21.9},     {4096, {16, 16}, 1.0 / 8, 38.9},
          {4096, {16, 16}, 1.0 / 32, 15.4},     {4096, {4, 4}, 1.0 / 16, 14.45},
          {4096, {1, 1}, 1.0 / 4, 9.6},         {4096, {1, 1}, 1.0 / 8, 7.58},
          {4096, {1, 1}, 1.0 / 32, 3.73},       {1024, {16, 16}, 1.0 / 16, 11.24},
          {256, {16, 16}, 1.0 / 16, 5.35},      {4096, {16, 16}, 1.0 / 16, 14.08, Float},
          {4096, {1, 1}, 1.0 / 16, 3.34, Float}};
}

namespace {

DataType type_of(const io::RowReader& row, std::size_t column) {
  if (column == io::Table::kAbsent || row.cell(column) == "half") return DataType::Half;
  if (row.cell(column) != "float") row.refuse(column, "half or float");
  return DataType::Float;
}

}  // namespace

std::vector<PublishedPoint> read_published(std::string_view text, std::string_view name) {
  const io::Table table = io::read_table(text, name);
  const std::size_t side = table.need("m_eq_k"), block = table.need("block"),
                    density = table.need("density"), teraflops = table.need("tflops"),
                    type = table.find("type");
  constexpr std::int64_t kLargestSide = 1 << 16, kLargestBlock = 1024;
  std::vector<PublishedPoint> points;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const io::RowReader row(table, i);
    PublishedPoint p;
    p.side = row.count(side, kLargestSide);
    p.block.rows = p.block.cols = row.count(block, kLargestBlock);
    if (p.side % p.block.rows != 0) row.refuse(block, "a divisor of m_eq_k");
    p.density = row.share(density);
    if (p.density == 0) row.refuse(density, "above 0");
    p.teraflops = row.positive(teraflops);
    p.type = type_of(row, type);
    points.push_back(p);
  }
  return points;
}

double Repeated::spilled_share() const {
  const auto spilled =
      std::ranges::count_if(runs, [](const auto& r) { return r.moved_blocks > 0; });
  return double(spilled) / double(std::max<std::size_t>(1, runs.size()));
}

namespace {

Problem problem_of(const PublishedPoint& p, std::int64_t batch) {
  return {.size = {1, p.side, p.side, batch},
          .block = p.block,
          .density = p.density,
          .data_type = p.type,
          .partials_type = DataType::Float,
          .grad_a = true};
}

// The shares of a tile that bound the first search, and the plans that ran where it finds none. The
// plans of element layers whose published rates are known take up to 66.6 %; those of 75.7 % and
// more would be 20 to 90 % faster than anything published, so they did not run.
constexpr double kTemporaryShare = 0.6, kLargestShare = 0.7;

planner::Options measured_options() {
  planner::Options o;
  o.available_memory_proportion = kTemporaryShare;
  o.meta_info_bucket_oversize_proportion = 0.3;
  o.bucket_confidence = 0;
  o.poplibs_parity = true;
  return o;
}

// A layer with one batch, which is planned and built once and runs any pattern.
class Bench {
 public:
  Bench(const PublishedPoint& point, std::int64_t batch, planner::Plan plan,
        const device::Machine& machine, Executor& executor)
      : point_(point),
        batch_(batch),
        plan_(std::move(plan)),
        machine_(machine),
        layer_(problem_of(point, batch), plan_, machine, device::ExchangeMode::Share, executor) {}

  // Returns no value if the pattern does not fit the buckets.
  std::optional<RepeatedRun> run(const sparse::Csr<float>& weights) {
    partitioner::EncodeOptions options;
    options.spilling = partitioner::Spilling::Greedy;
    if (layer_.set_weights(sparse::checked(weights), options)) return {};
    RepeatedRun result{batch_, plan_, {}, layer_.spill().moved_blocks};
    // Cycles do not depend on values.
    result.ledger = with_type(point_.type, [&]<class T>(T) {
      const Matrix<T> in(point_.side, batch_);
      Matrix<T> out(point_.side, batch_);
      return layer_.forward<T>(in.view(), out.view());
    });
    charge_nested_loops(layer_.travel(), plan_.partition, machine_, result.ledger);
    const double flops = 2.0 * double(point_.side) * double(point_.side) * double(batch_);
    const double seconds = double(result.ledger.total().value) / machine_.clock_hz;
    result.teraflops = flops * point_.density / seconds / 1e12;
    return result;
  }

  bool is_large() const {
    return double(plan_.cost.temp.value) > kTemporaryShare * double(machine_.tile_memory.value);
  }

 private:
  const PublishedPoint& point_;
  std::int64_t batch_;
  planner::Plan plan_;
  const device::Machine& machine_;
  runtime::FullyConnected layer_;
};

// Returns null if there is no plan for that batch or if it does not fit the tile memory.
std::unique_ptr<Bench> bench_of(const PublishedPoint& point, std::int64_t batch,
                                const Repetition& how, Executor& executor) {
  const planner::PlanResult planned =
      planner::plan(problem_of(point, batch), how.machine, measured_options());
  const double bound = kLargestShare * double(how.machine.tile_memory.value);
  if (!planned.has_plan || double(planned.plan.cost.temp.value) > bound) return nullptr;
  try {
    return std::make_unique<Bench>(point, batch, planned.plan, how.machine, executor);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::LimitExceeded) return nullptr;
    throw;
  }
}

void keep_better(std::optional<RepeatedRun>& best, std::optional<RepeatedRun> run) {
  if (run && (!best || run->teraflops > best->teraflops)) best = std::move(run);
}

}  // namespace

Repeated repeat(const PublishedPoint& point, const Repetition& how, Executor& executor) {
  Repeated result{point, {}, {}, {}, {}};
  std::vector<std::optional<RepeatedRun>> best(std::size_t(how.patterns));
  const auto measured = measured_pattern(point.side, point.block, point.density);
  std::vector<sparse::Csr<float>> patterns;
  for (std::int64_t seed = 1; seed <= how.patterns; ++seed)
    patterns.push_back(sparse::random_pattern(point.side, point.side, point.block, point.density,
                                              std::uint64_t(seed)));
  for (const std::int64_t batch : how.batches) {
    const auto bench = bench_of(point, batch, how, executor);
    if (!bench) continue;
    if (bench->is_large()) result.larger_batches.push_back(batch);
    if (auto run = bench->run(measured)) {
      result.by_batch.push_back(*run);
      keep_better(result.measured, std::move(run));
    }
    for (std::size_t i = 0; i < patterns.size(); ++i) keep_better(best[i], bench->run(patterns[i]));
  }
  for (auto& run : best)
    if (run) result.runs.push_back(std::move(*run));
  std::ranges::sort(result.runs, {}, &RepeatedRun::teraflops);
  return result;
}

}  // namespace tessera::bench
