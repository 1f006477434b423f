#include "tessera/tools/sparse_fc_layer/arguments.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <system_error>

#include "tessera/tools/internal/layer_options.hpp"
#include "tessera/tools/sparse_fc_layer/trust.hpp"

namespace tessera::tools {
namespace {

// The library itself turns -1 into 2^64 - 1, and what is larger too.
CLI::Validator is_seed() {
  return {[](std::string& text) {
            std::uint64_t seed = 0;
            const char* end = text.data() + text.size();
            const auto read = std::from_chars(text.data(), end, seed);
            return read.ec == std::errc() && read.ptr == end
                       ? std::string()
                       : "Value " + text + " is no whole number in 0 .. 2^64 - 1";
          },
          "0 .. 2^64 - 1"};
}

void add_run_options(CLI::App& app, Arguments& a) {
  app.add_option("--seed", a.seed, "of the pattern, of values a file does not hold, of operands")
      ->check(is_seed())
      ->capture_default_str();
  app.add_flag("--isolate", a.isolate,
               "give every tile its own memory and copy between them: slower, same results");
  app.add_flag("--self-check", a.self_check,
               "compare results with checksums of rows and columns as well");
  app.add_option_function<std::string>(
         "--inject", [&a](const std::string& text) { a.fault = parse_fault(text); },
         "flip a bit of a tile's memory before a step of a pass, to see what becomes of it: "
         "tile=5,step=3,bit=17, and pass=bwd or wu where it is not fwd; implies --isolate")
      ->type_name("FAULT");
  app.add_option("--threads", a.threads, "threads of this computer; 0: all")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

}  // namespace

Parsed parse_arguments(int argc, const char* const* argv) {
  Parsed parsed;
  Arguments& a = parsed.arguments;
  CLI::App app(
      "Plans, encodes and runs a sparse fully connected layer on a modelled tile machine, forward "
      "and backward, and checks every result against double precision.");
  app.footer(std::string(internal::kExitCodes) +
             "\nExample: sparse_fc_layer --input-size 1024 --output-size 1024 --density 0.1 "
             "--batch-size 64");
  internal::add_weights_options(app, a);
  internal::add_layer_options(app, a);
  internal::add_machine_options(app, a);
  internal::add_planner_options(app, a);
  add_run_options(app, a);
  app.callback([&] { internal::require_weights(app, a); });
  parsed.exit = internal::parse_command_line(app, argc, argv);
  return parsed;
}

}  // namespace tessera::tools
