#pragma once

#include <span>
#include <string>

#include "tessera/base/matrix.hpp"
#include "tessera/base/problem.hpp"
#include "tessera/distributed/agreement.hpp"
#include "tessera/sparse/checked.hpp"
#include "tessera/tools/internal/ranks.hpp"
#include "tessera/tools/sparse_fc_layer/arguments.hpp"

// A launcher may give each rank a command line and files of its own. These compare what a run
// depends on before ranks exchange results: without that, messages of another size arrive, or
// results of two layers are compared. All are collective, throw Error{InvalidArgument} on every
// rank if there is a difference, and do nothing in a program that is one process.
namespace tessera::tools {

// Compares the options on which the exchanges of the ranks depend. Must come first.
void require_same_options(const Arguments& arguments);

void require_same_problem(const Problem& problem);
void require_same_weights(std::span<const sparse::CheckedCsr<float>> weights);
void require_same_plan(const std::string& plan_json);

// Compares the whole operands of a layer.
template <class T>
void require_same_operands(const Matrix<T>& s, const Matrix<T>& q_grad) {
  if (internal::ranks() == nullptr) return;
  const auto digest = [](const Matrix<T>& matrix) {
    return distributed::Digest().add(std::span<const T>(matrix.elements())).value();
  };
  distributed::require_same(*internal::ranks(), "run",
                            {{"matrix S", digest(s)}, {"matrix dQ", digest(q_grad)}});
}

}  // namespace tessera::tools
