#include "tessera/distributed/tree_sum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tessera/base/float_mode.hpp"

namespace tessera::distributed {
namespace {

// The sum of the leaves [first, first + size) of a tree, or some numbers of it; size is a power of
// two that divides first.
struct Subtree {
  std::int64_t first = 0, size = 1;
  std::span<float> values;
};

// Adds the next subtree to those before it. Neighbours that are both complete become one, whose
// values are left by add(left, right). A tree of 6 leaves is one of 4 and one of 2.
template <class Add>
void push(std::vector<Subtree>& nodes, Subtree next, const Add& add) {
  while (!nodes.empty() && nodes.back().size == next.size &&
         nodes.back().first % (2 * next.size) == 0 &&
         nodes.back().first + next.size == next.first) {
    Subtree left = nodes.back();
    nodes.pop_back();
    add(left, next);
    left.size *= 2;
    next = left;
  }
  nodes.push_back(next);
}

void add_to(std::span<float> to, std::span<const float> left, std::span<const float> right) {
  std::ranges::transform(left, right, to.begin(), std::plus<>());
}

// Returns the subtrees that a rank has at the end, without their values.
std::vector<Subtree> subtrees_of(Range leaves) {
  std::vector<Subtree> all;
  for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf)
    push(all, Subtree{leaf, 1, {}}, [](Subtree&, Subtree&) {});
  return all;
}

// Adds the same numbers of all subtrees up in the order of the tree. The last sum is written to
// `sum`, the others over the left one of each two.
void add_up(std::span<const Subtree> parts, std::span<float> sum) {
  std::size_t sums_left = parts.size() - 1;
  const auto add_right = [&](Subtree& left, Subtree& right) {
    add_to(--sums_left == 0 ? sum : left.values, left.values, right.values);
  };
  std::vector<Subtree> whole;
  for (const Subtree& next : parts) push(whole, next, add_right);
  // Leaves that are no power of two leave several subtrees, the largest first.
  for (; whole.size() > 1; whole.pop_back()) add_right(whole[whole.size() - 2], whole.back());
  if (parts.size() == 1 && parts[0].values.data() != sum.data())
    std::ranges::copy(parts[0].values, sum.begin());
}

// Returns the subtrees of a rank's leaves. The first leaf, and what is added to it, is in `sum`,
// and the others are in `memory`.
std::vector<Subtree> subtrees_in(std::span<float> sum, SumMemory& memory, Range leaves,
                                 const WriteLeaf& write_leaf) {
  std::vector<Subtree> all;
  std::vector<std::span<float>> spare{sum};
  for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) {
    if (spare.empty()) spare.push_back(memory.take(sum.size()));
    const std::span<float> values = spare.back();
    spare.pop_back();
    write_leaf(leaf, values);
    push(all, {leaf, 1, values}, [&](const Subtree& left, const Subtree& right) {
      add_to(left.values, left.values, right.values);
      spare.push_back(right.values);
    });
  }
  return all;
}

}  // namespace

std::span<float> SumMemory::take(std::size_t numbers) {
  if (taken_ == lists_.size()) lists_.emplace_back();
  std::vector<float>& list = lists_[taken_++];
  if (list.size() < numbers) {
    list.clear();  // nothing to copy
    list.resize(numbers);
  }
  return std::span(list).first(numbers);
}

void tree_sum(Communicator& ranks, std::int64_t leaves, std::span<float> sum,
              const WriteLeaf& write_leaf, SumMemory& memory) {
  const DefaultFloatMode mode;
  if (leaves < 1 || leaves > kMostLeaves)
    throw_invalid(fmt::format("a sum of {} lists: there must be 1 to {}", leaves, kMostLeaves));
  memory.take_back();
  const std::vector<Subtree> own = subtrees_in(sum, memory, own_leaves(ranks, leaves), write_leaf);
  const int size = ranks.size(), rank = ranks.rank();
  const auto of_part = [&](std::span<float> all, int of) {
    const Range part = even_part(std::ssize(sum), size, of);
    return all.subspan(std::size_t(part.begin), std::size_t(part.size()));
  };
  std::vector<SendPiece> sends;
  std::vector<ReceivePiece> receives;
  std::vector<Subtree> parts;  // this rank's part of the numbers of all subtrees
  for (int r = 0; r < size; ++r) {
    if (r == rank) {
      for (const Subtree& one : own)
        parts.push_back({one.first, one.size, of_part(one.values, rank)});
      continue;
    }
    for (const Subtree& one : own) sends.push_back({r, std::as_bytes(of_part(one.values, r))});
    for (const Subtree& other : subtrees_of(even_part(leaves, size, r))) {
      parts.push_back({other.first, other.size, memory.take(of_part(sum, rank).size())});
      receives.push_back({r, std::as_writable_bytes(parts.back().values)});
    }
  }
  ranks.exchange("GradW: subtrees of the sum", sends, receives);
  add_up(parts, of_part(sum, rank));
  ranks.exchange_all(
      "GradW: parts of the sum", [&](int) { return of_part(sum, rank); },
      [&](int r) { return of_part(sum, r); });
}

}  // namespace tessera::distributed
