// Trains a network of which one weight in ten exists, and moves the weights to where the gradient
// is largest (RigL), on Fashion-MNIST. Arguments: epochs, folder of the data set.

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tessera/base/executor.hpp"
#include "tessera/train/data/idx.hpp"
#include "tessera/train/network.hpp"
#include "tessera/train/trainer.hpp"

namespace {

using namespace tessera;

void train_and_print(const train::DataSet& data, std::int64_t epochs) {
  const auto executor = make_executor();
  train::Network network({.sizes = {784, 1024, 10}, .density = 0.1}, train::host_layers(*executor),
                         *executor);
  const std::int64_t steps = epochs * (data.training.count() / network.spec().batch);
  train::Trainer trainer(network, data, train::usual_options(train::RigL{}, steps));
  for (std::int64_t i = 0; i < network.layers(); ++i)
    std::printf("layer %d: %d weights of %d\n", int(i + 1), int(network.weights(i).blocks()),
                int(network.weights(i).rows * network.weights(i).cols));
  for (std::int64_t i = 0; i < epochs; ++i) {
    trainer.epoch();
    const train::EpochFigures& now = trainer.report().epochs.back();
    std::printf("epoch %2d: loss %.4f, test accuracy %.2f %%\n", int(now.epoch), now.loss,
                100 * now.test_accuracy);
  }
  const train::RewireFigures& last = trainer.report().rewires.back();
  std::printf("%d rewires; %.1f %% of all weights were active at some time\n",
              int(trainer.report().rewires.size()) - 1, 100 * last.ever_active);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::int64_t epochs = argc > 1 ? std::atoi(argv[1]) : 3;
    if (epochs < 1) throw Error(ErrorCode::InvalidArgument, "the number of epochs must be above 0");
    train_and_print(argc > 2 ? train::read_fashion_mnist(argv[2]) : train::read_fashion_mnist(),
                    epochs);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fashion_mnist: %s\n", error.what());
    return 1;
  }
}
