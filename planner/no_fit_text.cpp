#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/planner/no_fit.hpp"

namespace tessera::planner {
namespace {

std::string change_of(const Relaxation& r) {
  switch (r.kind) {
    case RelaxationKind::MoreTiles:
      return fmt::format("{} tiles", r.tiles);
    case RelaxationKind::SmallerBatch:
      return fmt::format("batch of {}", r.batch);
    case RelaxationKind::MoreMemory:
      return fmt::format("availableMemoryProportion {}", r.memory_proportion);
    case RelaxationKind::OtherBlock:
      return fmt::format("block {}x{}", r.block.rows, r.block.cols);
    case RelaxationKind::LowerDensity:
      return fmt::format("density {:.4g}", r.density);
    case RelaxationKind::BatchInParts:
      return fmt::format("batch in {} runs of {}", r.runs, r.batch);
    case RelaxationKind::RunDense:
      return "R dense (planConstraints.useDense true)";
    case RelaxationKind::NoPins:
      return "no planConstraints";
    case RelaxationKind::MemoryAndParts:
      return fmt::format("availableMemoryProportion 1 and batch in {} runs of {}", r.runs, r.batch);
  }
  assertion_failed("every relaxation has a text", __FILE__, __LINE__);
}

std::string breakdown(const TileNeed& t) {
  return fmt::format(
      "  on a tile: {} bytes bucket values, {} meta-information, {} operands, {} in {}, {}; {} in "
      "all\n",
      t.values.value, t.meta_info.value, t.operands.value, t.step.value, to_string(t.pass),
      to_string(t.step_term), t.total().value);
}

}  // namespace

std::string to_string(RelaxationKind kind) {
  switch (kind) {
    case RelaxationKind::MoreTiles:
      return "more tiles";
    case RelaxationKind::SmallerBatch:
      return "smaller batch";
    case RelaxationKind::MoreMemory:
      return "more memory";
    case RelaxationKind::OtherBlock:
      return "other block";
    case RelaxationKind::LowerDensity:
      return "lower density";
    case RelaxationKind::BatchInParts:
      return "batch in parts";
    case RelaxationKind::RunDense:
      return "R dense";
    case RelaxationKind::NoPins:
      return "no pins";
    case RelaxationKind::MemoryAndParts:
      return "more memory and batch in parts";
  }
  assertion_failed("every relaxation has a name", __FILE__, __LINE__);
}

std::string to_string(const MethodChoice& m) {
  if (m.without_buckets) return "R dense, without buckets";
  std::string text = codelets::to_string(m.fwd);
  if (m.grad_a) text += ", " + codelets::to_string(*m.grad_a);
  if (m.grad_w)
    text += fmt::format(", {} with {} travelling", codelets::to_string(*m.grad_w),
                        m.grad_w_exchange_buckets ? "buckets" : "operands");
  if (m.use_dense) text += ", R dense";
  return text;
}

std::string to_string(const Obstacle& o) {
  const std::string at = to_string(o.partition);
  switch (o.limit) {
    case LimitKind::Partition:
      return o.what;
    case LimitKind::Words:
      return fmt::format("{}: {} is {}, a word holds {}", at, o.what, o.needed, o.available);
    case LimitKind::TemporaryMemory:
      return fmt::format("{}: {} takes {} temporary bytes a tile, {} are allowed", at, o.what,
                         o.needed, o.available);
    case LimitKind::TileMemory:
      return fmt::format("{}: a tile needs {} bytes in {}, but has {}", at, o.needed, o.what,
                         o.available);
  }
  assertion_failed("every limit has a text", __FILE__, __LINE__);
}

std::string to_string(const Relaxation& r) {
  return fmt::format("{}: {} cycles for the whole batch", change_of(r), r.total_cycles.value);
}

std::string to_text(const NoFit& n) {
  std::string text = fmt::format("no plan for {}\ntightest   {}\n           {}\n", n.request,
                                 to_string(n.tightest.methods), to_string(n.tightest));
  if (n.tightest.limit != LimitKind::Partition) text += "         " + breakdown(n.tightest.tile);
  text += "methods\n";
  for (const Obstacle& o : n.methods)
    text += fmt::format("  {}\n    {}\n", to_string(o.methods), to_string(o));
  text += fmt::format("would fit  (each planned; {} searches)\n", n.plans_made);
  for (std::size_t i = 0; i < n.relaxations.size(); ++i)
    text += fmt::format("  {}{}\n", to_string(n.relaxations[i]),
                        n.cheapest == i ? "  <- cheapest" : "");
  for (const RelaxationKind kind : n.no_help)
    text += fmt::format("  {}: no value was found that fits\n", to_string(kind));
  return text;
}

}  // namespace tessera::planner
