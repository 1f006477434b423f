#include "tessera/arrays/optim/step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "tessera/base/error.hpp"
#include "tessera/train/optim/slots.hpp"

namespace tessera::arrays {
namespace {

using sparse::Csr;

template <class T>
std::vector<T>& values_of(Array<T>& array) {
  return std::visit([](auto& any) -> std::vector<T>& { return any.values; }, array);
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::InvalidArgument, "step of an optimiser: " + what);
}

template <class T>
void require_like(const Array<T>& weight, const Array<T>& other, const std::string& name) {
  check(other);
  if (shape_of(weight) != shape_of(other))
    refuse(fmt::format("the {} is {}, the weight {}; shapes must be the same", name,
                       fmt::join(shape_of(other), " x "), fmt::join(shape_of(weight), " x ")));
  const auto* a = std::get_if<Csr<T>>(&weight);
  const auto* b = std::get_if<Csr<T>>(&other);
  if (a != nullptr && b != nullptr && (a->row_begin != b->row_begin || a->col != b->col))
    refuse(fmt::format("the {} has another pattern than the csr weight", name));
}

template <class T>
void require_all_rows(const Array<T>& array, const std::string& name) {
  const auto* rows = std::get_if<RowSparse<T>>(&array);
  if (rows != nullptr && rows->stored() != rows->shape[0])
    refuse(fmt::format("the row_sparse {} stores {} of {} rows; all must be stored", name,
                       rows->stored(), rows->shape[0]));
}

bool storages_fit(Storage weight, Storage gradient, Storage state) {
  if (gradient == Storage::Csr) return weight == gradient && state == weight;
  if (weight == Storage::Csr) return gradient == Storage::RowSparse && state == weight;
  if (weight == Storage::Dense) return state == Storage::Dense;
  return gradient == Storage::RowSparse && state != Storage::Csr;
}

template <class T>
void check_step(const train::Optimiser& optimiser, const Array<T>& weight, const Array<T>& gradient,
                const State<T>& state) {
  check(optimiser);
  check(weight);
  require_like(weight, gradient, "gradient");
  require_all_rows(weight, "weight");
  const std::int64_t wanted = states_of(optimiser);
  if (std::ssize(state.arrays) != wanted)
    refuse(fmt::format("{} keeps {} arrays of state and {} were given; see make_state",
                       name_of(optimiser), wanted, state.arrays.size()));
  const Storage w = storage_of(weight), g = storage_of(gradient);
  Storage s = w;
  for (const Array<T>& array : state.arrays) {
    require_like(weight, array, "state");
    require_all_rows(array, "state");
    if (storage_of(array) != storage_of(state.arrays[0])) refuse("the states are stored unalike");
    s = storage_of(array);
  }
  if (!storages_fit(w, g, s))
    refuse(
        fmt::format("no rule for a {} weight with a {} gradient and {} state; see the table of "
                    "step()",
                    to_string(w), to_string(g), to_string(s)));
}

// The memory of the arrays of one step. A row-sparse weight stores all rows, so it has the layout
// of a dense one; a row of a csr consists of its stored elements.
template <class T>
struct Step {
  train::Optimiser optimiser;
  std::int64_t number;
  T *weight, *first, *second;
  const Csr<T>* pattern;  // null: whole rows

  void change(std::int64_t begin, std::int64_t count, const T* gradient) const {
    const auto at = [begin](T* array) { return array == nullptr ? nullptr : array + begin; };
    train::change_slots(optimiser, number,
                        train::Slots<T>{at(weight), gradient, at(first), at(second), count});
  }
  // Changes the weights of row r; `gathered` is a scratch buffer for one row.
  void change_row(std::int64_t r, std::span<const T> gradient, std::vector<T>& gathered) const {
    const auto size = static_cast<std::int64_t>(gradient.size());
    if (pattern == nullptr) return change(r * size, size, gradient.data());
    const std::int64_t begin = pattern->row_begin[r], count = pattern->row_begin[r + 1] - begin;
    for (std::int64_t k = 0; k < count; ++k) gathered[k] = gradient[pattern->col[begin + k]];
    change(begin, count, gathered.data());
  }
  // Changes the weights of rows [begin, end), whose gradient is zero.
  void change_absent(std::int64_t begin, std::int64_t end, std::int64_t size) const {
    const auto place = [&](std::int64_t r) {
      return pattern == nullptr ? r * size : pattern->row_begin[r];
    };
    change(place(begin), place(end) - place(begin), nullptr);
  }
};

template <class T>
void step_rows(const Step<T>& step, const RowSparse<T>& gradient) {
  std::vector<T> gathered(static_cast<std::size_t>(gradient.row_size()));
  for (std::int64_t i = 0; i < gradient.stored(); ++i)
    step.change_row(gradient.rows[i], gradient.row(i), gathered);
}

template <class T>
void step_all_rows(const Step<T>& step, const RowSparse<T>& gradient) {
  const std::int64_t size = gradient.row_size();
  std::vector<T> gathered(static_cast<std::size_t>(size));
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < gradient.stored(); ++i) {
    step.change_absent(next, gradient.rows[i], size);
    step.change_row(gradient.rows[i], gradient.row(i), gathered);
    next = gradient.rows[i] + 1;
  }
  step.change_absent(next, gradient.shape[0], size);
}

template <class T>
void step_standard_sgd(Step<T> step, const train::Sgd& rule, std::vector<T>& weight,
                       const RowSparse<T>& gradient) {
  const T shrink = T(1 - rule.learning_rate * step.optimiser.weight_decay);
  for (T& w : weight) w *= shrink;
  step.optimiser.weight_decay = 0;
  step_rows(step, gradient);
}

template <class T>
void step_row_sparse(const Step<T>& step, bool is_lazy, std::vector<T>& weight,
                     const RowSparse<T>& gradient) {
  const auto* sgd = std::get_if<train::Sgd>(&step.optimiser.rule);
  if (is_lazy)
    step_rows(step, gradient);
  else if (sgd != nullptr && sgd->momentum == 0)
    step_standard_sgd(step, *sgd, weight, gradient);
  else
    step_all_rows(step, gradient);
}

template <class T>
Array<T> zeros_like(const Array<T>& weight) {
  Array<T> zeros = weight;
  std::ranges::fill(values_of(zeros), T(0));
  return zeros;
}

}  // namespace

template <class T>
State<T> make_state(const train::Optimiser& optimiser, const Array<T>& weight) {
  check(optimiser);
  check(weight);
  require_all_rows(weight, "weight");
  State<T> state;
  for (std::int64_t i = 0; i < states_of(optimiser); ++i)
    state.arrays.push_back(zeros_like(weight));
  return state;
}

template <class T>
void step(const train::Optimiser& optimiser, Array<T>& weight, const Array<T>& gradient,
          State<T>& state) {
  check_step(optimiser, weight, gradient, state);
  const auto array = [&](std::size_t i) {
    return i < state.arrays.size() ? values_of(state.arrays[i]).data() : nullptr;
  };
  std::vector<T>& w = values_of(weight);
  const Step<T> now{optimiser, ++state.steps, w.data(),
                    array(0),  array(1),      std::get_if<Csr<T>>(&weight)};
  if (const auto* rows = std::get_if<RowSparse<T>>(&gradient)) {
    const bool stored_alike =
        state.arrays.empty() || storage_of(weight) == storage_of(state.arrays[0]);
    return step_row_sparse(now, optimiser.lazy && stored_alike, w, *rows);
  }
  const auto* csr = std::get_if<Csr<T>>(&gradient);
  const std::vector<T>& all =
      csr != nullptr ? csr->values : std::get<DenseArray<T>>(gradient).values;
  now.change(0, std::ssize(w), all.data());
}

template State<float> make_state(const train::Optimiser&, const Array<float>&);
template State<double> make_state(const train::Optimiser&, const Array<double>&);
template void step(const train::Optimiser&, Array<float>&, const Array<float>&, State<float>&);
template void step(const train::Optimiser&, Array<double>&, const Array<double>&, State<double>&);

}  // namespace tessera::arrays
