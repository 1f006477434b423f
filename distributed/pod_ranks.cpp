#include "tessera/distributed/pod_ranks.hpp"

#include <fmt/format.h>

#include "tessera/base/error.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/row_cut.hpp"

namespace tessera::distributed {

Range PodRanks::own(std::int64_t count) const {
  return cut_rows(count, 1, ranks_.size()).of(ranks_.rank());
}

void PodRanks::complete(std::span<std::vector<std::byte>> lists) {
  const RowCut cut = cut_rows(std::ssize(lists), 1, ranks_.size());
  const Range own = cut.of(ranks_.rank());
  std::vector<std::int64_t> sizes;
  std::vector<std::byte> all;
  for (std::int64_t device = own.begin; device < own.end; ++device) {
    const std::vector<std::byte>& list = lists[std::size_t(device)];
    sizes.push_back(std::ssize(list));
    all.insert(all.end(), list.begin(), list.end());
  }
  const auto sizes_of = gather_lists(ranks_, "bytes of devices", sizes);
  for (int rank = 0; rank < ranks_.size(); ++rank)
    if (std::ssize(sizes_of[std::size_t(rank)]) != cut.of(rank).size())
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("rank {} runs {} devices of a pod, and should run {} of those that "
                              "rank {} has; give all ranks the same layer",
                              rank, sizes_of[std::size_t(rank)].size(), cut.of(rank).size(),
                              ranks_.rank()));
  const auto bytes_of = gather_lists(ranks_, "results of devices", all);
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) continue;
    auto next = bytes_of[std::size_t(rank)].begin();
    for (std::int64_t device = cut.of(rank).begin; device < cut.of(rank).end; ++device) {
      const std::int64_t size =
          sizes_of[std::size_t(rank)][std::size_t(device - cut.of(rank).begin)];
      lists[std::size_t(device)].assign(next, next + size);
      next += size;
    }
  }
}

bool PodRanks::any(bool own) { return any_rank(ranks_, "wishes to stop", own); }

}  // namespace tessera::distributed
