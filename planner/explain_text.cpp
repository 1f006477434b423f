#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/base/float_mode.hpp"
#include "tessera/planner/explain.hpp"
#include "tessera/planner/internal/json_archive.hpp"
#include "tessera/planner/internal/terms_text.hpp"
#include "tessera/planner/plan_json.hpp"

namespace tessera::planner {
namespace {

using internal::Json;
using internal::percent_of;
using planner::json_of;

std::string driver_text(const TermShare& t) {
  const FinerCut* d = t.driver();
  if (d == nullptr) return "no finer cut changes it";
  return fmt::format("{:+} with {} cut into {}, not {}", d->change.value, to_string(d->axis), d->to,
                     d->from);
}

std::string terms_text(const Explanation& e) {
  // A dense plan is not cut finer.
  const auto has_driver = [&e](const TermShare& t) { return t.cycles.value != 0 && !e.plan.dense; };
  std::string text = "terms\n";
  for (const PassCost& pass : e.plan.cost.passes) {
    text += fmt::format("  {:<31} {:>12} cycles {:5.1f} %  {} bytes\n", to_string(pass.pass),
                        pass.cycles().value, percent_of(pass.cycles(), e.plan.cost.cycles),
                        pass.temp().value);
    for (const TermShare& t : e.terms)
      if (t.pass == pass.pass && (t.cycles.value != 0 || t.temp.value != 0))
        text += fmt::format("    {:<29} {:>12} cycles {:5.1f} %  {} bytes{}{}\n", to_string(t.name),
                            t.cycles.value, 100 * t.share, t.temp.value, has_driver(t) ? "; " : "",
                            has_driver(t) ? driver_text(t) : "");
  }
  return text;
}

std::string loss_text(const Alternative& a, Cycles winner) {
  std::string text = fmt::format("{:+} cycles ({:+.1f} %) at {}", a.loses.value,
                                 percent_of(a.loses, winner), to_string(a.plan.partition));
  if (!a.terms.empty() && a.terms.front().more.value > 0)
    text += fmt::format(", most in {}, {} ({:+})", to_string(a.terms.front().pass),
                        to_string(a.terms.front().name), a.terms.front().more.value);
  if (!a.terms.empty() && a.terms.back().more.value < 0)
    text += fmt::format("; gains most in {}, {} ({:+})", to_string(a.terms.back().pass),
                        to_string(a.terms.back().name), a.terms.back().more.value);
  if (a.loses.value == 0) text += "; as many cycles, decided by temporary memory and order";
  return text;
}

std::string methods_text(const Explanation& e) {
  std::string text = "methods\n";
  for (const MethodVerdict& v : e.methods_tried) {
    const char* verdict = v.chosen ? "chosen" : v.best ? "not chosen" : "ruled out";
    text += fmt::format("  {}: {}\n", to_string(v.methods), verdict);
    if (v.chosen) continue;
    text += fmt::format("    {}\n",
                        v.best ? loss_text(*v.best, e.plan.cost.cycles) : to_string(*v.obstacle));
  }
  return text;
}

std::string limits_text(const Explanation& e) {
  std::string text =
      fmt::format("limits     {} of {} tiles, {} of {} temporary bytes\n", e.plan.tiles_used(),
                  e.tiles, e.plan.cost.temp.value, e.temp_bound.value);
  for (const Lifted& l : e.limits)
    text += l.binds() ? fmt::format("  {} would gain {} cycles ({:.1f} %): {} at {}\n",
                                    to_string(l.limit), l.gain.value,
                                    percent_of(l.gain, e.plan.cost.cycles), to_string(l.methods),
                                    to_string(l.partition))
                      : fmt::format("  {} would gain nothing\n", to_string(l.limit));
  return text;
}

Json json_of(const TermShare& t) {
  Json json = {{"pass", to_string(t.pass)},
               {"name", to_string(t.name)},
               {"cycles", t.cycles.value},
               {"share", t.share},
               {"tempBytes", t.temp.value}};
  json["finerCut"] = json::List();
  for (const FinerCut& cut : t.finer_cut)
    json["finerCut"].push_back({{"axis", to_string(cut.axis)},
                                {"from", cut.from},
                                {"to", cut.to},
                                {"change", cut.change.value}});
  return json;
}

Json json_of(const Alternative& a) {
  Json json = {{"methods", to_string(a.methods)},
               {"partition", json_of(a.plan.partition)},
               {"cycles", a.plan.cost.cycles.value},
               {"tempBytes", a.plan.cost.temp.value},
               {"loses", a.loses.value}};
  json["terms"] = json::List();
  for (const TermChange& t : a.terms)
    json["terms"].push_back(
        {{"pass", to_string(t.pass)}, {"name", to_string(t.name)}, {"more", t.more.value}});
  return json;
}

Json json_of(const MethodVerdict& v) {
  Json json = {{"methods", to_string(v.methods)}, {"chosen", v.chosen}};
  json["best"] = v.best ? json_of(*v.best) : Json(nullptr);
  json["ruledOutBy"] = v.obstacle ? Json(to_string(*v.obstacle)) : Json(nullptr);
  return json;
}

Json json_of(const Lifted& l) {
  return {{"limit", to_string(l.limit)},
          {"binds", l.binds()},
          {"gain", l.gain.value},
          {"methods", to_string(l.methods)},
          {"partition", json_of(l.partition)}};
}

template <class Item>
Json list_of(const std::vector<Item>& items) {
  Json list = json::List();
  for (const Item& item : items) list.push_back(json_of(item));
  return list;
}

}  // namespace

std::string to_string(LiftedLimit limit) {
  switch (limit) {
    case LiftedLimit::OneMoreTile:
      return "one more tile";
    case LiftedLimit::TwiceTheTiles:
      return "twice the tiles";
    case LiftedLimit::TemporaryMemory:
      return "all of the tile for temporary data";
    case LiftedLimit::TileMemory:
      return "a tile without bounds";
    case LiftedLimit::Words:
      return "words that hold any number";
    case LiftedLimit::Pins:
      return "no planConstraints";
    case LiftedLimit::BucketSharing:
      return "the other value of sharedBuckets";
  }
  assertion_failed("every limit has a name", __FILE__, __LINE__);
}

std::string to_text(const Explanation& e) {
  const DefaultFloatMode mode;
  std::string text = fmt::format("plan for {}\nwinner     {} at {}: {} cycles, best of {}\n",
                                 e.request, to_string(e.methods), to_string(e.plan.partition),
                                 e.plan.cost.cycles.value, e.partitions);
  text += terms_text(e);
  text += "runners-up\n";
  for (const Alternative& a : e.runners_up)
    text += fmt::format("  {}\n    {}\n", to_string(a.methods), loss_text(a, e.plan.cost.cycles));
  text += methods_text(e) + limits_text(e);
  if (e.one_layout_loses)
    text += fmt::format("one layout for all passes loses {} cycles\n", e.one_layout_loses->value);
  for (const Explanation& other : e.backward)
    text += "GradA's own layout, other plans by the cycles of the whole layer: " + to_text(other);
  return text;
}

std::string to_json(const Explanation& e) {
  const DefaultFloatMode mode;
  Json json = {{"request", e.request},
               {"methods", to_string(e.methods)},
               {"partition", json_of(e.plan.partition)},
               {"cycles", e.plan.cost.cycles.value},
               {"tempBytes", e.plan.cost.temp.value},
               {"tempBound", e.temp_bound.value},
               {"tilesUsed", e.plan.tiles_used()},
               {"tiles", e.tiles},
               {"partitions", e.partitions},
               {"terms", list_of(e.terms)},
               {"runnersUp", list_of(e.runners_up)},
               {"methodsTried", list_of(e.methods_tried)},
               {"limits", list_of(e.limits)}};
  if (e.one_layout_loses) json["oneLayoutLoses"] = e.one_layout_loses->value;
  for (const Explanation& other : e.backward) json["backward"] = json::parse_own(to_json(other));
  return json.dump(2);
}

}  // namespace tessera::planner
