#include "tessera/train/rewire/method.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/named.hpp"
#include "tessera/train/rewire/carry.hpp"
#include "tessera/train/rewire/drop.hpp"
#include "tessera/train/rewire/internal/top_k.hpp"
#include "tessera/train/rewire/rows.hpp"
#include "tessera/train/rewire/schedule.hpp"

namespace tessera::train {
namespace {

using sparse::BlockAt;
using sparse::Csr;
using sparse::PatternChange;

// Returns the pattern without some of its blocks, which ascend, and without values: growth asks for
// places only.
Csr<float> pattern_without(const Csr<float>& weights, std::span<const BlockAt> dropped) {
  Csr<float> taken{weights.rows, weights.cols, weights.block, {0}, {}, {}};
  taken.row_begin.reserve(weights.row_begin.size());
  taken.col.resize(weights.col.size() + 1);  // a dropped block is overwritten by the next one
  // Marks of a row's dropped columns: to compare with the next dropped block instead would make
  // each step wait for the one before.
  std::vector<char> drops(std::size_t(weights.block_cols()));
  std::size_t made = 0, next = 0;
  for (std::int32_t row = 0; row < weights.block_rows(); ++row) {
    const std::int64_t end = weights.row_begin[std::size_t(row) + 1];
    std::size_t row_end = next;
    for (; row_end < dropped.size() && dropped[row_end].row == row; ++row_end)
      drops[std::size_t(dropped[row_end].col)] = 1;
    for (std::int64_t i = weights.row_begin[std::size_t(row)]; i < end; ++i) {
      const std::int32_t col = weights.col[std::size_t(i)];
      taken.col[made] = col;
      made += drops[std::size_t(col)] == 0;
    }
    for (; next < row_end; ++next) drops[std::size_t(dropped[next].col)] = 0;
    taken.row_begin.push_back(std::int64_t(made));
  }
  taken.col.resize(made);
  return taken;
}

// Returns how many blocks are stored after the rewire.
std::int64_t blocks_after(const RewireRequest& request) {
  return request.blocks < 0 ? request.weights.blocks() : request.blocks;
}

// Returns how many blocks of a pattern or of a row go, of which `after` shall be stored then: the
// surplus, and this share of those that are stored before and after, which move.
std::int64_t blocks_that_go(std::int64_t stored, std::int64_t after, std::int64_t free,
                            double fraction, Exclude exclude) {
  const std::int64_t most =
      exclude == Exclude::Kept ? stored : free - std::max<std::int64_t>(after - stored, 0);
  return std::min(blocks_to_drop(fraction, std::min(stored, after)), most) +
         std::max<std::int64_t>(stored - after, 0);
}

// Returns the change that drops blocks and adds those that grow(taken, k) returns.
template <class Count, class Grow>
PatternChange replaced(const Csr<float>& weights, const std::vector<BlockAt>& dropped,
                       const Count& k, Exclude exclude, Grow&& grow) {
  if (exclude == Exclude::Original) return net_change(dropped, grow(weights, k));
  return net_change(dropped, grow(pattern_without(weights, dropped), k));
}

// Replaces the smallest blocks by those that grow(taken, k) returns.
template <class Grow>
PatternChange replace_smallest(const RewireRequest& request, Exclude exclude, Grow&& grow) {
  const Csr<float>& weights = request.weights;
  const std::int64_t stored = weights.blocks(), after = blocks_after(request);
  const std::vector<BlockAt> dropped = smallest_blocks(
      weights, blocks_that_go(stored, after, free_places(weights), request.fraction, exclude),
      request.name, request.min_per_neuron);
  const std::int64_t k = std::max<std::int64_t>(after - (stored - std::ssize(dropped)), 0);
  return replaced(weights, dropped, k, exclude, grow);
}

// Does the same row by row for this share of each row's blocks, with grow_rows(taken, per row).
template <class Grow>
PatternChange replace_in_rows(const RewireRequest& request, double fraction, Exclude exclude,
                              Grow&& grow_rows) {
  const Csr<float>& weights = request.weights;
  std::vector<std::int64_t> drops, grows = even_rows(blocks_after(request), weights.block_rows());
  for (std::size_t row = 0; row < grows.size(); ++row) {
    const std::int64_t stored = weights.row_begin[row + 1] - weights.row_begin[row];
    drops.push_back(
        blocks_that_go(stored, grows[row], weights.block_cols() - stored, fraction, exclude));
    grows[row] -= stored - drops.back();
  }
  const std::vector<BlockAt> dropped = smallest_of_rows(weights, drops, request.name);
  return replaced(weights, dropped, grows, exclude, grow_rows);
}

// Does the same with random places.
PatternChange replace_in_rows_at_random(const RewireRequest& request, double fraction,
                                        Exclude exclude) {
  return replace_in_rows(request, fraction, exclude,
                         [&](const Csr<float>& taken, const std::vector<std::int64_t>& per_row) {
                           return random_of_rows(taken, per_row, request.seed, request.name);
                         });
}

PatternChange change_of(const Static&, const RewireRequest& request) {
  if (request.blocks >= 0 && request.blocks != request.weights.blocks())
    throw_invalid(
        fmt::format("rewire of {}: another number of blocks is wanted, but method static "
                    "changes nothing; choose prune",
                    request.name));
  return {};
}

PatternChange change_of(const Prune&, const RewireRequest& request) {
  const std::int64_t surplus = request.weights.blocks() - blocks_after(request);
  if (surplus < 0)
    throw_invalid(
        fmt::format("rewire of {}: {} blocks are wanted and {} are stored, but method prune "
                    "adds none; choose set, rigl, sampled or top-k",
                    request.name, blocks_after(request), request.weights.blocks()));
  if (request.constant_fan_in) return replace_in_rows_at_random(request, 0, Exclude::Kept);
  return {smallest_blocks(request.weights, surplus, request.name, request.min_per_neuron), {}};
}

PatternChange change_of(const Set& method, const RewireRequest& request) {
  if (request.constant_fan_in)
    return replace_in_rows_at_random(request, request.fraction, method.exclude);
  return replace_smallest(request, method.exclude, [&](const Csr<float>& taken, std::int64_t k) {
    return random_places(taken, k, request.seed, request.name);
  });
}

PatternChange change_of(const RigL& method, const RewireRequest& request) {
  if (request.constant_fan_in)
    return replace_in_rows(request, request.fraction, method.exclude,
                           [&](const Csr<float>& taken, const std::vector<std::int64_t>& per_row) {
                             return largest_of_rows(taken, request.batches, per_row, method.pool,
                                                    request.executor, request.name);
                           });
  return replace_smallest(request, method.exclude, [&](const Csr<float>& taken, std::int64_t k) {
    if (request.largest_on_machine) return request.largest_on_machine(taken, k, method.pool);
    return exact_gradients({taken, request.batches, k, method.pool, request.name},
                           request.executor);
  });
}

PatternChange change_of(const Sampled& method, const RewireRequest& request) {
  const auto candidates =
      std::int64_t(std::min(method.factor * double(request.weights.blocks()), double(INT32_MAX)));
  return replace_smallest(request, method.exclude, [&](const Csr<float>& taken, std::int64_t k) {
    return sampled_gradients({taken, request.batches, k, method.pool, request.name},
                             {candidates, request.seed}, request.executor);
  });
}

Rewired change_of(const TopK& method, const RewireRequest& request) {
  return internal::largest_after_step(method, request, blocks_after(request));
}

PatternChange change_of(const Custom& method, const RewireRequest& request) {
  return method.change(request);
}

void check_factor(std::string_view method, double factor) {
  if (!(factor > 0 && factor <= std::numeric_limits<double>::max()))
    throw_invalid(fmt::format("{}: factor is {}; it must be above 0 and finite", method, factor));
}

void check_request(const RewireRequest& r) {
  if (!(r.fraction >= 0 && r.fraction <= 1))
    throw_invalid(
        fmt::format("rewire of {}: fraction is {}; it must be in 0..1", r.name, r.fraction));
  const std::int64_t all = r.weights.block_rows() * r.weights.block_cols();
  if (r.blocks < -1 || r.blocks == 0 || r.blocks > all)
    throw_invalid(
        fmt::format("rewire of {}: {} blocks after it; the number must be in 1..{}, or -1 "
                    "for as many as before",
                    r.name, r.blocks, all));
}

}  // namespace

void check(const Method& method) {
  if (const auto* sampled = std::get_if<Sampled>(&method))
    check_factor("sampled growth", sampled->factor);
  if (const auto* top = std::get_if<TopK>(&method)) check_factor("top-k", top->factor);
  if (const auto* custom = std::get_if<Custom>(&method); custom != nullptr && !custom->change)
    throw_invalid(fmt::format("method {}: there is no function `change`", custom->name));
}

const char* to_string(Exclude exclude) { return exclude == Exclude::Kept ? "kept" : "original"; }

Method parse_method(std::string_view name, const MethodChoices& choices) {
  const auto pool = [&] {
    return named(choices.pool, {BlockScore::Sum, BlockScore::Max, BlockScore::Mean}, "pool");
  };
  const auto exclude = [&] {
    return named(choices.exclude, {Exclude::Kept, Exclude::Original}, "exclude");
  };
  if (name == "static") return Static{};
  if (name == "set") return Set{exclude()};
  if (name == "rigl") return RigL{pool(), exclude()};
  if (name == "sampled")
    return Sampled{choices.factor.value_or(Sampled{}.factor), pool(), exclude()};
  if (name == "prune") return Prune{};
  if (name == "top-k")
    return TopK{
        named(choices.search, {Search::Exact, Search::Shortlist, Search::Sampled}, "search"),
        choices.factor.value_or(TopK{}.factor)};
  throw_unknown_name(name, "method", {"static", "set", "rigl", "sampled", "prune", "top-k"});
}

std::string name_of(const Method& method) {
  struct Name {
    std::string operator()(const Static&) const { return "static"; }
    std::string operator()(const Set&) const { return "set"; }
    std::string operator()(const RigL&) const { return "rigl"; }
    std::string operator()(const Sampled&) const { return "sampled"; }
    std::string operator()(const Prune&) const { return "prune"; }
    std::string operator()(const TopK&) const { return "top-k"; }
    std::string operator()(const Custom& custom) const { return custom.name; }
  };
  return std::visit(Name{}, method);
}

bool is_instead_of_step(const Method& method) {
  const auto* custom = std::get_if<Custom>(&method);
  if (custom != nullptr) return custom->instead_of_step;
  return std::holds_alternative<RigL>(method) || std::holds_alternative<Sampled>(method);
}

bool ignores_fraction(const Method& method) {
  return std::holds_alternative<Prune>(method) || std::holds_alternative<TopK>(method);
}

bool has_constant_fan_in(const Method& method) {
  return std::holds_alternative<Static>(method) || std::holds_alternative<Set>(method) ||
         std::holds_alternative<RigL>(method) || std::holds_alternative<Prune>(method);
}

Rewired rewire(const Method& method, const RewireRequest& request) {
  check(method);
  check_request(request);
  if (request.constant_fan_in && (!has_constant_fan_in(method) || request.min_per_neuron != 0))
    throw_invalid(
        fmt::format("rewire of {}: a constant fan-in is kept by the methods set, rigl and "
                    "prune without min_per_neuron, and the method is {} with {}",
                    request.name, name_of(method), request.min_per_neuron));
  return std::visit(
      [&](const auto& any) {
        if constexpr (std::is_same_v<decltype(change_of(any, request)), Rewired>)
          return change_of(any, request);
        else
          return Rewired{change_of(any, request), {}, {}};
      },
      method);
}

}  // namespace tessera::train
