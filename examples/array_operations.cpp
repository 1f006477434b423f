// Ratings of films by people over months as a sparse tensor: means, the best film, an adjustment of
// one month in place, and a contraction with features of the films.

#include <cstdio>
#include <string>
#include <vector>

#include "tessera/arrays/ops/fold.hpp"
#include "tessera/arrays/ops/rearrange.hpp"
#include "tessera/arrays/ops/transform.hpp"
#include "tessera/arrays/tensor/contract.hpp"

using namespace tessera;

namespace {

void print(const char* name, const std::vector<float>& values) {
  std::printf("%-24s", name);
  for (const float v : values) std::printf(" %6.2f", double(v));
  std::printf("\n");
}

}  // namespace

int main() {
  const auto executor = make_executor();
  // Three people, four films, two months; each entry is (person, film, month).
  arrays::CooTensor<float> ratings(
      {3, 4, 2}, {0, 0, 0, 0, 2, 1, 1, 1, 0, 1, 2, 1, 2, 2, 0, 2, 3, 1}, {5, 3, 2, 4, 4, 1});

  const auto by_film = arrays::fold(arrays::Fold::Sum, ratings, {0, 2}, *executor);
  print("sum by film", arrays::to_dense_array(by_film, *executor).values);
  const auto best = arrays::pick_all(arrays::Pick::Max, by_film, *executor);
  std::printf("%-24s %6d\n", "film of the largest sum", int(best.value_or(-1)));

  // A view shares the memory of its tensor: the second month counts half.
  auto second_month = ratings.select({arrays::All{}, arrays::All{}, arrays::Point{1}});
  arrays::change(arrays::Operation<float>(arrays::Binary::Multiply, 0.5f), second_month, *executor);
  const auto by_month = arrays::fold(arrays::Fold::Sum, ratings, {0, 1}, *executor);
  print("sum by month", arrays::to_dense_array(by_month, *executor).values);

  // Two features of each film: the result is [person][month][feature].
  const arrays::DenseArray<float> features{{4, 2}, {1, 0, 0, 1, 1, 1, 0, 2}};
  const auto profile = arrays::contract(ratings, {1}, features, {0}, *executor);
  const auto people = arrays::to_tensor(profile, *executor);
  const auto per_person = arrays::fold(arrays::Fold::Sum, people, {1}, *executor);
  print("features by person", arrays::to_dense_array(per_person, *executor).values);
  return 0;
}
