#include "tessera/tools/tessera/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/codelets/cost/method.hpp"
#include "tessera/io/array.hpp"
#include "tessera/tools/block_study.hpp"
#include "tessera/tools/host_forecast.hpp"
#include "tessera/tools/internal/interrupt.hpp"
#include "tessera/tools/internal/progress.hpp"

namespace tessera::tools {
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

// Reads one tensor. An error concerns this layer only, so its text is kept.
FileLayer layer_of(const std::string& name, const std::string& bytes, const std::string& file) {
  FileLayer layer{name, {}, {}};
  try {
    layer.ones = io::to_csr(io::read_safetensors(bytes, file, name), file);
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

// Calls use(layer) for every layer of the file, one after the other, because each may take much
// more memory than its bytes in the file. Stops after use() has returned false.
void for_each_layer(Advice& advice, const std::function<bool(const FileLayer&)>& use) {
  const std::string& file = advice.file;
  if (!file.ends_with(".safetensors")) {
    FileLayer layer{file, load_weights(file).matrix, {}};
    std::ranges::fill(layer.ones.values, 1.0);
    use(layer);
    return;
  }
  const std::string bytes = read_file(file);
  const std::vector<io::TensorInfo> tensors = io::list_safetensors(bytes, file);
  for (const io::TensorInfo& tensor : tensors)
    if (!is_layer(tensor)) advice.left_out.push_back(tensor.name);
  for (const io::TensorInfo& tensor : tensors) {
    if (!is_layer(tensor)) continue;
    if (!use(layer_of(tensor.name, bytes, file))) return;
  }
}

StoredForm form_of(const BlockPlan& p) {
  StoredForm form{.name = p.name(), .density = p.density, .note = p.note};
  if (!p.plan) return form;
  form.method = to_string(p.plan->fwd);
  form.cost = double(p.cycles.value);
  form.tile_memory = p.plan->cost.temp + p.plan->cost.resident;
  return form;
}

StoredForm form_of(const std::optional<planner::DensePlan>& plan) {
  StoredForm form{.name = "dense"};
  if (!plan) {
    form.note = "no partition of the dense layer fits the memory of a tile";
    return form;
  }
  form.kernel = report::sums_name(plan->partials_type);
  form.cost = double(plan->cost.cycles.value);
  form.tile_memory = plan->cost.temp + plan->cost.resident;
  return form;
}

void plan_on_tiles(const LayerArguments& a, const sparse::Csr<double>& ones, LayerAdvice& advice) {
  BlockStudy study(a);
  std::vector<BlockPlan> plans;
  for (const std::int64_t side : kBlockSides) {
    plans.push_back(study.plan_pattern(ones, {side, side}));
    advice.blocks.push_back(form_of(plans.back()));
  }
  const auto dense = study.dense().plan;
  advice.dense = form_of(dense);
  if (const BlockPlan* best = cheapest_of(plans); best != nullptr && dense)
    advice.pays_up_to = study.pays_up_to(best->block, dense->cost.cycles, &*best->plan);
}

StoredForm form_of(const report::HostWay& way, double density) {
  return {.name = way.name(), .density = density, .cost = way.seconds()};
}

void plan_on_host(const LayerArguments& a, const sparse::Csr<double>& ones, LayerAdvice& advice,
                  std::string& note) {
  Problem problem = problem_of(a);
  problem.block = {1, 1};
  check_problem(problem);
  const auto blocks_as = [&](BlockShape block) {
    return double(in_whole_blocks(ones, block).blocks());
  };
  const report::HostPlan plan = host_plan(problem, blocks_as);
  note = plan.found.note;
  std::int64_t best_side = 1;
  for (const report::HostWay& way : plan.ways) {
    if (way.is_dense) {
      advice.dense = form_of(way, 1);
      advice.dense.kernel =
          fmt::format("{}, {}", plan.found.rates.dense_kernel, to_string(problem.data_type));
      continue;
    }
    problem.block = way.block;
    const Dims size = problem.size_in_blocks();
    const double places = double(size.x / way.block.rows) * double(size.y / way.block.cols);
    advice.blocks.push_back(form_of(way, blocks_as(way.block) / places));
    if (advice.best_blocks()->name == way.name()) best_side = way.block.rows;
  }
  advice.pays_up_to = break_even_density(
      [&](double density) { return host_random_seconds(problem, {best_side, best_side}, density); },
      *advice.dense.cost);
}

LayerAdvice advise_layer(LayerArguments a, const FileLayer& layer, std::string& note) {
  LayerAdvice advice{.name = layer.name,
                     .outputs = layer.ones.rows,
                     .inputs = layer.ones.cols,
                     .non_zeros = layer.ones.blocks(),
                     .fault = layer.fault};
  if (!layer.fault.empty()) return advice;
  a.output_size = layer.ones.rows;
  a.input_size = layer.ones.cols;
  if (is_host(a))
    plan_on_host(a, layer.ones, advice, note);
  else
    plan_on_tiles(a, layer.ones, advice);
  return advice;
}

}  // namespace

const StoredForm* LayerAdvice::best_blocks() const {
  const StoredForm* best = nullptr;
  for (const StoredForm& form : blocks)
    if (form.cost && (best == nullptr || *form.cost < *best->cost)) best = &form;
  return best;
}

bool LayerAdvice::sparse_pays() const {
  const StoredForm* sparse = best_blocks();
  return sparse != nullptr && (!dense.cost || *sparse->cost < *dense.cost);
}

const StoredForm* LayerAdvice::best() const {
  if (sparse_pays()) return best_blocks();
  return dense.cost ? &dense : nullptr;
}

bool Advice::has_plan() const {
  return std::ranges::any_of(machines, [](const MachineAdvice& machine) {
    return std::ranges::any_of(machine.layers,
                               [](const LayerAdvice& layer) { return layer.best() != nullptr; });
  });
}

Advice advise(const LayerArguments& arguments, const std::string& file,
              const std::vector<std::string>& machines, internal::Progress& progress,
              const std::function<void(const Advice&)>& after_each) {
  LayerArguments a = arguments;
  Advice advice{.file = file, .asked = problem_of(a)};
  for (const std::string& machine : machines) {
    a.machine = machine;
    if (!is_host(a)) BlockStudy{a};  // refuses a wrong machine or option before the file is read
    advice.machines.push_back({.machine = machine, .is_host = is_host(a)});
  }
  progress.set("reading " + file);
  bool is_stopped = false;
  for_each_layer(advice, [&](const FileLayer& layer) {
    for (MachineAdvice& machine : advice.machines) {
      is_stopped = internal::is_interrupted();
      if (is_stopped) return false;
      progress.set(fmt::format("planning {} for {}", layer.name, machine.machine));
      a.machine = machine.machine;
      machine.layers.push_back(advise_layer(a, layer, machine.note));
      after_each(advice);
    }
    return true;
  });
  advice.is_complete = !is_stopped;
  progress.hide();
  return advice;
}

}  // namespace tessera::tools
