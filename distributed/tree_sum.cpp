#include "tessera/distributed/tree_sum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "tessera/base/float_mode.hpp"

namespace tessera::distributed {
namespace {

Range share(std::int64_t size, int parts, int i) {
  return {size * i / parts, size * (i + 1) / parts};
}

// Adds the next subtree to those before it. Neighbours that are both complete become one, whose
// values are left by add(left, right). A tree of 6 leaves is one of 4 and one of 2.
template <class Node, class Add>
void push(std::vector<Node>& nodes, Node next, const Add& add) {
  while (!nodes.empty() && nodes.back().size == next.size &&
         nodes.back().first % (2 * next.size) == 0 &&
         nodes.back().first + next.size == next.first) {
    Node left = std::move(nodes.back());
    nodes.pop_back();
    add(left, next);
    left.size *= 2;
    next = std::move(left);
  }
  nodes.push_back(std::move(next));
}

}  // namespace

TreeSum::TreeSum(Communicator& ranks, std::int64_t leaves, std::int64_t length)
    : ranks_(ranks), leaves_(leaves), length_(length) {
  if (leaves < 1 || leaves > kMostLeaves || length < 0)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("a sum of {} lists of {} numbers: there must be 1 to {} lists of 0 or "
                            "more numbers",
                            leaves, length, kMostLeaves));
  own_ = share(leaves, ranks.size(), ranks.rank());
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
  std::vector<float> values;
  if (!spare_.empty()) {
    values = std::move(spare_.back());
    spare_.pop_back();
  }
  values.assign(leaf.begin(), leaf.end());
  push(subtrees_, Subtree{next_++, 1, std::move(values)}, [&](Subtree& left, Subtree& right) {
    std::ranges::transform(left.values, right.values, left.values.begin(), std::plus<>());
    spare_.push_back(std::move(right.values));
  });
}

// Returns the subtrees that a rank has at the end.
std::vector<Range> TreeSum::runs_of(int rank) const {
  const Range leaves = share(leaves_, ranks_.size(), rank);
  std::vector<Part> parts;
  for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf)
    push(parts, Part{leaf, 1, {}}, [](Part&, Part&) {});
  std::vector<Range> runs;
  for (const Part& part : parts) runs.push_back({part.first, part.first + part.size});
  return runs;
}

// Adds the parts of all subtrees up in the order of the tree. The last sum is written to `sum`, the
// others over the left one of each two.
void TreeSum::add_parts(std::span<const Part> parts, std::span<float> sum) {
  std::size_t sums_left = parts.size() - 1;
  const auto add_right = [&](Part& left, Part& right) {
    const std::span<float> to = --sums_left == 0 ? sum : left.values;
    std::transform(left.values.begin(), left.values.end(), right.values.begin(), to.begin(),
                   std::plus<>());
    left.values = to;
  };
  std::vector<Part> whole;
  for (const Part& next : parts) push(whole, next, add_right);
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
  const auto part = [&](int of) { return share(length_, size, of); };
  const auto of_part = [](std::span<float> all, Range range) {
    return all.subspan(std::size_t(range.begin), std::size_t(range.size()));
  };
  std::vector<SendPiece> sends;
  std::vector<ReceivePiece> receives;
  std::vector<Part> parts;  // this rank's part of the numbers of all subtrees
  std::vector<std::vector<float>> received;
  for (int r = 0; r < size; ++r) {
    if (r == rank) {
      for (Subtree& own : subtrees_)
        parts.push_back({own.first, own.size, of_part(own.values, part(rank))});
      continue;
    }
    for (Subtree& own : subtrees_)
      sends.push_back({r, std::as_bytes(of_part(own.values, part(r)))});
    for (const Range& run : runs_of(r)) {
      received.emplace_back(std::size_t(part(rank).size()));
      parts.push_back({run.begin, run.size(), received.back()});
      receives.push_back({r, std::as_writable_bytes(parts.back().values)});
    }
  }
  ranks_.exchange("GradW: subtrees of the sum", sends, receives);
  add_parts(parts, of_part(sum, part(rank)));
  sends.clear();
  receives.clear();
  for (int r = 0; r < size; ++r) {
    if (r == rank) continue;
    sends.push_back({r, std::as_bytes(of_part(sum, part(rank)))});
    receives.push_back({r, std::as_writable_bytes(of_part(sum, part(r)))});
  }
  ranks_.exchange("GradW: parts of the sum", sends, receives);
  subtrees_.clear();
  next_ = own_.begin;
}

}  // namespace tessera::distributed
