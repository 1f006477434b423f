#include "tessera/study/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/read_options.hpp"
#include "tessera/study/break_even.hpp"
#include "tessera/study/verdict.hpp"

namespace tessera::study {
namespace {

// A matrix of a file with all values 1, or the reason why it cannot be used.
struct FileLayer {
  std::string name;
  sparse::Csr<double> ones;
  std::string fault;
};

bool is_layer(const io::TensorInfo& tensor) {
  using enum io::ElementType;
  constexpr io::ElementType kTypes[] = {F64, F32, F16, BF16};
  return tensor.shape.size() == 2 && std::ranges::find(kTypes, tensor.type) != std::end(kTypes);
}

// Reads one layer. An error concerns this layer only, so its text is kept.
FileLayer layer_of(const std::string& name, const std::function<sparse::Csr<double>()>& read) {
  FileLayer layer{name, {}, {}};
  try {
    layer.ones = read();
    if (layer.ones.rows == 0 || layer.ones.cols == 0)
      layer.fault = fmt::format("the matrix is {} x {}; a layer needs at least 1 x 1",
                                layer.ones.rows, layer.ones.cols);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    layer.fault = error.what();
  }
  std::ranges::fill(layer.ones.values, 1.0);
  return layer;
}

// Reads a file with one matrix, which every error concerns.
FileLayer only_layer(const std::string& file) {
  FileLayer layer;
  try {
    layer = {file, io::read_matrix(file, {.keeps_order = false}).matrix, {}};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Internal) throw;
    throw Error(ErrorCode::BadInput, error.what());
  }
  if (layer.ones.rows == 0 || layer.ones.cols == 0)
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: the matrix is {} x {}; a layer needs at least 1 x 1", file,
                            layer.ones.rows, layer.ones.cols));
  std::ranges::fill(layer.ones.values, 1.0);
  return layer;
}

[[noreturn]] void refuse_tensor(const Advice& advice, const std::string& tensor,
                                const std::vector<io::TensorInfo>& tensors) {
  std::string names;
  for (const io::TensorInfo& one : tensors)
    if (is_layer(one)) names += (names.empty() ? "" : ", ") + one.name;
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: there is no matrix \"{}\"; its matrices of floating-point numbers "
                          "are {}",
                          advice.file, tensor, names.empty() ? "none" : names));
}

// Calls use(layer) for every layer of the file, one after the other, because each may take much
// more memory than its bytes in the file. Stops after use() has returned false.
void for_each_layer(Advice& advice, const std::string& tensor,
                    const std::function<bool(const FileLayer&)>& use) {
  const std::string& file = advice.file;
  if (!file.ends_with(".safetensors")) {
    if (!tensor.empty() && tensor != file)
      throw Error(ErrorCode::BadInput, file +
                                           ": the file has one matrix without a name; --tensor "
                                           "is for .safetensors files");
    use(only_layer(file));
    return;
  }
  const std::string bytes = read_file(file);
  const std::vector<io::TensorInfo> tensors = io::list_safetensors(bytes, file);
  const auto is_asked = [&](const io::TensorInfo& one) {
    return is_layer(one) && (tensor.empty() || one.name == tensor);
  };
  if (!tensor.empty() && std::ranges::none_of(tensors, is_asked))
    refuse_tensor(advice, tensor, tensors);
  for (const io::TensorInfo& one : tensors)
    if (!is_layer(one) && tensor.empty()) advice.left_out.push_back(one.name);
  for (const io::TensorInfo& one : tensors) {
    if (!is_asked(one)) continue;
    const auto read = [&] { return io::to_csr(io::read_safetensors(bytes, file, one.name), file); };
    if (!use(layer_of(one.name, read))) return;
  }
}

LayerAdvice advise_layer(const Target& target, Problem asked, const FileLayer& layer,
                         bool in_words) {
  LayerAdvice advice{
      .outputs = layer.ones.rows, .inputs = layer.ones.cols, .non_zeros = layer.ones.blocks()};
  if (layer.fault.empty()) {
    asked.size.x = layer.ones.rows;
    asked.size.y = layer.ones.cols;
    asked.block = {1, 1};
    advice = advise(*target.expected(asked), layer.ones, in_words);
  }
  advice.name = layer.name;
  advice.fault = layer.fault;
  return advice;
}

// Returns a line about the distribution of non-zeros over the rows or columns.
std::string spread_line(const char* what, const std::vector<std::int64_t>& counts) {
  const auto [least, most] = std::ranges::minmax_element(counts);
  double sum = 0, squares = 0;
  for (const std::int64_t n : counts) {
    sum += double(n);
    squares += double(n) * double(n);
  }
  const double mean = sum / double(counts.size());
  const double deviation = std::sqrt(std::max(0.0, squares / double(counts.size()) - mean * mean));
  return fmt::format("{:<10}{:>12}{:>10}{:>12.2f}{:>10}{:>14.2f}{:>14.2f}\n", what, counts.size(),
                     *least, mean, *most, mean > 0 ? double(*most) / mean : 0,
                     mean > 0 ? deviation / mean : 0);
}

std::string pattern_text(const sparse::Csr<double>& m) {
  std::vector<std::int64_t> rows(std::size_t(m.rows)), columns(std::size_t(m.cols));
  for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = m.row_begin[r + 1] - m.row_begin[r];
  for (const std::int32_t column : m.col) ++columns[std::size_t(column)];
  return fmt::format("{:<10}{:>12}{:>10}{:>12}{:>10}{:>14}{:>14}\n", "non-zeros", "count", "least",
                     "mean", "most", "most / mean", "deviation") +
         spread_line("rows", rows) + spread_line("columns", columns);
}

}  // namespace

report::Better LayerAdvice::better() const {
  const Cost* sparse = cheapest_of(blocks);
  return report::better_of(sparse == nullptr ? std::nullopt : sparse->value, dense.value, error);
}

const Cost* LayerAdvice::best() const {
  if (better() == report::Better::Sparse) return cheapest_of(blocks);
  return dense.value ? &dense : nullptr;
}

bool Advice::has_plan() const {
  return std::ranges::any_of(machines, [](const MachineAdvice& machine) {
    return std::ranges::any_of(machine.layers,
                               [](const LayerAdvice& layer) { return layer.best() != nullptr; });
  });
}

LayerAdvice advise(CostModel& model, const sparse::Csr<double>& ones, bool in_words) {
  LayerAdvice advice{.outputs = ones.rows, .inputs = ones.cols, .non_zeros = ones.blocks()};
  advice.blocks = in_square_blocks(model, {.block = {1, 1}, .pattern = &ones});
  advice.dense = model.dense();
  const Cost* best = cheapest_of(advice.blocks);
  if (best == nullptr) return advice;
  if (best->density >= 1) advice.dense = best_dense(model, {.block = best->block}, *best);
  advice.error = model.error(*best, advice.dense);
  model.begin_at(*best);
  if (in_words)
    advice.verdict = verdict_text(
        compare(model, {.block = best->block, .density = best->density, .pattern = &ones}));
  if (!advice.dense.value) return advice;
  advice.pays_up_to =
      break_even(model, {.block = best->block}, *advice.dense.value * (1 - advice.error));
  return advice;
}

Advice advise(const std::string& file, const std::string& tensor, const Problem& asked,
              const std::vector<Target>& targets,
              const std::function<bool(const std::string&, const std::string&)>& begins,
              const std::function<void(const Advice&)>& after_each) {
  Advice advice{.file = file, .asked = asked};
  for (const Target& target : targets)
    advice.machines.push_back({target.name, target.origin(), target.note(), {}});
  const bool in_words = !tensor.empty() || !file.ends_with(".safetensors");
  bool goes_on = true;
  for_each_layer(advice, tensor, [&](const FileLayer& layer) {
    if (in_words && layer.fault.empty()) advice.pattern = pattern_text(layer.ones);
    for (std::size_t m = 0; m < targets.size(); ++m) {
      goes_on = begins(layer.name, targets[m].name);
      if (!goes_on) return false;
      advice.machines[m].layers.push_back(advise_layer(targets[m], asked, layer, in_words));
      after_each(advice);
    }
    return true;
  });
  advice.is_complete = goes_on;
  return advice;
}

}  // namespace tessera::study
