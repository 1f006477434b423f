#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tessera/base/matrix.hpp"

// Reads the fenced examples of docs/bucket-format.md as data. A missing example fails the test.
namespace tessera::test {

using Lines = std::vector<std::string>;
using Words = std::vector<std::uint16_t>;

// The fenced examples of the page by "<kind> <name>", the text that follows the fence.
inline const std::map<std::string, Lines>& examples() {
  static const std::map<std::string, Lines> all = [] {
    std::map<std::string, Lines> found;
    std::ifstream page(TESSERA_SOURCE_DIR "/docs/bucket-format.md");
    Lines* open = nullptr;
    for (std::string line; std::getline(page, line);) {
      if (line.rfind("```", 0) == 0)
        open = open != nullptr ? nullptr : &found[line.substr(3)];
      else if (open != nullptr)
        open->push_back(line);
    }
    return found;
  }();
  return all;
}

inline const Lines& example(const std::string& name) {
  static const Lines none;
  const auto found = examples().find(name);
  if (found != examples().end()) return found->second;
  ADD_FAILURE() << "the page has no example \"" << name << "\"";
  return none;
}

template <class T>
std::vector<T> numbers(const std::string& text) {
  std::vector<T> result;
  std::istringstream in(text);
  for (double number; in >> number;) result.push_back(static_cast<T>(number));
  return result;
}

// One line of a words example: word number | words | part and remark.
struct Part {
  std::size_t offset = 0;
  Words words;
  std::string name;
};

inline std::vector<Part> parts_of(const std::string& name) {
  std::vector<Part> parts;
  for (const std::string& line : example("words " + name)) {
    std::istringstream in(line);
    Part part;
    std::string words;
    in >> part.offset;
    in.ignore(line.size(), '|');
    std::getline(in, words, '|');
    part.words = numbers<std::uint16_t>(words);
    in >> part.name;
    parts.push_back(part);
  }
  return parts;
}

inline Words words_of(const std::string& name) {
  Words words;
  for (const Part& part : parts_of(name))
    words.insert(words.end(), part.words.begin(), part.words.end());
  return words;
}

inline Matrix<float> matrix_of(const std::string& name) {
  const Lines& lines = example("matrix " + name);
  Matrix<float> matrix;
  for (std::size_t x = 0; x < lines.size(); ++x) {
    std::istringstream in(lines[x]);
    std::vector<float> row;
    for (std::string cell; in >> cell;) row.push_back(cell == "." ? 0 : std::stof(cell));
    if (x == 0) matrix = {std::int64_t(lines.size()), std::int64_t(row.size())};
    EXPECT_EQ(std::int64_t(row.size()), matrix.cols());
    for (std::size_t y = 0; y < row.size(); ++y) matrix(std::int64_t(x), std::int64_t(y)) = row[y];
  }
  return matrix;
}

}  // namespace tessera::test
