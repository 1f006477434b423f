#include "tessera/runtime/embedding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/codelets/transpose.hpp"
#include "tessera/runtime/internal/embedding_pass.hpp"
#include "tessera/runtime/internal/joined_runs.hpp"
#include "tessera/runtime/internal/layer_check.hpp"
#include "tessera/runtime/internal/own_pass.hpp"
#include "tessera/runtime/internal/padded.hpp"
#include "tessera/runtime/internal/weight_layout.hpp"
#include "tessera/sparse/row_values.hpp"
#include "tessera/verify/repair.hpp"

namespace tessera::runtime {

using internal::EmbeddingLists;
using internal::EmbeddingSizes;

namespace {

[[noreturn]] void refuse_embedding(const std::string& what) { throw_invalid("embedding: " + what); }

[[noreturn]] void throw_wrong(const PassOptions& options, std::size_t row,
                              const std::string& what) {
  options.self_check->wrong_rows = 1;
  options.self_check->first_wrong_row = std::int64_t(row);
  throw Error(ErrorCode::CheckFailed, "self-check: " + what);
}

// Returns the specification of the forward layout of a plan with buckets.
PassSpec embedding_spec(const Problem& problem, const planner::Plan& plan,
                        const device::Machine& machine) {
  if (plan.dense)
    refuse_embedding("the plan of the layer is dense and has no buckets; plan with useDense false");
  PassSpec spec =
      internal::spec_of(problem, plan, internal::checked_grid(problem, plan, machine), Pass::Fwd);
  spec.groups = 1;  // a call serves one group, and all have the same programs
  return spec;
}

EmbeddingSizes embedding_sizes(const Problem& problem, const planner::Plan& plan,
                               const EmbeddingOptions& options) {
  if (options.ids < 0 || options.rows_per_part < 0)
    refuse_embedding(fmt::format("ids is {} and rows_per_part is {}; they must be 0 or more",
                                 options.ids, options.rows_per_part));
  EmbeddingSizes sizes{options.ids > 0 ? options.ids : problem.size.z, options.rows_per_part};
  if (sizes.slots > 0) return sizes;
  const double mean = double(sizes.ids) / double(plan.partition.x);
  const auto slots = static_cast<std::int64_t>(std::ceil(mean + 4 * std::sqrt(mean) + 1));
  sizes.slots = std::min(slots, std::min(sizes.ids, problem.size.x));
  return sizes;
}

template <class T>
MatrixView<T> row_of(MatrixView<T> matrix, std::size_t row, std::int64_t cols) {
  return matrix.sub({std::int64_t(row), std::int64_t(row) + 1}, {0, cols});
}

// The ids of a call, dealt to runs.
struct EmbeddingRun {
  EmbeddingLists lists;
  std::vector<std::size_t> ids;  // positions of the ids of the run in the call
};

}  // namespace

struct Embedding::State {
  State(FullyConnected& of, const Problem& p, const planner::Plan& plan,
        const device::Machine& machine, device::ExchangeMode mode, Executor& executor,
        const EmbeddingOptions& options)
      : layer(of),
        problem(p),
        spec(embedding_spec(p, plan, machine)),
        sizes(embedding_sizes(p, plan, options)),
        slice(machine, mode, executor, spec, sizes),
        update(machine, mode, executor, spec, sizes) {}

  template <class T>
  void check(std::span<const std::int64_t> ids, std::int64_t rows, std::int64_t cols,
             const char* call) const;
  std::vector<EmbeddingRun> runs_of(std::span<const std::int64_t> ids) const;

  template <class T>
  bool look_up(std::span<const std::int64_t> ids, MatrixView<T> out, std::int64_t group,
               const PassOptions& options, device::Ledger& ledger);
  template <class T>
  bool add(std::span<const std::int64_t> ids, MatrixView<const T> slices, float scale,
           std::int64_t group, const PassOptions& options, device::Ledger& ledger);

  // Compare results with those of this computer. Throw Error{CheckFailed} for another one.
  template <class T>
  void check_rows(std::span<const std::int64_t> ids, MatrixView<T> out, std::int64_t group,
                  const PassOptions& options) const;
  template <class T>
  void check_values(const std::vector<T>& wanted, std::span<const T> values, std::int64_t group,
                    const PassOptions& options) const;
  void note_damage(const device::Damage& damage, verify::Checksums& sums) const;

  // Returns the encoded matrix of a group; `words` keeps the words that steer propagation.
  template <class T>
  BucketImage image(std::int64_t group, std::vector<std::uint32_t>& words) const {
    const T* const values = layer.template encoded_values<T>(group).data();  // needs weights
    const partitioner::Buckets& buckets = layer.buckets(group);
    words = partitioner::travel_words(buckets.travel, spec.grid.splits.z);
    return {{&buckets, 1}, reinterpret_cast<const std::byte*>(values), words};
  }

  FullyConnected& layer;
  Problem problem;
  PassSpec spec;
  EmbeddingSizes sizes;
  internal::OwnPass<internal::EmbeddingSlice> slice;
  internal::OwnPass<internal::EmbeddingUpdate> update;

  // Returns storage for values, which later calls use again.
  enum Scratch { kRows, kColumns, kValues, kUpdated };
  template <class T>
  std::span<T> scratch(Scratch which, std::int64_t count) {
    std::vector<std::byte>& bytes = kept_[which];
    if (bytes.size() < std::size_t(count) * sizeof(T)) bytes.resize(std::size_t(count) * sizeof(T));
    return {reinterpret_cast<T*>(bytes.data()), std::size_t(count)};
  }

 private:
  std::array<std::vector<std::byte>, 4> kept_;
};

template <class T>
void Embedding::State::check(std::span<const std::int64_t> ids, std::int64_t rows,
                             std::int64_t cols, const char* call) const {
  if (data_type_of<T>() != problem.data_type)
    refuse_embedding(fmt::format("{}: slices are {} but the layer is {}", call,
                                 to_string(data_type_of<T>()), to_string(problem.data_type)));
  if (rows != std::ssize(ids) || cols != problem.size.y)
    refuse_embedding(fmt::format("{}: slices are {} x {}; {} ids of this layer need {} x {}", call,
                                 rows, cols, ids.size(), ids.size(), problem.size.y));
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= problem.size.x)
      refuse_embedding(
          fmt::format("{}: id {} is {}; it must be in 0..{}", call, i, ids[i], problem.size.x - 1));
}

// Every id goes to the first run that has a place for it.
std::vector<EmbeddingRun> Embedding::State::runs_of(std::span<const std::int64_t> ids) const {
  const std::int64_t step = spec.grid.x_range(0).size();
  std::vector<EmbeddingRun> runs;
  std::vector<std::unordered_map<std::int64_t, std::int32_t>> place_of;  // by run: id -> place
  std::vector<std::vector<std::int64_t>> used;                           // by run and part: slots
  std::size_t first_open = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t part = ids[i] / step;
    while (first_open < runs.size() && std::ssize(runs[first_open].ids) == sizes.ids) ++first_open;
    for (std::size_t run = first_open;; ++run) {
      if (run == runs.size()) {
        runs.push_back(
            {{std::vector<std::int32_t>(std::size_t(sizes.ids), -1),
              std::vector<std::int32_t>(std::size_t(spec.grid.splits.x * sizes.slots), -1)},
             {}});
        place_of.emplace_back();
        used.emplace_back(std::size_t(spec.grid.splits.x), 0);
      }
      EmbeddingRun& to = runs[run];
      if (std::ssize(to.ids) == sizes.ids) continue;
      auto place = place_of[run].find(ids[i]);
      if (place == place_of[run].end()) {
        std::int64_t& slots = used[run][std::size_t(part)];
        if (slots == sizes.slots) continue;
        const std::int64_t at = part * sizes.slots + slots++;
        to.lists.rows[std::size_t(at)] = std::int32_t(ids[i] - part * step);
        place = place_of[run].emplace(ids[i], std::int32_t(at)).first;
      }
      to.lists.places[to.ids.size()] = place->second;
      to.ids.push_back(i);
      break;
    }
  }
  return runs;
}

template <class T>
bool has_same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

void Embedding::State::note_damage(const device::Damage& damage, verify::Checksums& sums) const {
  const verify::MemoryDamage found = internal::memory_damage({damage});
  if (sums.damaged == 0) sums.first_damage = found.first;
  sums.damaged += found.slots;
}

template <class T>
void Embedding::State::check_rows(std::span<const std::int64_t> ids, MatrixView<T> out,
                                  std::int64_t group, const PassOptions& options) const {
  const sparse::Csr<float>& weights = layer.weights(group);
  std::vector<T> wanted(static_cast<std::size_t>(problem.size.y));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::fill(wanted.begin(), wanted.end(), T());
    sparse::for_each_in_row(weights, ids[i], [&](std::size_t value, std::int64_t column) {
      if (column < std::ssize(wanted)) wanted[std::size_t(column)] = T(weights.values[value]);
    });
    for (std::int64_t y = 0; y < std::ssize(wanted); ++y, ++options.self_check->compared) {
      const T want = wanted[std::size_t(y)], got = out(std::int64_t(i), y);
      if (!has_same_bits(want, got))
        throw_wrong(options, i,
                    fmt::format("embedding_slice: row {} of the result, id {}, column {} is {}; "
                                "the weights have {}",
                                i, ids[i], y, float(got), float(want)));
    }
  }
}

template <class T>
void Embedding::State::check_values(const std::vector<T>& wanted, std::span<const T> values,
                                    std::int64_t group, const PassOptions& options) const {
  const std::vector<std::int64_t> positions = layer.value_positions(group);
  for (std::size_t i = 0; i < wanted.size(); ++i, ++options.self_check->compared) {
    const T got = values[std::size_t(positions[i])];
    if (!has_same_bits(wanted[i], got))
      throw_wrong(options, i,
                  fmt::format("embedding_update_add: value {} of the weights is {}; it must be {}",
                              i, float(got), float(wanted[i])));
  }
}

template <class T>
bool Embedding::State::look_up(std::span<const std::int64_t> ids, MatrixView<T> out,
                               std::int64_t group, const PassOptions& options,
                               device::Ledger& ledger) {
  check<T>(ids, out.rows, out.cols, "embedding_slice");
  std::vector<std::uint32_t> words;
  const BucketImage encoded = image<T>(group, words);
  const std::int64_t count = spec.grid.size.y;
  const std::span<T> columns = scratch<T>(kColumns, count * sizes.ids);
  const std::span<T> rows = scratch<T>(kRows, count * sizes.ids);
  verify::Checksums sums{.exact = true};
  internal::RunSeries series(options, ledger);
  for (const EmbeddingRun& run : runs_of(ids)) {
    const bool finished = series.run([&](const PassOptions& own, device::Ledger& of_run) {
      return slice.run(own, of_run, encoded, run.lists,
                       reinterpret_cast<std::byte*>(columns.data()));
    });
    if (!finished) return false;
    note_damage(slice.damage(), sums);
    codelets::transpose(columns.data(), sizes.ids, count, sizes.ids, rows.data(), count);
    const MatrixView<const T> found{rows.data(), sizes.ids, count, count, 1};
    for (std::size_t i = 0; i < run.ids.size(); ++i)
      internal::copy_rows(row_of(found, i, out.cols), row_of(out, run.ids[i], out.cols));
  }
  if (options.self_check == nullptr) return true;
  *options.self_check = sums;
  check_rows(ids, out, group, options);
  return true;
}

// Adds the slices of a run to the values that it must give: the sum of a row's slices is taken in
// float and rounded to the type, and so is the new value.
template <class T>
void add_on_host(const EmbeddingRun& run, std::span<const std::int64_t> ids,
                 MatrixView<const T> slices, float scale, const sparse::Csr<float>& weights,
                 std::vector<T>& values) {
  std::map<std::int64_t, std::vector<float>> sums;  // by id
  for (const std::size_t i : run.ids) {
    std::vector<float>& sum = sums[ids[i]];
    sum.resize(std::size_t(slices.cols));
    for (std::int64_t y = 0; y < slices.cols; ++y)
      sum[std::size_t(y)] += float(slices(std::int64_t(i), y));
  }
  std::vector<float> added(values.size());
  for (const auto& [id, sum] : sums)
    sparse::for_each_in_row(weights, id, [&](std::size_t value, std::int64_t column) {
      if (column < std::ssize(sum)) added[value] = float(T(sum[std::size_t(column)]));
    });
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = T(float(values[i]) + scale * added[i]);
}

template <class T>
bool Embedding::State::add(std::span<const std::int64_t> ids, MatrixView<const T> slices,
                           float scale, std::int64_t group, const PassOptions& options,
                           device::Ledger& ledger) {
  check<T>(ids, slices.rows, slices.cols, "embedding_update_add");
  if (!std::isfinite(scale))
    refuse_embedding(
        fmt::format("embedding_update_add: the scale is {}; it must be finite", scale));
  std::vector<std::uint32_t> words;
  BucketImage encoded = image<T>(group, words);
  const std::span<const T> before = layer.template encoded_values<T>(group);
  std::span<T> values = scratch<T>(kValues, std::ssize(before));
  std::span<T> updated = scratch<T>(kUpdated, std::ssize(before));
  std::copy(before.begin(), before.end(), values.begin());
  const std::int64_t count = spec.grid.size.y;
  const std::span<T> columns = scratch<T>(kColumns, count * sizes.ids);
  const std::span<T> rows = scratch<T>(kRows, count * sizes.ids);
  const sparse::Csr<float>& weights = layer.weights(group);
  std::vector<T> wanted;  // of a self-check
  if (options.self_check != nullptr)
    for (const float value : weights.values) wanted.push_back(T(value));
  verify::Checksums sums{.exact = true};
  internal::RunSeries series(options, ledger);
  for (EmbeddingRun& run : runs_of(ids)) {
    internal::sort_places(sizes, spec.grid.splits.x, run.lists);
    std::fill(rows.begin(), rows.end(), T());
    const MatrixView<T> given{rows.data(), sizes.ids, count, count, 1};
    for (std::size_t i = 0; i < run.ids.size(); ++i)
      internal::copy_rows(row_of(slices, run.ids[i], slices.cols), row_of(given, i, slices.cols));
    codelets::transpose(rows.data(), count, sizes.ids, count, columns.data(), sizes.ids);
    encoded.values = reinterpret_cast<const std::byte*>(values.data());
    const bool finished = series.run([&](const PassOptions& own, device::Ledger& of_run) {
      return update.run(own, of_run, encoded, run.lists,
                        reinterpret_cast<const std::byte*>(columns.data()), scale,
                        reinterpret_cast<std::byte*>(updated.data()));
    });
    if (!finished) return false;
    note_damage(update.damage(), sums);
    if (options.self_check != nullptr) add_on_host(run, ids, slices, scale, weights, wanted);
    std::swap(values, updated);
  }
  if (options.self_check != nullptr) {
    *options.self_check = sums;
    check_values(wanted, std::span<const T>(values), group, options);
  }
  if (!ids.empty()) {
    std::vector<float> changed;
    for (const std::int64_t position : layer.value_positions(group))
      changed.push_back(float(values[std::size_t(position)]));
    layer.set_values(changed, group);
  }
  return true;
}

Embedding::Embedding(FullyConnected& layer, const Problem& problem, const planner::Plan& plan,
                     const device::Machine& machine, device::ExchangeMode mode, Executor& executor,
                     const EmbeddingOptions& options)
    : state_(std::make_unique<State>(layer, problem, plan, machine, mode, executor, options)) {}
Embedding::~Embedding() = default;
Embedding::Embedding(Embedding&&) noexcept = default;

template <class T>
bool Embedding::embedding_slice(std::span<const std::int64_t> ids, MatrixView<T> out,
                                const PassOptions& options, device::Ledger& ledger,
                                std::int64_t group) {
  return verify::run_and_repair(options, [&](const PassOptions& once) {
    return state_->look_up<T>(ids, out, group, once, ledger);
  });
}

template <class T>
bool Embedding::embedding_update_add(std::span<const std::int64_t> ids, MatrixView<const T> slices,
                                     float scale, const PassOptions& options,
                                     device::Ledger& ledger, std::int64_t group) {
  return verify::run_and_repair(options, [&](const PassOptions& once) {
    return state_->add<T>(ids, slices, scale, group, once, ledger);
  });
}

Bytes Embedding::high_water() const {
  return std::max(state_->slice.high_water(), state_->update.high_water());
}

#define TESSERA_EMBEDDING(T)                                                                    \
  template bool Embedding::embedding_slice(std::span<const std::int64_t>, MatrixView<T>,        \
                                           const PassOptions&, device::Ledger&, std::int64_t);  \
  template bool Embedding::embedding_update_add(std::span<const std::int64_t>,                  \
                                                MatrixView<const T>, float, const PassOptions&, \
                                                device::Ledger&, std::int64_t);
TESSERA_EMBEDDING(float)
TESSERA_EMBEDDING(Half)
TESSERA_EMBEDDING(BFloat16)
#undef TESSERA_EMBEDDING

}  // namespace tessera::runtime
