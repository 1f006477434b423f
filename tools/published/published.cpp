#include "tessera/tools/published/published.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/partitioner/buckets.hpp"
#include "tessera/planner/planner.hpp"
#include "tessera/runtime/fully_connected.hpp"
#include "tessera/runtime/spmm_pass.hpp"
#include "tessera/sparse/random.hpp"
#include "tessera/tools/tessera/table.hpp"

namespace tessera::tools {

std::vector<PublishedPoint> published_points() {
  return {{4096, {16, 16}, 1.0 / 16, 27.0}, {4096, {16, 16}, 1.0 / 4, 55.0},
          {4096, {8, 8}, 1.0 / 16, 21.3},   {4096, {1, 1}, 1.0 / 16, 5.9},
          {2048, {16, 16}, 1.0 / 16, 21.6}, {512, {16, 16}, 1.0 / 16, 6.5},
          {8192, {16, 16}, 1.0 / 16, 21.9}};
}

std::vector<PublishedPoint> read_published(std::string_view text, std::string_view name) {
  const Table table = read_table(text, name);
  const std::size_t side = table.need("m_eq_k"), block = table.need("block"),
                    density = table.need("density"), teraflops = table.need("tflops");
  constexpr std::int64_t kLargestSide = 1 << 16, kLargestBlock = 1024;
  std::vector<PublishedPoint> points;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowReader row(table, i);
    PublishedPoint p;
    p.side = row.count(side, kLargestSide);
    p.block.rows = p.block.cols = row.count(block, kLargestBlock);
    if (p.side % p.block.rows != 0) row.refuse(block, "a divisor of m_eq_k");
    p.density = row.share(density);
    if (p.density == 0) row.refuse(density, "above 0");
    p.teraflops = row.positive(teraflops);
    points.push_back(p);
  }
  return points;
}

double Repeated::mean_teraflops() const {
  double sum = 0;
  for (const RepeatedRun& run : runs) sum += run.teraflops;
  return sum / double(runs.size());
}

double Repeated::spilled_share() const {
  const auto spilled =
      std::ranges::count_if(runs, [](const auto& r) { return r.moved_blocks > 0; });
  return double(spilled) / double(runs.size());
}

namespace {

Problem problem_of(const PublishedPoint& p, std::int64_t batch) {
  return {.size = {1, p.side, p.side, batch},
          .block = p.block,
          .density = p.density,
          .data_type = DataType::Half,
          .partials_type = DataType::Float,
          .grad_a = true};
}

constexpr double kTemporaryShare = 0.6;  // of a tile; the rest contains what no plan counts

planner::Options measured_options() {
  planner::Options o;
  o.available_memory_proportion = kTemporaryShare;
  o.meta_info_bucket_oversize_proportion = 0.3;
  o.bucket_confidence = 0;
  o.poplibs_parity = true;
  return o;
}

device::ByteRows bytes(MatrixView<Half> view) {
  return {reinterpret_cast<std::byte*>(view.data), view.rows,
          view.cols * std::int64_t(sizeof(Half)), view.row_stride * std::int64_t(sizeof(Half))};
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
        executor_(executor),
        grid_(runtime::tile_grid(problem_of(point, batch), plan_, machine)),
        pass_({grid_, 1, plan_.fwd, DataType::Float}, machine, device::ExchangeMode::Share,
              executor, runtime::OperandHomes::Linear),
        in_(grid_.size.y, grid_.size.z),
        out_(grid_.size.x, grid_.size.z) {}

  // Returns no value if the pattern does not fit the buckets.
  std::optional<RepeatedRun> run(const sparse::Csr<float>& weights) {
    partitioner::EncodeOptions options;
    options.spilling = partitioner::Spilling::Greedy;
    const auto encoded = partitioner::encode(weights, grid_, options);
    if (!encoded.buckets) return {};
    const partitioner::Buckets& buckets = *encoded.buckets;
    // Cycles do not depend on values.
    const std::vector<Half> values(std::size_t(grid_.buckets() * buckets.values_per_bucket()));
    const auto travel = partitioner::travel_words(buckets.travel, grid_.splits.z);
    RepeatedRun result{batch_, plan_, {}, buckets.stats.moved_blocks};
    pass_.run({{&buckets, 1}, reinterpret_cast<const std::byte*>(values.data()), travel},
              bytes(in_.view()), bytes(out_.view()), {}, result.ledger);
    const double flops = 2.0 * double(point_.side) * double(point_.side) * double(batch_);
    const double seconds = double(result.ledger.total().value) / machine_.clock_hz;
    result.teraflops = flops * point_.density / seconds / 1e12;
    return result;
  }

 private:
  const PublishedPoint& point_;
  std::int64_t batch_;
  planner::Plan plan_;
  const device::Machine& machine_;
  Executor& executor_;
  partitioner::TileGrid grid_;
  runtime::SpmmPass pass_;
  Matrix<Half> in_, out_;
};

// Returns null if there is no plan for that batch or if it does not fit the tile memory.
std::unique_ptr<Bench> bench_of(const PublishedPoint& point, std::int64_t batch,
                                const Repetition& how, Executor& executor) {
  const planner::PlanResult planned =
      planner::plan(problem_of(point, batch), how.machine, measured_options());
  // PopLibs raises the bound if it finds no plan; such a plan does not fit beside the program.
  const double bound = kTemporaryShare * double(how.machine.tile_memory.value);
  if (!planned.has_plan || double(planned.plan.cost.temp.value) > bound) return nullptr;
  try {
    return std::make_unique<Bench>(point, batch, planned.plan, how.machine, executor);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::LimitExceeded) return nullptr;
    throw;
  }
}

}  // namespace

Repeated repeat(const PublishedPoint& point, const Repetition& how, Executor& executor) {
  Repeated result{point, {}};
  std::vector<std::optional<RepeatedRun>> best(std::size_t(how.patterns));
  std::vector<sparse::Csr<float>> patterns;
  for (std::int64_t seed = 1; seed <= how.patterns; ++seed)
    patterns.push_back(sparse::random_pattern(point.side, point.side, point.block, point.density,
                                              std::uint64_t(seed)));
  for (const std::int64_t batch : how.batches) {
    const auto bench = bench_of(point, batch, how, executor);
    if (!bench) continue;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      auto run = bench->run(patterns[i]);
      if (run && (!best[i] || run->teraflops > best[i]->teraflops)) best[i] = std::move(run);
    }
  }
  for (auto& run : best)
    if (run) result.runs.push_back(std::move(*run));
  std::ranges::stable_sort(result.runs, {}, &RepeatedRun::teraflops);
  return result;
}

}  // namespace tessera::tools
