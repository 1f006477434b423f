#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/dims.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/even_part.hpp"
#include "tessera/distributed/communicator.hpp"

namespace tessera::distributed {

// The longest list that a rank takes from another one, in bytes. A longer one is a size that has
// changed on its way, or comes from another program: it is named instead of a lack of memory.
constexpr std::int64_t kLongestList = std::int64_t{1} << 40;

// Sends the list to(i) to rank i and returns the lists that came, by rank. The sizes travel first,
// and one that no list has is Error{Internal}, which names its rank. T is trivially copyable.
template <class T, class To>
std::vector<std::vector<T>> exchange_spans(Communicator& ranks, std::string_view what,
                                           const To& to) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto all = std::size_t(ranks.size());
  std::vector<std::int64_t> sizes(all), sent_sizes(all);
  for (int r = 0; r < ranks.size(); ++r) sent_sizes[std::size_t(r)] = std::ssize(to(r));
  ranks.exchange_all(
      what, [&](int r) { return std::span(&sent_sizes[std::size_t(r)], 1); },
      [&](int r) { return std::span(&sizes[std::size_t(r)], 1); });
  std::vector<std::vector<T>> result(all);
  for (std::size_t r = 0; r < all; ++r) {
    if (sizes[r] < 0 || sizes[r] > kLongestList / std::int64_t{sizeof(T)})
      throw Error(ErrorCode::Internal, std::string(what) + ": rank " +
                                           std::to_string(ranks.number(int(r))) +
                                           " has a list of " + std::to_string(sizes[r]) +
                                           "; ranks take at most 2^40 bytes");
    result[r].resize(std::size_t(sizes[r]));
  }
  ranks.exchange_all(what, to, [&](int r) { return std::span(result[std::size_t(r)]); });
  const std::span<const T> own = to(ranks.rank());
  result[std::size_t(ranks.rank())].assign(own.begin(), own.end());
  return result;
}

// Sends list i to rank i and returns the lists that came, by rank.
template <class T>
std::vector<std::vector<T>> exchange_lists(Communicator& ranks, std::string_view what,
                                           const std::vector<std::vector<T>>& lists) {
  return exchange_spans<T>(ranks, what, [&](int r) { return std::span(lists[std::size_t(r)]); });
}

// Returns the lists of all ranks, by rank.
template <class T>
std::vector<std::vector<T>> gather_lists(Communicator& ranks, std::string_view what,
                                         const std::vector<T>& list) {
  return exchange_spans<T>(ranks, what, [&](int) { return std::span(list); });
}

// Returns the lists of all ranks one after the other, on the first rank; the others get none. A
// list is a vector or a span.
template <class List>
auto lists_on_first(Communicator& ranks, std::string_view what, const List& own) {
  using T = typename List::value_type;
  const auto to = [&](int r) { return std::span(own).first(r == 0 ? own.size() : 0); };
  std::vector<T> all;
  for (const auto& list : exchange_spans<T>(ranks, what, to))
    all.insert(all.end(), list.begin(), list.end());
  return all;
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
  const auto to = [&](int rank) {
    const Range part = even_part(std::ssize(own), ranks.size(), rank);
    return std::span(own).subspan(std::size_t(part.begin), std::size_t(part.size()));
  };
  std::vector<T> sum(to(ranks.rank()).size()), all;
  for (const auto& list : exchange_spans<T>(ranks, what, to))
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

// Returns the list of the first rank on every rank. It is sent from where it is, with one copy for
// the first rank itself.
template <class T>
std::vector<T> list_of_first(Communicator& ranks, std::string_view what,
                             const std::vector<T>& list) {
  const auto own = std::span(list).first(ranks.rank() == 0 ? list.size() : 0);
  return std::move(exchange_spans<T>(ranks, what, [&](int) { return own; })[0]);
}

}  // namespace tessera::distributed
