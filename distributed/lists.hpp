#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/distributed/communicator.hpp"

namespace tessera::distributed {

// Sends list i to rank i and returns the lists that came, by rank; the list to oneself is moved.
// The sizes travel first. T is trivially copyable.
template <class T>
std::vector<std::vector<T>> exchange_lists(Communicator& ranks, std::string_view what,
                                           std::vector<std::vector<T>> lists) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto own = std::size_t(ranks.rank());
  const auto all = std::size_t(ranks.size());
  std::vector<std::int64_t> sizes(all), sent_sizes(all);
  std::vector<std::vector<T>> result(all);
  std::vector<SendPiece> sends;
  std::vector<ReceivePiece> receives;
  for (std::size_t r = 0; r < all; ++r) {
    if (r == own) continue;
    sent_sizes[r] = std::ssize(lists[r]);
    sends.push_back({int(r), std::as_bytes(std::span(&sent_sizes[r], 1))});
    receives.push_back({int(r), std::as_writable_bytes(std::span(&sizes[r], 1))});
  }
  ranks.exchange(what, sends, receives);
  sends.clear();
  receives.clear();
  for (std::size_t r = 0; r < all; ++r) {
    if (r == own) continue;
    result[r].resize(std::size_t(sizes[r]));
    sends.push_back({int(r), std::as_bytes(std::span(lists[r]))});
    receives.push_back({int(r), std::as_writable_bytes(std::span(result[r]))});
  }
  ranks.exchange(what, sends, receives);
  result[own] = std::move(lists[own]);
  return result;
}

// Returns the lists of all ranks, by rank.
template <class T>
std::vector<std::vector<T>> gather_lists(Communicator& ranks, std::string_view what,
                                         const std::vector<T>& list) {
  return exchange_lists(ranks, what, std::vector<std::vector<T>>(std::size_t(ranks.size()), list));
}

// Returns the numbers of all ranks, by rank.
template <class T>
std::vector<T> gather(Communicator& ranks, std::string_view what, const T& own) {
  std::vector<T> all;
  for (const auto& list : gather_lists(ranks, what, std::vector<T>{own})) all.push_back(list[0]);
  return all;
}

// Returns the sum of the numbers of all ranks.
inline std::int64_t sum_of_ranks(Communicator& ranks, std::string_view what, std::int64_t own) {
  const std::vector<std::int64_t> all = gather(ranks, what, own);
  return std::reduce(all.begin(), all.end());
}

// Returns the sums over all ranks of lists of the same length. Each rank adds up one part of the
// lists, in the order of the ranks, and then tells everybody.
template <class T>
std::vector<T> sums_of_ranks(Communicator& ranks, std::string_view what,
                             const std::vector<T>& own) {
  const auto part = [&](int rank) { return own.begin() + std::ssize(own) * rank / ranks.size(); };
  std::vector<std::vector<T>> to;
  for (int rank = 0; rank < ranks.size(); ++rank) to.emplace_back(part(rank), part(rank + 1));
  std::vector<T> sum(to[std::size_t(ranks.rank())].size()), all;
  for (const auto& list : exchange_lists(ranks, what, std::move(to)))
    std::transform(sum.begin(), sum.end(), list.begin(), sum.begin(), std::plus<>());
  for (const auto& list : gather_lists(ranks, what, sum))
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

// Returns true on every rank if `own` is true on any.
inline bool any_rank(Communicator& ranks, std::string_view what, bool own) {
  const std::vector<char> all = gather(ranks, what, char{own});
  return std::ranges::find(all, char{true}) != all.end();
}

// Returns the list of the first rank on every rank. It is sent from where it is, without a copy for
// each rank.
template <class T>
std::vector<T> list_of_first(Communicator& ranks, std::string_view what, std::vector<T> list) {
  const bool is_first = ranks.rank() == 0;
  const std::int64_t size = gather(ranks, what, std::int64_t{std::ssize(list)})[0];
  std::vector<SendPiece> sends;
  std::vector<ReceivePiece> receives;
  if (!is_first) {
    list.resize(std::size_t(size));
    receives.push_back({0, std::as_writable_bytes(std::span(list))});
  } else {
    for (int rank = 1; rank < ranks.size(); ++rank)
      sends.push_back({rank, std::as_bytes(std::span(std::as_const(list)))});
  }
  ranks.exchange(what, sends, receives);
  return list;
}

}  // namespace tessera::distributed
