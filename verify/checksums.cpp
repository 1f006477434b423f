#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/verify/self_check.hpp"

namespace tessera::verify {

std::string to_string(const Checksums& c) {
  std::string text;
  if (!c.ok())
    text = fmt::format("WRONG: {} rows, first {}; {} columns, first {}", c.wrong_rows,
                       c.first_wrong_row, c.wrong_cols, c.first_wrong_col);
  else if (c.exact)
    text = fmt::format("ok: {} checksums, all exact", c.compared);
  else
    text = fmt::format("ok: {} checksums, largest difference {:.2f} of its bound", c.compared,
                       c.worst);
  if (c.damaged > 0)
    text += fmt::format("; memory changed in {} places, first {}", c.damaged, c.first_damage);
  if (!c.first_failure.empty()) text += "; repaired: the pass ran twice";
  if (c.recomputed > 0) text += fmt::format("; {} results recomputed", c.recomputed);
  return text;
}

void require_agreement(Pass pass, std::int64_t group, const Checksums& checksums) {
  if (checksums.ok()) return;
  throw Error(ErrorCode::CheckFailed,
              fmt::format("self-check of {}, group {}: {}; results cannot be trusted, run it again",
                          to_string(pass), group, to_string(checksums)));
}

void add_part(const Checksums& of_part, Checksums& all, std::string_view name) {
  const auto add_first = [name](const std::string& place, std::string& first) {
    if (first.empty() && !place.empty())
      first = name.empty() ? place : fmt::format("{}, {}", name, place);
  };
  all.exact = of_part.exact && (all.compared == 0 || all.exact);
  all.compared += of_part.compared;
  all.recomputed += of_part.recomputed;
  all.damaged += of_part.damaged;
  add_first(of_part.first_damage, all.first_damage);
  add_first(of_part.first_failure, all.first_failure);
  all.wrong_rows += of_part.wrong_rows;
  all.wrong_cols += of_part.wrong_cols;
  if (all.first_wrong_row < 0) all.first_wrong_row = of_part.first_wrong_row;
  if (all.first_wrong_col < 0) all.first_wrong_col = of_part.first_wrong_col;
  all.worst = std::max(all.worst, of_part.worst);
}

void add_group(Pass pass, std::int64_t group, const Checksums& of_group, Checksums& all) {
  if (group == 0) all = {};
  all.exact = of_group.exact && (group == 0 || all.exact);
  all.compared += of_group.compared;
  all.recomputed += of_group.recomputed;
  // Every group of a pass is told of the same damage.
  all.damaged = of_group.damaged;
  all.first_damage = of_group.first_damage;
  all.wrong_rows += of_group.wrong_rows;
  all.wrong_cols += of_group.wrong_cols;
  all.worst = std::max(all.worst, of_group.worst);
  if (of_group.ok()) return;
  all.first_wrong_row = of_group.first_wrong_row;
  all.first_wrong_col = of_group.first_wrong_col;
  require_agreement(pass, group, of_group);
}

}  // namespace tessera::verify
