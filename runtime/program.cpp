#include "tessera/runtime/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::runtime {
namespace {

constexpr std::size_t kColumns = 100;

std::string names_of(const Program& program, const std::vector<BufferId>& ids) {
  std::string text;
  for (const BufferId id : ids)
    text += (text.empty() ? "" : ", ") + program.buffers[std::size_t(id.value)].name;
  return text;
}

// Appends `text` in lines of at most kColumns; lines after the first are indented by `indent`
// blanks.
void write_wrapped(std::string& out, const std::string& text, std::size_t indent) {
  std::size_t column = out.size() - (out.rfind('\n') + 1);  // npos + 1 is 0
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (at > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    at = end + 1;
  }
  out += '\n';
}

std::string uses_of(const Program& program, const Node& node) {
  std::string text;
  if (!node.reads.empty()) text += names_of(program, node.reads);
  if (!node.writes.empty())
    text += (text.empty() ? "-> " : " -> ") + names_of(program, node.writes);
  if (node.moves > Bytes()) text += fmt::format("; moves {} bytes", node.moves.value);
  return text;
}

void write_nodes(std::string& out, const Program& program, const Liveness& live,
                 const std::vector<Node>& nodes, std::size_t depth) {
  int scope = -1;
  for (const Node& node : nodes) {
    if (depth == 0 && node.scope != scope)
      out += "     " + program.scopes[std::size_t(scope = node.scope)] + "\n";
    out += fmt::format("{:>3}  {:{}}", live.stage_of[std::size_t(node.number)], "", 2 * depth);
    const std::size_t indent = 5 + 2 * depth + 4;
    if (node.is_step()) {
      const std::string on =
          node.tiles > 0 ? fmt::format(" on {} tile{}", node.tiles, node.tiles == 1 ? "" : "s")
                         : "";
      write_wrapped(out,
                    fmt::format("{}{}{}{}: {}", to_string(node.kind), node.phase ? " " : "",
                                node.label(), on, uses_of(program, node)),
                    indent);
      continue;
    }
    write_wrapped(out,
                  fmt::format("{} {}{}", to_string(node.kind), node.question,
                              node.controlled ? fmt::format(" (control reads {})",
                                                            names_of(program, node.reads))
                                              : ""),
                  indent);
    write_nodes(out, program, live, node.body, depth + 1);
  }
}

void append_steps(const std::vector<Node>& nodes, StepOrder& order) {
  for (const Node& node : nodes) {
    if (node.controlled) append_step(order, Phase::Control, StepKind::Control);
    if (node.kind == NodeKind::Exchange) append_step(order, *node.phase, StepKind::Exchange);
    if (node.kind == NodeKind::Compute) append_step(order, *node.phase, StepKind::Compute);
    append_steps(node.body, order);
  }
}

}  // namespace

std::string_view to_string(NodeKind kind) {
  switch (kind) {
    case NodeKind::Load:
      return "load";
    case NodeKind::Exchange:
      return "exchange";
    case NodeKind::Compute:
      return "compute";
    case NodeKind::Collect:
      return "collect";
    case NodeKind::Repeat:
      return "repeat while";
    case NodeKind::If:
      return "if";
  }
  assertion_failed("every kind of node has a name", __FILE__, __LINE__);
}

StepOrder step_order(const Program& program) {
  StepOrder order;
  append_steps(program.nodes, order);
  return order;
}

std::string to_string(const Program& program) {
  const Liveness live = liveness(program);
  std::string out = program.name + "\n";
  write_nodes(out, program, live, program.nodes, 0);
  out += "buffers: bytes of the largest, stages in which they live\n";
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    out +=
        fmt::format("     {:<32}{:>10}  {}..{}{}\n", buffer.name, buffer.largest.value,
                    live.lives[b].first, live.lives[b].last, buffer.resident ? ", resident" : "");
  }
  return out;
}

}  // namespace tessera::runtime
