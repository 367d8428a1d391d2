#include "tools/llama_names.h"

namespace coldstream {
namespace {

struct Name {
  const char* known;
  const char* ours;
};
constexpr Name kNames[] = {{"-np", "--parallel"},
                           {"-ngl", "--gpu-layers"},
                           {"-ctk", "--cache-type-k"},
                           {"-ctv", "--cache-type-v"}};

}  // namespace

std::vector<std::string> WithLongNames(std::vector<std::string> arguments) {
  for (std::string& argument : arguments) {
    if (argument == "--") break;
    for (const Name& name : kNames)
      if (argument == name.known) argument = name.ours;
  }
  return arguments;
}

}  // namespace coldstream
