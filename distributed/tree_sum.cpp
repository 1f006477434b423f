#include "tessera/distributed/tree_sum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "tessera/base/float_mode.hpp"
#include "tessera/distributed/row_cut.hpp"

namespace tessera::distributed {
namespace {

// Adds the next subtree to those before it. Neighbours that are both complete become one, whose
// values are left by add(left, right). A tree of 6 leaves is one of 4 and one of 2.
template <class Subtree, class Add>
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

}  // namespace

TreeSum::TreeSum(Communicator& ranks, std::int64_t leaves, std::int64_t length)
    : ranks_(ranks), leaves_(leaves), length_(length) {
  if (leaves < 1 || leaves > kMostLeaves || length < 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a sum of {} lists of {} numbers: there must be 1 to {} lists of 0 or "
                            "more numbers",
                            leaves, length, kMostLeaves));
  own_ = even_part(leaves, ranks.size(), ranks.rank());
  next_ = own_.begin;
}

void TreeSum::check_length(std::size_t size) const {
  if (std::int64_t(size) == length_) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("a list of {} numbers among those of {}", size, length_));
}

void TreeSum::add(std::span<const float> leaf) {
  const DefaultFloatMode mode;
  check_length(leaf.size());
  if (next_ == own_.end)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("rank {} has leaves {} to {}, and one more was added", ranks_.rank(),
                            own_.begin, own_.end - 1));
  if (spare_.empty()) spare_.push_back(memory_.emplace_back(leaf.size()));
  const std::span<float> values = spare_.back();
  spare_.pop_back();
  std::ranges::copy(leaf, values.begin());
  push(subtrees_, Subtree{next_++, 1, values}, [&](Subtree& left, Subtree& right) {
    std::ranges::transform(left.values, right.values, left.values.begin(), std::plus<>());
    spare_.push_back(right.values);
  });
}

// Returns the subtrees that a rank has at the end, without their values.
std::vector<TreeSum::Subtree> TreeSum::subtrees_of(int rank) const {
  const Range leaves = even_part(leaves_, ranks_.size(), rank);
  std::vector<Subtree> all;
  for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf)
    push(all, Subtree{leaf, 1, {}}, [](Subtree&, Subtree&) {});
  return all;
}

// Adds the same numbers of all subtrees up in the order of the tree. The last sum is written to
// `sum`, the others over the left one of each two.
void TreeSum::add_up(std::span<const Subtree> parts, std::span<float> sum) {
  std::size_t sums_left = parts.size() - 1;
  const auto add_right = [&](Subtree& left, Subtree& right) {
    const std::span<float> to = --sums_left == 0 ? sum : left.values;
    std::ranges::transform(left.values, right.values, to.begin(), std::plus<>());
    left.values = to;
  };
  std::vector<Subtree> whole;
  for (const Subtree& next : parts) push(whole, next, add_right);
  // Leaves that are no power of two leave several subtrees, the largest first.
  for (; whole.size() > 1; whole.pop_back()) add_right(whole[whole.size() - 2], whole.back());
  if (parts.size() == 1) std::ranges::copy(parts[0].values, sum.begin());
}

void TreeSum::finish(std::span<float> sum) {
  const DefaultFloatMode mode;
  check_length(sum.size());
  if (next_ != own_.end)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("rank {} has added leaves {} to {}, but not {}", ranks_.rank(),
                            own_.begin, next_ - 1, next_));
  const int size = ranks_.size(), rank = ranks_.rank();
  const auto part = [&](int of) { return even_part(length_, size, of); };
  const auto of_part = [](std::span<float> all, Range range) {
    return all.subspan(std::size_t(range.begin), std::size_t(range.size()));
  };
  std::vector<SendPiece> sends;
  std::vector<ReceivePiece> receives;
  std::vector<Subtree> parts;  // this rank's part of the numbers of all subtrees
  std::vector<std::vector<float>> received;
  for (int r = 0; r < size; ++r) {
    if (r == rank) {
      for (const Subtree& own : subtrees_)
        parts.push_back({own.first, own.size, of_part(own.values, part(rank))});
      continue;
    }
    for (const Subtree& own : subtrees_)
      sends.push_back({r, std::as_bytes(of_part(own.values, part(r)))});
    for (const Subtree& other : subtrees_of(r)) {
      received.emplace_back(std::size_t(part(rank).size()));
      parts.push_back({other.first, other.size, received.back()});
      receives.push_back({r, std::as_writable_bytes(parts.back().values)});
    }
  }
  ranks_.exchange("GradW: subtrees of the sum", std::move(sends), std::move(receives));
  add_up(parts, of_part(sum, part(rank)));
  ranks_.exchange_all(
      "GradW: parts of the sum", [&](int) { return of_part(sum, part(rank)); },
      [&](int r) { return of_part(sum, part(r)); });
  for (const Subtree& own : subtrees_) spare_.push_back(own.values);
  subtrees_.clear();
  next_ = own_.begin;
}

}  // namespace tessera::distributed
