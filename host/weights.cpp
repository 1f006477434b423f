#include "tessera/host/internal/weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/layer/prepared_update.hpp"
#include "tessera/sparse/check.hpp"

namespace tessera::host::internal {
namespace {

// Returns the rows that a list names; more if it does not ascend.
std::int64_t rows_of(std::span<const sparse::BlockAt> places) {
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < places.size(); ++i)
    rows += int{i == 0 || places[i].row != places[i - 1].row};
  return rows;
}

// Returns true where encoding costs less than changing cells: for elements that change in most
// rows, because a row crosses many cells. Measured at 4096 x 4096, density 0.1: changing 2 % of the
// elements takes half the time of encoding, 20 % 1.7 times.
bool is_cheaper_encoded(const sparse::Csr<float>& matrix, const sparse::PatternChange& change) {
  constexpr std::int64_t kFewestShare = 16, kRowShare = 2;
  const std::int64_t places = std::ssize(change.removed) + std::ssize(change.added);
  if (!matrix.block.is_element() || kFewestShare * places < matrix.blocks()) return false;
  return kRowShare * std::max(rows_of(change.removed), rows_of(change.added)) > matrix.block_rows();
}

void reserve(sparse::Csr<float>& matrix, std::int64_t blocks) {
  matrix.col.reserve(std::size_t(blocks));
  matrix.values.reserve(std::size_t(blocks * matrix.block.area()));
}

}  // namespace

HostWeights::HostWeights(const Problem& problem, const HostCpu& cpu, Executor& executor,
                         const HostOptions& options)
    : setting_{problem,           cpu, &executor, options.own_dense_kernel, options.blocks_in_row,
               options.reads_rows},
      options_(options),
      threads_(executor.threads()) {}

HostProblem HostWeights::host_problem(std::int64_t blocks) const {
  const Problem& problem = setting_.problem;
  HostProblem one{problem.size_in_blocks(), problem.block, blocks, problem.data_type,
                  options_.blocks_in_row};
  one.size.g = 1;
  return one;
}

HostSetting HostWeights::forecast_setting() const {
  return {setting_.cpu, threads_, options_.rates ? *options_.rates : default_host_rates()};
}

PassForms HostWeights::choose_forms(std::int64_t blocks) const {
  const HostProblem one = host_problem(blocks);
  PassForms forms;
  if (options_.reads_rows && packs_forward(one, setting_.problem.grad_w, forecast_setting()))
    forms[Pass::Fwd] = PassForm::Packed;
  for (const Pass pass : {Pass::Fwd, Pass::GradA, Pass::GradW}) {
    const auto sparse = forms[pass] == PassForm::Packed
                            ? forecast_packed(one, forecast_setting())
                            : forecast_sparse(pass, one, forecast_setting());
    if (options_.dense == DenseChoice::Always ||
        (options_.dense == DenseChoice::Auto &&
         forecast_dense(pass, one, forecast_setting()).seconds() < sparse.seconds()))
      forms[pass] = PassForm::Dense;
  }
  return forms;
}

// The number of blocks of the first group decides for all groups, so a report has one answer.
void HostWeights::set(std::vector<sparse::Csr<float>> given) {
  const PassForms forms = choose_forms(given[0].blocks());
  with_type(setting_.problem.data_type, [&]<class T>(T) {
    std::vector<HostGroup<T>> groups;
    groups.reserve(given.size());
    for (const sparse::Csr<float>& matrix : given) groups.emplace_back(setting_, matrix, forms);
    groups_ = std::move(groups);  // nothing throws from here on
  });
  given_ = std::move(given);
  sums_.forget();
  forms_ = forms;
}

void HostWeights::encode(HostUpdate& update) const {
  with_type(setting_.problem.data_type, [&]<class T>(T) {
    std::vector<HostGroup<T>> encoded;
    encoded.reserve(given_.size());
    for (std::size_t g = 0; g < given_.size(); ++g)
      if (g == update.group || update.forms != forms_)
        encoded.emplace_back(setting_, g == update.group ? update.changed : given_[g],
                             update.forms);
    update.encoded = std::move(encoded);
  });
}

HostUpdate HostWeights::prepare(const sparse::PatternChange& change, std::int64_t group,
                                Places places) {
  sparse::Csr<float>& given = given_[std::size_t(group)];
  HostUpdate update{.group = std::size_t(group), .forms = forms_};
  const bool is_encoded = is_cheaper_encoded(given, change);
  const bool is_merged = is_encoded && places == Places::Unused;
  if (is_merged)
    update.changed = sparse::merge_change(given, change);
  else
    update.change = sparse::place_change(given, change);
  if (!is_merged && update.change.empty()) {
    update.edits.emplace();  // none
    return update;
  }
  const std::int64_t blocks =
      given.blocks() + std::ssize(change.added) - std::ssize(change.removed);
  if (group == 0) update.forms = choose_forms(blocks);
  if (!is_encoded && update.forms == forms_)
    update.edits = visit(group, [&](auto& one) { return one.prepare(given, update.change); });
  if (update.edits) {
    reserve(given, blocks);
    return update;
  }
  if (!is_merged) update.changed = sparse::apply_change<float>(given, update.change);
  encode(update);
  return update;
}

void HostWeights::commit(HostUpdate&& update) {
  sums_.forget();
  if (update.edits) {
    visit(std::int64_t(update.group), [&](auto& one) { one.apply(*update.edits); });
    sparse::change_in_place(given_[update.group], update.change);
    return;
  }
  with_type(setting_.problem.data_type, [&]<class T>(T) {
    static_assert(std::is_nothrow_move_assignable_v<HostGroup<T>>);
    auto& encoded = std::get<std::vector<HostGroup<T>>>(update.encoded);
    if (update.forms == forms_)
      groups<T>()[update.group] = std::move(encoded.front());
    else
      groups<T>() = std::move(encoded);
  });
  given_[update.group] = std::move(update.changed);
  forms_ = update.forms;
}

void HostWeights::set_values(std::span<const float> values, std::int64_t group) {
  const auto copy = [&](std::span<float> part, std::int64_t first) {
    std::copy_n(values.begin() + first, part.size(), part.begin());
  };
  change_values(layer::ChangePart(copy), group);
}

void HostWeights::change_values(const layer::ChangePart& change, std::int64_t group) {
  sparse::Csr<float>& weights = given_[std::size_t(group)];
  sums_.forget();
  visit(group, [&](auto& one) {
    try {
      one.change_values(weights, change);
    } catch (...) {
      one.set_values(weights);
      throw;
    }
  });
}

std::int64_t HostWeights::values() const {
  std::int64_t sum = 0;
  for (const sparse::Csr<float>& weights : given_) sum += std::ssize(weights.values);
  return sum;
}

std::int64_t HostWeights::bytes() const {
  std::int64_t sum = 0;
  for (const sparse::Csr<float>& weights : given_)
    sum += list_bytes(weights.row_begin) + list_bytes(weights.col) + list_bytes(weights.values);
  const auto add = [&](const auto& groups) {
    for (const auto& group : groups) sum += group.bytes();
  };
  std::visit(add, groups_);
  return sum;
}

HostForecast HostWeights::forecast(Pass pass) const {
  const HostProblem one = host_problem(empty() ? 0 : given_[0].blocks());
  const auto of_form = [&] {
    switch (form(pass)) {
      case PassForm::Cells:
        return forecast_sparse(pass, one, forecast_setting());
      case PassForm::Dense:
        return forecast_dense(pass, one, forecast_setting());
      case PassForm::Packed:
        return forecast_packed(one, forecast_setting());
    }
    return HostForecast();
  };
  return double(setting_.problem.size.g) * of_form();
}

HostCells HostWeights::cells(Pass pass) const {
  return cells_of(pass, host_problem(empty() ? 0 : given_[0].blocks()), setting_.cpu, threads_);
}

}  // namespace tessera::host::internal
