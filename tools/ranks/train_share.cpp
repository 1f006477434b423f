#include "tessera/tools/ranks/train_share.hpp"

#include <string>

#include "tessera/base/error.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/distributed/layer.hpp"
#include "tessera/distributed/lists.hpp"
#include "tessera/distributed/tree_sum.hpp"
#include "tessera/host/cpu.hpp"

namespace tessera::tools {
namespace {

using distributed::Communicator;

class RankShare final : public train::BatchShare {
 public:
  RankShare(Communicator& ranks, std::int64_t batch)
      : ranks_(ranks), cpu_(host::read_host_cpu()), cut_{.leaves = distributed::kLeaves} {
    const Problem problem{.size = {1, 1, 1, batch}, .data_type = DataType::Float};
    if (const std::string why = distributed::why_not(cut_, problem, ranks.size()); !why.empty())
      throw_invalid("training on several ranks: " + why);
    const Range own = distributed::own_leaves(ranks, cut_.leaves);
    for (std::int64_t leaf = own.begin; leaf < own.end; ++leaf)
      leaves_.push_back(distributed::leaf_columns(cut_, batch, leaf));
    columns_ = distributed::gather(ranks, "columns of the ranks", columns());
  }

  std::vector<Range> leaves() const override { return leaves_; }

  std::shared_ptr<layer::Layer> make_layer(const Problem& problem, Executor& executor) override {
    return std::make_shared<distributed::RankLayer>(problem, cpu_, executor, ranks_, cut_);
  }

  void add_up(std::span<const float> by_leaf, std::span<float> sum) override {
    const std::int64_t first = distributed::own_leaves(ranks_, cut_.leaves).begin;
    const auto write_leaf = [&](std::int64_t leaf, std::span<float> values) {
      std::ranges::copy(by_leaf.subspan(std::size_t(leaf - first) * values.size(), values.size()),
                        values.begin());
    };
    distributed::tree_sum(ranks_, cut_.leaves, sum, write_leaf, memory_);
  }

  void gather(MatrixView<const float> own, MatrixView<float> all) override {
    std::vector<float> list;
    for (std::int64_t row = 0; row < own.rows; ++row)
      list.insert(list.end(), own.row(row), own.row(row) + own.cols);
    const auto lists = distributed::gather_lists(ranks_, "columns of the batch", list);
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      const float* from = lists[rank].data();
      for (std::int64_t row = 0; row < all.rows; ++row, from += columns_[rank].size())
        std::copy_n(from, columns_[rank].size(), all.row(row) + columns_[rank].begin);
    }
  }

  bool any(bool own) override { return distributed::any_rank(ranks_, "the end of the run", own); }

  void require_same(std::string_view what, std::string_view text) override {
    distributed::require_same(
        ranks_, "training",
        {{what, distributed::Digest().add(std::span(text.data(), text.size())).value()}});
  }

 private:
  Communicator& ranks_;
  host::HostCpu cpu_;
  distributed::Cut cut_;
  std::vector<Range> leaves_;   // of this rank
  std::vector<Range> columns_;  // of all ranks
  distributed::SumMemory memory_;
};

}  // namespace

std::unique_ptr<train::BatchShare> make_batch_share(Communicator& ranks, std::int64_t batch) {
  return std::make_unique<RankShare>(ranks, batch);
}

}  // namespace tessera::tools
