#include <libxsmm.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tessera/bench/layer/peers.hpp"
#include "tessera/sparse/convert.hpp"

namespace tessera::bench {
namespace {

using Kernel = libxsmm_smmfunction_reducebatch_offs;
constexpr std::int64_t kPanel = 64;  // columns of S

// The sparse operand in slices, which libxsmm makes of a dense matrix.
class Slices {
 public:
  explicit Slices(const PeerProblem& p) {
    libxsmm_spmdm_init(int(p.layer.x), int(p.layer.z), int(p.layer.y), 1, &handle_, &slices_);
    const Matrix<float> dense = sparse::to_dense(p.weights);
    for (int i = 0; i < libxsmm_spmdm_get_num_createSparseSlice_blocks(&handle_); ++i)
      libxsmm_spmdm_createSparseSlice_fp32_thread(&handle_, 'N', dense.elements().data(), slices_,
                                                  i, 0, 1);
  }
  ~Slices() { libxsmm_spmdm_destroy(&handle_); }
  Slices(const Slices&) = delete;
  Slices& operator=(const Slices&) = delete;

  void multiply(const float* s, float* q) const {
    const float one = 1, zero = 0;
    for (int i = 0; i < libxsmm_spmdm_get_num_compute_blocks(&handle_); ++i)
      libxsmm_spmdm_compute_fp32_thread(&handle_, 'N', 'N', &one, slices_, s, 'N', &zero, q, i, 0,
                                        1);
  }

 private:
  libxsmm_spmdm_handle handle_{};
  libxsmm_CSR_sparseslice* slices_ = nullptr;
};

// Adds up the blocks of a block row in one call, for a number of columns of S. In libxsmm's
// column-major terms, S and Q are transposed without being moved, and so are R's blocks.
class BlockRows {
 public:
  // S has `columns` columns; its rows are `s_stride` apart.
  BlockRows(const sparse::Csr<float>& r, std::int64_t columns, std::int64_t s_stride,
            std::int64_t q_stride)
      : r_(r), columns_(columns), q_stride_(q_stride) {
    const auto block = static_cast<libxsmm_blasint>(r.block.rows);
    const auto lda = static_cast<libxsmm_blasint>(s_stride);
    const auto ldc = static_cast<libxsmm_blasint>(q_stride);
    const float one = 1, zero = 0;
    kernel_ =
        libxsmm_smmdispatch_reducebatch_offs(static_cast<libxsmm_blasint>(columns), block, block,
                                             &lda, &block, &ldc, &one, &zero, nullptr, nullptr);
    if (kernel_ == nullptr) throw std::runtime_error("libxsmm: no kernel for this shape");
    for (std::int64_t i = 0; i < r.blocks(); ++i) {
      s_offset_.push_back(sizeof(float) * std::uint64_t(r.col[std::size_t(i)] * block * s_stride));
      r_offset_.push_back(sizeof(float) * std::uint64_t(i * block * block));
    }
  }

  void multiply(const float* s, float* q) const {
    for (std::int64_t row = 0; row < r_.block_rows(); ++row) {
      const std::int64_t first = r_.row_begin[std::size_t(row)];
      const unsigned long long count = std::uint64_t(r_.row_begin[std::size_t(row) + 1] - first);
      float* to = q + row * r_.block.rows * q_stride_;
      if (count > 0)
        kernel_(s, r_.values.data(), to, &count, s_offset_.data() + first,
                r_offset_.data() + first);
      else
        for (std::int64_t i = 0; i < r_.block.rows; ++i)
          std::fill_n(to + i * q_stride_, columns_, 0.0f);
    }
  }

 private:
  const sparse::Csr<float>& r_;
  std::int64_t columns_, q_stride_;
  Kernel kernel_ = nullptr;
  std::vector<unsigned long long> s_offset_, r_offset_;  // in bytes, of each block
};

bool has_blocks(const PeerProblem& problem) { return problem.weights.block.rows > 1; }

}  // namespace

// This product is for elements; blocks have a faster one.
Product make_libxsmm_spmdm(const PeerProblem& problem) {
  if (has_blocks(problem)) return {};
  const auto slices = std::make_shared<const Slices>(problem);
  return [slices, &s = problem.s](Matrix<float>& q) {
    slices->multiply(s.elements().data(), q.elements().data());
  };
}

// Reads S in place, with all columns in one call for each block row.
Product make_libxsmm_blocks(const PeerProblem& problem) {
  if (!has_blocks(problem)) return {};
  const std::int64_t z = problem.s.cols();
  const auto rows = std::make_shared<const BlockRows>(problem.weights, z, z, z);
  return [rows, &s = problem.s](Matrix<float>& q) {
    rows->multiply(s.elements().data(), q.elements().data());
  };
}

// Rows of S that are pages apart share few cache lines. At z 1024, copying them first pays even
// though the copy is timed.
Product make_libxsmm_panels(const PeerProblem& problem) {
  const std::int64_t z = problem.s.cols();
  if (!has_blocks(problem) || z % kPanel != 0) return {};
  const auto rows = std::make_shared<const BlockRows>(problem.weights, kPanel, kPanel, z);
  const auto panel = std::make_shared<Matrix<float>>(problem.s.rows(), kPanel);
  return [rows, panel, &s = problem.s](Matrix<float>& q) {
    for (std::int64_t first = 0; first < s.cols(); first += kPanel) {
      for (std::int64_t y = 0; y < s.rows(); ++y)
        std::copy_n(&s(y, first), kPanel, &(*panel)(y, 0));
      rows->multiply(panel->elements().data(), q.elements().data() + first);
    }
  };
}

}  // namespace tessera::bench
