#include "tessera/distributed/tree_sum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tessera::distributed {
namespace {

constexpr std::int64_t kMostLeaves = 4096;

Range share(std::int64_t size, int parts, int i) {
  return {size * i / parts, size * (i + 1) / parts};
}

// A tree of 6 leaves is one of 4 and one of 2, whose sums are added last.
void add_into(std::vector<float>& sum, const std::vector<float>& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
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

std::vector<float> TreeSum::take(Pool& pool, std::int64_t length) {
  std::vector<float> list;
  if (!pool.empty()) {
    list = std::move(pool.back());
    pool.pop_back();
  }
  list.resize(static_cast<std::size_t>(length));
  return list;
}

// Adds the neighbours that are both complete.
void TreeSum::push(std::vector<Subtree>& subtrees, Subtree next, Pool& pool) {
  while (!subtrees.empty() && subtrees.back().size == next.size &&
         subtrees.back().first % (2 * next.size) == 0 &&
         subtrees.back().first + next.size == next.first) {
    Subtree left = std::move(subtrees.back());
    subtrees.pop_back();
    add_into(left.values, next.values);
    pool.push_back(std::move(next.values));
    left.size *= 2;
    next = std::move(left);
  }
  subtrees.push_back(std::move(next));
}

void TreeSum::add(std::span<const float> leaf) {
  check_length(leaf.size());
  if (next_ == own_.end)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("rank {} has leaves {} to {}, and one more was added", ranks_.rank(),
                            own_.begin, own_.end - 1));
  std::vector<float> values = take(whole_lists_, length_);
  std::copy(leaf.begin(), leaf.end(), values.begin());
  push(subtrees_, {next_++, 1, std::move(values)}, whole_lists_);
}

// Returns the subtrees that a rank has at the end, by the same rule.
std::vector<Range> TreeSum::runs_of(int rank) const {
  const Range leaves = share(leaves_, ranks_.size(), rank);
  std::vector<Subtree> subtrees;
  Pool none;
  for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf)
    push(subtrees, {leaf, 1, {}}, none);
  std::vector<Range> runs;
  for (const Subtree& s : subtrees) runs.push_back({s.first, s.first + s.size});
  return runs;
}

void TreeSum::finish(std::span<float> sum) {
  check_length(sum.size());
  if (next_ != own_.end)
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("rank {} has added leaves {} to {}, but not {}", ranks_.rank(),
                            own_.begin, next_ - 1, next_));
  const int size = ranks_.size(), rank = ranks_.rank();
  const auto part = [&](int of) { return share(length_, size, of); };
  const auto bytes_of = [](std::span<float> all, Range range) {
    return std::as_writable_bytes(all.subspan(std::size_t(range.begin), std::size_t(range.size())));
  };
  std::vector<SendPiece> sends;
  std::vector<ReceivePiece> receives;
  std::vector<Subtree> parts;  // of all ranks: this rank's part of the numbers
  for (int r = 0; r < size; ++r)
    for (const Range& run : runs_of(r))
      parts.push_back({run.begin, run.size(), take(parts_, part(rank).size())});
  std::size_t next = 0;
  for (int r = 0; r < size; ++r) {
    if (r != rank)
      for (Subtree& own : subtrees_) sends.push_back({r, bytes_of(own.values, part(r))});
    const std::size_t count = r == rank ? subtrees_.size() : runs_of(r).size();
    for (std::size_t i = 0; i < count; ++i, ++next) {
      std::vector<float>& values = parts[next].values;
      if (r == rank)
        std::copy_n(subtrees_[i].values.begin() + part(rank).begin, part(rank).size(),
                    values.begin());
      else
        receives.push_back({r, std::as_writable_bytes(std::span(values))});
    }
  }
  ranks_.exchange("GradW: subtrees of the sum", sends, receives);
  std::vector<Subtree> whole;
  for (Subtree& subtree : parts) push(whole, std::move(subtree), parts_);
  // Leaves that are no power of two leave several subtrees, the largest first.
  for (; whole.size() > 1; whole.pop_back()) {
    add_into(whole[whole.size() - 2].values, whole.back().values);
    parts_.push_back(std::move(whole.back().values));
  }
  std::copy(whole[0].values.begin(), whole[0].values.end(), sum.begin() + part(rank).begin);
  parts_.push_back(std::move(whole[0].values));
  sends.clear();
  receives.clear();
  for (int r = 0; r < size; ++r) {
    if (r == rank) continue;
    sends.push_back({r, bytes_of(sum, part(rank))});
    receives.push_back({r, bytes_of(sum, part(r))});
  }
  ranks_.exchange("GradW: parts of the sum", sends, receives);
  for (Subtree& own : subtrees_) whole_lists_.push_back(std::move(own.values));
  subtrees_.clear();
  next_ = own_.begin;
}

}  // namespace tessera::distributed
