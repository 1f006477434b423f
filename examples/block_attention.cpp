// One head of block-sparse attention, forward and backward, on a modelled machine and on this
// computer, beside plain loops in double precision.
//   S = Q * transpose(K) / sqrt(head) at the mask,  P = softmax of the rows of S,  O = P * V
// On the machine this is runtime::BlockAttention, whose programs are priced one by one. On this
// computer the three products are passes of one layer whose pattern is the mask: GradW is the
// product of two dense matrices at the mask, Fwd and GradA multiply by P and by its transpose.
// Masks are causal, with a window and two global rows, and random blocks with the lower triangle
// kept.

#include <cmath>
#include <cstdio>
#include <vector>

#include "tessera/base/random.hpp"
#include "tessera/sparse/block_mask.hpp"
#include "tessera/sparse/convert.hpp"
#include "tessera/tessera.hpp"

namespace {

using namespace tessera;

constexpr std::int64_t kSequence = 96, kHead = 16;
constexpr BlockShape kBlock{8, 8};
const float kScale = 1 / std::sqrt(float(kHead));

struct Attention {
  Matrix<float> q{kSequence, kHead}, k = q, v = q, o_grad = q;  // operands
  Matrix<float> o = q, q_grad = q, k_grad = q, v_grad = q;      // results
};

Attention random_operands() {
  Attention a;
  Random random(3);
  for (Matrix<float>* matrix : {&a.q, &a.k, &a.v, &a.o_grad})
    for (float& value : matrix->elements()) value = float(2 * random.unit() - 1);
  return a;
}

void attend_on_machine(runtime::BlockAttention& attention, Attention& a, bool prints) {
  const auto view = [](const Matrix<float>& matrix) { return matrix.view(); };
  const runtime::AttentionCost forward =
      attention.forward<float>(view(a.q), view(a.k), view(a.v), a.o.view());
  const runtime::AttentionCost backward =
      attention.backward<float>(view(a.q), view(a.k), view(a.v), view(a.o_grad), a.q_grad.view(),
                                a.k_grad.view(), a.v_grad.view());
  if (!prints) return;
  std::printf("%s%12lld cycles planned\n\n%s%12lld cycles planned\n\n", forward.table().c_str(),
              static_cast<long long>(attention.planned_forward().value), backward.table().c_str(),
              static_cast<long long>(attention.planned_backward().value));
  std::printf("%s\n", to_string(attention.softmax().program()).c_str());
}

// The same on this computer, with the softmax between the passes of a layer.
void attend_on_host(host::HostLayer& layer, const sparse::Csr<float>& mask, Executor& executor,
                    Attention& a) {
  const auto view = [](const Matrix<float>& matrix) { return matrix.view(); };
  std::vector<float> p(mask.values.size()), s_grad(p.size());
  layer.grad_w<float>(view(a.q), view(a.k), std::span<float>(p));
  host::softmax_rows(mask, p, p, executor, kScale);
  layer.set_values(p);
  layer.forward<float>(view(a.v), a.o.view());

  layer.grad_a<float>(view(a.o_grad), a.v_grad.view());
  layer.grad_w<float>(view(a.o_grad), view(a.v), std::span<float>(s_grad));
  host::softmax_rows_gradient(mask, p, s_grad, s_grad, executor, kScale);
  layer.set_values(s_grad);
  layer.forward<float>(view(a.k), a.q_grad.view());
  layer.grad_a<float>(view(a.q), a.k_grad.view());
}

// The same in double; `kept` is the dense mask.
void plain_attention(const Matrix<float>& kept, const Attention& a, Matrix<double> results[4]) {
  Matrix<double>&o = results[0], &q_grad = results[1], &k_grad = results[2], &v_grad = results[3];
  for (std::int64_t i = 0; i < 4; ++i) results[i] = Matrix<double>(kSequence, kHead);
  for (std::int64_t r = 0; r < kSequence; ++r) {
    std::vector<double> p(kSequence), p_grad(kSequence);
    double sum = 0, dot = 0;
    for (std::int64_t c = 0; c < kSequence; ++c) {
      double s = 0;
      for (std::int64_t d = 0; d < kHead; ++d) {
        s += double(a.q(r, d)) * double(a.k(c, d));
        p_grad[c] += double(a.o_grad(r, d)) * double(a.v(c, d));
      }
      p[c] = kept(r, c) != 0 ? std::exp(s / std::sqrt(double(kHead))) : 0;
      sum += p[c];
    }
    if (sum == 0) continue;
    for (std::int64_t c = 0; c < kSequence; ++c) dot += (p[c] /= sum) * p_grad[c];
    for (std::int64_t c = 0; c < kSequence; ++c) {
      const double s_grad = p[c] * (p_grad[c] - dot) / std::sqrt(double(kHead));
      for (std::int64_t d = 0; d < kHead; ++d) {
        o(r, d) += p[c] * double(a.v(c, d));
        v_grad(c, d) += p[c] * double(a.o_grad(r, d));
        q_grad(r, d) += s_grad * double(a.k(c, d));
        k_grad(c, d) += s_grad * double(a.q(r, d));
      }
    }
  }
}

double worst_difference(const Attention& a, const Matrix<double> wanted[4]) {
  const Matrix<float>* const results[] = {&a.o, &a.q_grad, &a.k_grad, &a.v_grad};
  double worst = 0;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t e = 0; e < results[i]->elements().size(); ++e)
      worst =
          std::fmax(worst, std::abs(double(results[i]->elements()[e]) - wanted[i].elements()[e]));
  return worst;
}

// Returns the largest difference of a result on either machine.
double compare(const char* name, const sparse::Csr<float>& mask, bool prints = false) {
  const double density =
      double(mask.blocks()) / double(mask.block_rows()) / double(mask.block_cols());
  const Problem problem{.size = {1, kSequence, kSequence, kHead},
                        .block = kBlock,
                        .density = density,
                        .data_type = DataType::Float,
                        .grad_a = true,
                        .grad_w = true};
  const auto executor = make_executor();
  Attention on_machine = random_operands(), on_host = on_machine;
  const device::Machine machine = device::machine_preset("gc200");
  runtime::BlockAttention attention(problem, {&mask, 1}, kScale, machine,
                                    device::ExchangeMode::Share, *executor);
  attend_on_machine(attention, on_machine, prints);
  host::HostLayer host_layer(problem, host::read_host_cpu(), *executor);
  host_layer.set_weights(mask);
  attend_on_host(host_layer, mask, *executor, on_host);
  Matrix<double> wanted[4];
  plain_attention(sparse::to_dense(mask), on_machine, wanted);
  const double worst =
      std::fmax(worst_difference(on_machine, wanted), worst_difference(on_host, wanted));
  std::printf("%-8s %4.1f %% of the blocks, largest difference %.1e\n", name, 100 * density, worst);
  return worst;
}

}  // namespace

int main() {
  double worst = compare("causal", sparse::causal_mask(kSequence, kBlock), /*prints=*/true);
  worst = std::fmax(worst, compare("window", sparse::window_mask(kSequence, kBlock, 2, 8)));
  const auto random = sparse::random_mask(kSequence, kSequence, kBlock, 0.5, /*seed=*/1);
  worst =
      std::fmax(worst, compare("random", sparse::keep_triangle(random, sparse::Triangle::Lower)));
  return worst < 1e-4 ? 0 : 1;
}
