#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "tessera/base/executor.hpp"
#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/host/internal/dense.hpp"
#include "tessera/host/internal/gradient.hpp"
#include "tessera/host/internal/packed.hpp"
#include "tessera/host/internal/product.hpp"
#include "tessera/layer/change_part.hpp"
#include "tessera/sparse/change.hpp"

namespace tessera::host::internal {

// The form in which a pass reads R.
enum class PassForm {
  Cells,
  Dense,  // with its zeros
  Packed  // rows with packed positions; Fwd of elements in 16 bits only
};

// The form of R for each pass.
class PassForms {
 public:
  PassForm& operator[](Pass pass) { return forms_[std::size_t(pass)]; }
  PassForm operator[](Pass pass) const { return forms_[std::size_t(pass)]; }
  friend bool operator==(const PassForms&, const PassForms&) = default;

 private:
  std::array<PassForm, 3> forms_{};
};

// The inputs that every group of a layer is made from. The executor must outlive the group.
struct GroupSetting {
  Problem problem;
  HostCpu cpu;
  Executor* executor = nullptr;
  bool own_dense_kernel = false;
  std::optional<double> blocks_in_row;
  bool reads_rows = true;  // HostOptions::reads_rows
};

// The prepared changes of the cells of each pass.
struct GroupEdits {
  std::optional<partitioner::CellEdits> fwd, grad_a;
};

// The weights of one group in the form that each pass of the problem reads: cells of R for Fwd,
// cells of transpose(R) for GradA, R with its zeros, or, for Fwd, packed rows. GradW reads the
// positions of the matrix itself, and Fwd of one column or of samples its rows where they are
// faster.
template <class T>
class HostGroup {
 public:
  // Encodes the weights. They are checked (sparse::check) and have the layer's shape.
  HostGroup(const GroupSetting& setting, const sparse::Csr<float>& weights, const PassForms& forms);

  // Returns the prepared change of the cells of `weights`, the group's matrix, or nothing if the
  // changed matrix has to be encoded: where a pass has no cells, or its cells are cut for another
  // density or too small.
  std::optional<GroupEdits> prepare(const sparse::Csr<float>& weights,
                                    std::span<const sparse::PlacedBlock> change);

  // Makes that change. Allocates nothing.
  void apply(GroupEdits& edits) noexcept;

  // Sets the values of `weights`, whose pattern is the group's. O(values) on all threads; neither
  // allocates nor throws.
  void set_values(const sparse::Csr<float>& weights);

  // Changes the values of `weights`, whose pattern is the group's, part by part, and fills the
  // cells from each part (HostLayer::change_values). O(values) on all threads; allocates nothing.
  // If `change` throws, set_values must follow.
  void change_values(sparse::Csr<float>& weights, const layer::ChangePart& change);

  // The passes of HostLayer. They add their times to `times` and return false when the caller
  // stopped them. `weights` are the group's matrix.
  [[nodiscard]] bool forward(const sparse::Csr<float>& weights, MatrixView<const T> s,
                             MatrixView<T> q, const Epilogue<T>& after, PassControl& control,
                             HostTimes& times);
  [[nodiscard]] bool grad_a(MatrixView<const T> q_grad, MatrixView<T> s_grad,
                            const Epilogue<T>& after, PassControl& control, HostTimes& times);
  [[nodiscard]] bool grad_w(const sparse::Csr<float>& weights, const DotOperands<T>& batch,
                            std::span<float> gradients, Accumulate accumulate, PassControl& control,
                            HostTimes& times);

  // Returns the cells and values that Fwd reads, or null if the pass has another form.
  const HostProduct<T>* forward_cells() const { return std::get_if<HostProduct<T>>(&fwd_); }

  // Computes Fwd or GradA as product() of the form that the pass has, which must not be dense.
  // `weights` are the group's matrix. Calls that run at the same time differ in their scratch
  // memory and executor.
  [[nodiscard]] bool product(Pass pass, const sparse::Csr<float>& weights,
                             const ProductCall<T>& call) const;

  // Returns the bytes of all forms, without scratch.
  std::int64_t bytes() const {
    const auto of = [](const auto& form) { return form.bytes(); };
    const auto* const dense = std::get_if<HostDense<T>>(&grad_w_);
    return std::visit(of, fwd_) + std::visit(of, grad_a_) + (dense ? dense->bytes() : 0);
  }

 private:
  // Returns true if Fwd of these operands reads the rows of the weights, not their cells.
  bool takes_rows(const sparse::Csr<float>& weights, MatrixView<const T> s,
                  MatrixView<const T> q) const;

  using Product = std::variant<HostProduct<T>, HostDense<T>>;
  using Forward = std::conditional_t<std::is_same_v<T, float>, Product,
                                     std::variant<HostProduct<T>, HostDense<T>, HostPacked<T>>>;
  using Gradient = std::variant<HostGradient<T>, HostDense<T>>;

  // Form is Product or Forward; `use` is a product's.
  template <class Form>
  void set_product(Form& product, const sparse::Csr<float>& weights, PassForm chosen,
                   typename HostDense<T>::Use use);
  template <class Form>
  static void set_values_of(Form& product, const sparse::Csr<float>& weights);

  // The parts in which values change: those of the cell rows of Fwd, or, where it has no cells, so
  // many of about the same number of rows. Rows are elements.
  static constexpr std::int64_t kOtherParts = 16;
  std::int64_t parts() const;
  Range part_rows(std::int64_t part) const;
  Range thread_rows(std::int64_t thread) const;
  static void change_part(sparse::Csr<float>& weights, Range rows, const layer::ChangePart& change);

  GroupSetting setting_;
  ProductScratch<T> scratch_;  // where forward() reads rows
  Forward fwd_;
  Product grad_a_;
  Gradient grad_w_;
};

}  // namespace tessera::host::internal
