#include "tessera/runtime/embedding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/codelets/transpose.hpp"
#include "tessera/runtime/internal/embedding_pass.hpp"
#include "tessera/runtime/internal/layout_passes.hpp"

namespace tessera::runtime {

using internal::EmbeddingLists;
using internal::EmbeddingSizes;

namespace {

[[noreturn]] void refuse_embedding(const std::string& what) {
  throw Error(ErrorCode::InvalidArgument, "embedding: " + what);
}

// Returns the specification of the forward layout of a plan with buckets.
PassSpec embedding_spec(const Problem& problem, const planner::Plan& plan,
                        const device::Machine& machine) {
  if (plan.dense)
    refuse_embedding("the plan of the layer is dense and has no buckets; plan with useDense false");
  if (problem.size.g != 1)
    refuse_embedding(fmt::format("the layer has {} groups; it must have one", problem.size.g));
  return internal::spec_of(problem, plan, internal::checked_grid(problem, plan, machine),
                           Pass::Fwd);
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

// Copies a row of as many columns as both matrices have.
template <class T>
void copy_row(MatrixView<const T> from, std::int64_t row, MatrixView<T> to, std::int64_t to_row) {
  const std::int64_t cols = std::min(from.cols, to.cols);
  if (from.rows_are_contiguous() && to.rows_are_contiguous()) {
    std::copy_n(from.row(row), cols, to.row(to_row));
  } else {
    for (std::int64_t c = 0; c < cols; ++c) to(to_row, c) = from(row, c);
  }
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
        slice(spec, sizes, machine, mode, executor),
        update(spec, sizes, machine, mode, executor) {}

  template <class T>
  void check(std::span<const std::int64_t> ids, std::int64_t rows, std::int64_t cols,
             const char* call, const RunOptions& options) const;
  std::vector<EmbeddingRun> runs_of(std::span<const std::int64_t> ids) const;

  template <class T>
  bool look_up(std::span<const std::int64_t> ids, MatrixView<T> out, const RunOptions& options,
               device::Ledger& ledger);
  template <class T>
  bool add(std::span<const std::int64_t> ids, MatrixView<const T> slices, float scale,
           const RunOptions& options, device::Ledger& ledger);

  // Returns the encoded matrix; `words` keeps the words that steer propagation.
  template <class T>
  BucketImage image(std::vector<std::uint32_t>& words) const {
    const T* const values = layer.template encoded_values<T>().data();  // refuses without weights
    words = partitioner::travel_words(layer.buckets().travel, spec.grid.splits.z);
    return {{&layer.buckets(), 1}, reinterpret_cast<const std::byte*>(values), words};
  }

  FullyConnected& layer;
  Problem problem;
  PassSpec spec;
  EmbeddingSizes sizes;
  internal::EmbeddingSlice slice;
  internal::EmbeddingUpdate update;

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
                             std::int64_t cols, const char* call, const RunOptions& options) const {
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
  if (options.self_check != nullptr || options.fault || options.repair || options.tiles != nullptr)
    refuse_embedding(
        fmt::format("{}: this program has no self-check, takes no fault and keeps no "
                    "figures of tiles",
                    call));
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
bool Embedding::State::look_up(std::span<const std::int64_t> ids, MatrixView<T> out,
                               const RunOptions& options, device::Ledger& ledger) {
  check<T>(ids, out.rows, out.cols, "embedding_slice", options);
  std::vector<std::uint32_t> words;
  const BucketImage encoded = image<T>(words);
  const std::int64_t count = spec.grid.size.y;
  const std::span<T> columns = scratch<T>(kColumns, count * sizes.ids);
  const std::span<T> rows = scratch<T>(kRows, count * sizes.ids);
  ledger.steps.clear();
  for (const EmbeddingRun& run : runs_of(ids)) {
    device::Ledger of_run;
    const bool finished = slice.run(encoded, run.lists,
                                    reinterpret_cast<std::byte*>(columns.data()), options, of_run);
    ledger.steps.insert(ledger.steps.end(), of_run.steps.begin(), of_run.steps.end());
    if (!finished) return false;
    codelets::transpose(columns.data(), sizes.ids, count, sizes.ids, rows.data(), count);
    const MatrixView<const T> found{rows.data(), sizes.ids, count, count, 1};
    for (std::size_t i = 0; i < run.ids.size(); ++i)
      copy_row(found, std::int64_t(i), out, std::int64_t(run.ids[i]));
  }
  return true;
}

template <class T>
bool Embedding::State::add(std::span<const std::int64_t> ids, MatrixView<const T> slices,
                           float scale, const RunOptions& options, device::Ledger& ledger) {
  check<T>(ids, slices.rows, slices.cols, "embedding_update_add", options);
  if (!std::isfinite(scale))
    refuse_embedding(
        fmt::format("embedding_update_add: the scale is {}; it must be finite", scale));
  std::vector<std::uint32_t> words;
  BucketImage encoded = image<T>(words);
  const std::span<const T> before = layer.template encoded_values<T>();
  std::span<T> values = scratch<T>(kValues, std::ssize(before));
  std::span<T> updated = scratch<T>(kUpdated, std::ssize(before));
  std::copy(before.begin(), before.end(), values.begin());
  const std::int64_t count = spec.grid.size.y;
  const std::span<T> columns = scratch<T>(kColumns, count * sizes.ids);
  const std::span<T> rows = scratch<T>(kRows, count * sizes.ids);
  ledger.steps.clear();
  for (const EmbeddingRun& run : runs_of(ids)) {
    std::fill(rows.begin(), rows.end(), T());
    const MatrixView<T> given{rows.data(), sizes.ids, count, count, 1};
    for (std::size_t i = 0; i < run.ids.size(); ++i)
      copy_row(slices, std::int64_t(run.ids[i]), given, std::int64_t(i));
    codelets::transpose(rows.data(), count, sizes.ids, count, columns.data(), sizes.ids);
    encoded.values = reinterpret_cast<const std::byte*>(values.data());
    device::Ledger of_run;
    const bool finished =
        update.run(encoded, run.lists, reinterpret_cast<const std::byte*>(columns.data()), scale,
                   reinterpret_cast<std::byte*>(updated.data()), options, of_run);
    ledger.steps.insert(ledger.steps.end(), of_run.steps.begin(), of_run.steps.end());
    if (!finished) return false;
    std::swap(values, updated);
  }
  if (!ids.empty()) layer.template set_encoded_values<T>(std::span<const T>(values));
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
                                const RunOptions& options, device::Ledger& ledger) {
  return state_->look_up<T>(ids, out, options, ledger);
}

template <class T>
device::Ledger Embedding::embedding_slice(std::span<const std::int64_t> ids, MatrixView<T> out) {
  device::Ledger ledger;
  static_cast<void>(embedding_slice<T>(ids, out, {}, ledger));  // it cannot be stopped
  return ledger;
}

template <class T>
bool Embedding::embedding_update_add(std::span<const std::int64_t> ids, MatrixView<const T> slices,
                                     float scale, const RunOptions& options,
                                     device::Ledger& ledger) {
  return state_->add<T>(ids, slices, scale, options, ledger);
}

template <class T>
device::Ledger Embedding::embedding_update_add(std::span<const std::int64_t> ids,
                                               MatrixView<const T> slices, float scale) {
  device::Ledger ledger;
  static_cast<void>(embedding_update_add<T>(ids, slices, scale, {}, ledger));
  return ledger;
}

EmbeddingOptions Embedding::sizes() const { return {state_->sizes.ids, state_->sizes.slots}; }
const Program& Embedding::slice_program() const { return state_->slice.program(); }
const Program& Embedding::update_program() const { return state_->update.program(); }
Bytes Embedding::high_water() const {
  return std::max(state_->slice.high_water(), state_->update.high_water());
}

#define TESSERA_EMBEDDING(T)                                                                   \
  template device::Ledger Embedding::embedding_slice(std::span<const std::int64_t>,            \
                                                     MatrixView<T>);                           \
  template bool Embedding::embedding_slice(std::span<const std::int64_t>, MatrixView<T>,       \
                                           const RunOptions&, device::Ledger&);                \
  template device::Ledger Embedding::embedding_update_add(std::span<const std::int64_t>,       \
                                                          MatrixView<const T>, float);         \
  template bool Embedding::embedding_update_add(std::span<const std::int64_t>,                 \
                                                MatrixView<const T>, float, const RunOptions&, \
                                                device::Ledger&);
TESSERA_EMBEDDING(float)
TESSERA_EMBEDDING(Half)
TESSERA_EMBEDDING(BFloat16)
#undef TESSERA_EMBEDDING

}  // namespace tessera::runtime
