#include "tessera/report/network_dense.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/int_math.hpp"
#include "tessera/codelets/cost/network_cycles.hpp"
#include "tessera/json/value.hpp"
#include "tessera/report/dense_verdict.hpp"

namespace tessera::report {
namespace {

using planner::NetworkWork;
using Json = json::Value;

// The dense plans of the layers; layers with equal problems share one.
class DensePlans {
 public:
  DensePlans(const planner::NetworkSpec& spec, const device::Machine& machine)
      : spec_(spec), machine_(machine), problems_(problems_of(spec)) {
    for (std::size_t l = 0; l < problems_.size(); ++l) {
      problems_[l].density = 1;
      const auto same =
          std::find(problems_.begin(), problems_.begin() + std::ptrdiff_t(l), problems_[l]);
      const auto first = std::size_t(same - problems_.begin());
      plans_.push_back(first < l ? plans_[first] : dense_baseline(problems_[l], machine, {}));
    }
  }

  // The bytes on each tile that weights and states of all layers take, spread evenly.
  Bytes resident() const {
    const std::int64_t states = spec_.loss ? codelets::states_of(spec_.optimiser) : 0;
    Bytes sum;
    for (std::size_t l = 0; l < problems_.size(); ++l)
      sum += Bytes(weights_of_a_tile(l) *
                   (bytes_of(spec_.data_type) + states * std::int64_t(sizeof(float))));
    return sum;
  }

  // The reason why a layer has no plan; empty: all have one, and their weights fit.
  std::string does_not_fit() const {
    for (std::size_t l = 0; l < plans_.size(); ++l)
      if (!plans_[l].plan) return fmt::format("layer {}: {}", l + 1, plans_[l].reason);
    if (resident() <= machine_.tile_memory) return {};
    return fmt::format("its weights and optimiser states alone take {} of {} bytes on each tile",
                       resident().value, machine_.tile_memory.value);
  }

  // The cycles of a kind of work that takes `sparse` cycles in the run.
  Cycles cycles(NetworkWork work, std::size_t layer, Cycles sparse) const {
    if (const auto pass = pass_of(work))
      return plans_[layer].plan ? plans_[layer].plan->find(*pass)->cost.cycles() : Cycles();
    if (work == NetworkWork::Rehome) return Cycles();
    if (work != NetworkWork::Update) return sparse;
    return codelets::update_cycles(weights_of_a_tile(layer), spec_.optimiser, spec_.data_type,
                                   machine_.workers) +
           machine_.launch;
  }

 private:
  std::int64_t weights_of_a_tile(std::size_t layer) const {
    return ceil_div(problems_[layer].size.x * problems_[layer].size.y, machine_.tiles);
  }

  const planner::NetworkSpec& spec_;
  const device::Machine& machine_;
  std::vector<Problem> problems_;
  std::vector<planner::DensePlanResult> plans_;
};

}  // namespace

std::string DenseNetwork::to_text() const {
  if (!does_not_fit.empty())
    return fmt::format("sparse wins: the dense network does not fit the machine ({})",
                       does_not_fit);
  const double ratio = double(dense.value) / double(sparse.value);
  return fmt::format("{} wins: {} cycles, the dense network {} (planned), {:.2f} times as many",
                     ratio > 1 ? "sparse" : "dense", sparse.value, dense.value, ratio);
}

std::string DenseNetwork::to_json() const {
  const auto dense_or_null = [&](Cycles cycles) {
    return does_not_fit.empty() ? Json(cycles.value) : Json();
  };
  Json list = json::List();
  for (const Work& one : work)
    list.push_back({{"layer", serves_all(one.work) ? Json("all") : Json(one.layer + 1)},
                    {"work", to_string(one.work)},
                    {"cycles", one.sparse.value},
                    {"dense_cycles", dense_or_null(one.dense)}});
  return Json({{"text", to_text()},
               {"cycles", sparse.value},
               {"dense_cycles", dense_or_null(dense)},
               {"does_not_fit", does_not_fit.empty() ? Json() : Json(does_not_fit)},
               {"dense_tile_bytes", resident.value},
               {"work", std::move(list)}})
      .dump();
}

DenseNetwork compare_with_dense(const runtime::Network& network, const runtime::NetworkCost& cost,
                                const device::Machine& machine) {
  const DensePlans plans(network.spec(), machine);
  DenseNetwork result{.work = {},
                      .sparse = {},
                      .dense = {},
                      .resident = plans.resident(),
                      .does_not_fit = plans.does_not_fit()};
  for (std::size_t i = 0; i < network.parts().size(); ++i) {
    const runtime::NetworkPart& part = network.parts()[i];
    if (part.work == NetworkWork::Parameters) continue;
    const Cycles sparse = cost.of(int(i));
    const Cycles dense = plans.cycles(part.work, std::size_t(part.layer), sparse);
    result.work.push_back({part.work, part.layer, sparse, dense});
    result.sparse += sparse;
    result.dense += dense;
  }
  return result;
}

}  // namespace tessera::report
