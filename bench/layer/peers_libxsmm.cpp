#include <libxsmm.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tessera/base/aligned_vector.hpp"
#include "tessera/bench/layer/peers.hpp"
#include "tessera/bench/layer/peers_16bit.hpp"
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

bool has_blocks(const PeerProblem& problem) { return problem.weights.block.area() > 1; }
// Its kernels that add up blocks are called for square ones and rows of samples side by side.
bool has_square_blocks(const PeerProblem& problem) {
  const BlockShape block = problem.weights.block;
  return block.rows > 1 && block.rows == block.cols && !problem.batch_first;
}

// Both products of bfloat16 give floats.
using Floats = std::shared_ptr<Matrix<float>>;

const libxsmm_bfloat16* bits_of(const BFloat16* numbers) {
  return reinterpret_cast<const libxsmm_bfloat16*>(numbers);
}

Product16 spmdm_16bit(const Peer16Problem<BFloat16>& p) {
  struct Slices16 {
    libxsmm_spmdm_handle handle{};
    libxsmm_CSR_sparseslice* slices = nullptr;
    ~Slices16() { libxsmm_spmdm_destroy(&handle); }
  };
  const auto own = std::make_shared<Slices16>();
  libxsmm_spmdm_init(int(p.layer.x), int(p.layer.z), int(p.layer.y), 1, &own->handle, &own->slices);
  std::vector<BFloat16> dense;
  const Matrix<float> floats = sparse::to_dense(p.weights);
  for (const float value : floats.elements()) dense.push_back(BFloat16(value));
  for (int i = 0; i < libxsmm_spmdm_get_num_createSparseSlice_blocks(&own->handle); ++i)
    libxsmm_spmdm_createSparseSlice_bfloat16_thread(&own->handle, 'N', bits_of(dense.data()),
                                                    own->slices, i, 0, 1);
  const Floats q = std::make_shared<Matrix<float>>(p.layer.x, p.layer.z);
  return {"libxsmm spmdm",
          [own, q, &s = p.s] {
            const libxsmm_bfloat16 one = BFloat16(1.0f).bits, zero = 0;
            for (int i = 0; i < libxsmm_spmdm_get_num_compute_blocks(&own->handle); ++i)
              libxsmm_spmdm_compute_bfloat16_thread(&own->handle, 'N', 'N', &one, own->slices,
                                                    bits_of(s.elements().data()), 'N', &zero,
                                                    q->elements().data(), i, 0, 1);
          },
          [q](std::int64_t x, std::int64_t z) { return (*q)(x, z); }};
}

// The kernels of bfloat16 want two rows of S side by side, so panels are copied in that order.
Product16 panels_16bit(const Peer16Problem<BFloat16>& p) {
  const auto block = static_cast<libxsmm_blasint>(p.layer.block);
  const auto lda = static_cast<libxsmm_blasint>(kPanel);
  const auto ldc = static_cast<libxsmm_blasint>(p.layer.z);
  const float one = 1, zero = 0;
  const int flags = LIBXSMM_GEMM_FLAG_VNNI_A | LIBXSMM_GEMM_FLAG_BETA_0;
  const auto kernel = libxsmm_bsmmdispatch_reducebatch_offs(lda, block, block, &lda, &block, &ldc,
                                                            &one, &zero, &flags, nullptr);
  if (kernel == nullptr) throw std::runtime_error("libxsmm: no kernel for this shape");
  std::vector<unsigned long long> s_offset, r_offset;  // in bytes, of each block
  for (std::int64_t i = 0; i < p.weights.blocks(); ++i) {
    s_offset.push_back(2 * std::uint64_t(p.weights.col[std::size_t(i)] * block * kPanel));
    r_offset.push_back(2 * std::uint64_t(i * block * block));
  }
  const Floats q = std::make_shared<Matrix<float>>(p.layer.x, p.layer.z);
  const auto panel = std::make_shared<AlignedVector<BFloat16>>(std::size_t(p.layer.y * kPanel));
  return {"libxsmm, S in panels",
          [=, &p] {
            for (std::int64_t first = 0; first < p.s.cols(); first += kPanel) {
              for (std::int64_t y = 0; y < p.s.rows(); ++y)
                for (std::int64_t z = 0; z < kPanel; ++z)
                  (*panel)[std::size_t((y / 2 * kPanel + z) * 2 + y % 2)] = p.s(y, first + z);
              for (std::int64_t row = 0; row < p.weights.block_rows(); ++row) {
                const auto at = std::size_t(p.weights.row_begin[std::size_t(row)]);
                const unsigned long long count =
                    std::uint64_t(p.weights.row_begin[std::size_t(row) + 1]) - at;
                if (count > 0)
                  kernel(bits_of(panel->data()), bits_of(p.values.data()),
                         &(*q)(row * block, first), &count, s_offset.data() + at,
                         r_offset.data() + at);
              }
            }
          },
          [q](std::int64_t x, std::int64_t z) { return (*q)(x, z); }};
}

}  // namespace

std::vector<Product16> libxsmm_products(const Peer16Problem<BFloat16>& problem) {
  if (problem.layer.block == 1) return {spmdm_16bit(problem)};
  if (problem.layer.z % kPanel != 0) return {};
  return {panels_16bit(problem)};
}

// This product is for elements; blocks have a faster one.
Product make_libxsmm_spmdm(const PeerProblem& problem) {
  if (has_blocks(problem) || problem.batch_first) return {};
  const auto slices = std::make_shared<const Slices>(problem);
  return [slices, &s = problem.s](Matrix<float>& q) {
    slices->multiply(s.elements().data(), q.elements().data());
  };
}

// Reads S in place, with all columns in one call for each block row.
Product make_libxsmm_blocks(const PeerProblem& problem) {
  if (!has_square_blocks(problem)) return {};
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
  if (!has_square_blocks(problem) || z % kPanel != 0) return {};
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
