#include "tessera/report/network_steps.hpp"

#include <map>
#include <utility>
#include <vector>

#include "tessera/json/value.hpp"
#include "tessera/report/internal/report_fields.hpp"

namespace tessera::report {
namespace {

using internal::Json;
using runtime::Node;

// The nodes of a program by their numbers.
void add_nodes(const std::vector<Node>& nodes, std::map<int, const Node*>& by_number) {
  for (const Node& node : nodes) {
    by_number[node.number] = &node;
    add_nodes(node.body, by_number);
  }
}

// A step of the program that moves data, which a loop may run many times.
struct ExchangeSum {
  std::int64_t times = 0;
  Cycles cycles;
  Bytes moved;
  std::size_t step = 0;  // the first one
};

class NetworkRun {
 public:
  NetworkRun(const runtime::Network& network, const runtime::NetworkCost& cost)
      : network_(network), cost_(cost), live_(liveness(network.program())) {
    add_nodes(network.program().nodes, nodes_);
  }

  std::string text() const {
    const device::MemoryUse memory = network_.memory();
    Json steps = json::List(), exchanges = json::List(), at_peak = json::List();
    for (std::size_t i = 0; i < cost_.ledger.steps.size(); ++i)
      steps.push_back(step_json(i, memory));
    for (const ExchangeSum& sum : sums()) exchanges.push_back(exchange_json(sum));
    for (const device::HeldBuffer& held : memory.at_peak)
      at_peak.push_back({{"buffer", held.name}, {"bytes", held.bytes.value}});
    return Json({{"steps", std::move(steps)},
                 {"exchanges", std::move(exchanges)},
                 {"memory",
                  {{"fullest_tile", memory.fullest.value}, {"at_peak", std::move(at_peak)}}}})
        .dump();
  }

 private:
  // The members that say which step it is.
  Json place_of(std::size_t step) const {
    const runtime::NetworkPart& part = network_.parts()[std::size_t(cost_.part_of[step])];
    return {{"layer", part.layer + 1},
            {"work", to_string(part.work)},
            {"phase", to_string(cost_.ledger.steps[step].phase)}};
  }

  Json step_json(std::size_t i, const device::MemoryUse& memory) const {
    const device::StepRecord& record = cost_.ledger.steps[i];
    const int stage = live_.stage_of[std::size_t(cost_.node_of[i])];
    Json json = place_of(i);
    json.update(Json{{"kind", to_string(record.kind)},
                     {"cycles", record.cycles.value},
                     {"overhead_cycles", record.overhead.value},
                     {"moved_bytes", record.moved.value},
                     {"tiles", record.tiles},
                     {"slowest_tile", record.critical_tile.value},
                     {"held_bytes", memory.by_stage[std::size_t(stage)].value}});
    return json;
  }

  // In the order of the program.
  std::vector<ExchangeSum> sums() const {
    std::map<int, ExchangeSum> by_node;
    for (std::size_t i = 0; i < cost_.ledger.steps.size(); ++i) {
      const device::StepRecord& record = cost_.ledger.steps[i];
      if (record.moved == Bytes()) continue;
      ExchangeSum& sum = by_node[cost_.node_of[i]];
      if (sum.times++ == 0) sum.step = i;
      sum.cycles += record.cycles + record.overhead;
      sum.moved += record.moved;
    }
    std::vector<ExchangeSum> result;
    for (const auto& [node, sum] : by_node) result.push_back(sum);
    return result;
  }

  Json exchange_json(const ExchangeSum& sum) const {
    const Node& node = *nodes_.at(cost_.node_of[sum.step]);
    const auto names = [&](const std::vector<runtime::BufferId>& buffers) {
      Json list = json::List();
      for (const runtime::BufferId buffer : buffers)
        list.push_back(network_.program().buffers[std::size_t(buffer.value)].name);
      return list;
    };
    Json json = place_of(sum.step);
    json.update(Json{{"from", names(node.reads)},
                     {"to", names(node.writes)},
                     {"times", sum.times},
                     {"cycles", sum.cycles.value},
                     {"moved_bytes", sum.moved.value}});
    return json;
  }

  const runtime::Network& network_;
  const runtime::NetworkCost& cost_;
  runtime::Liveness live_;
  std::map<int, const Node*> nodes_;
};

}  // namespace

std::string network_steps_json(const runtime::Network& network, const runtime::NetworkCost& cost) {
  return NetworkRun(network, cost).text();
}

}  // namespace tessera::report
