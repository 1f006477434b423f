#include "tessera/tests/docs/formula.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace tessera::test {
namespace {

// Parses by recursive descent: a sum of products of factors.
class Reader {
 public:
  Reader(std::string_view text, const Names& names) : text_(text), names_(names) {}

  std::int64_t all() {
    const std::int64_t value = sum();
    if (peek() != 0) fail("the end");
    return value;
  }

 private:
  std::int64_t sum() {
    std::int64_t value = product();
    while (peek() == '+' || peek() == '-') value += take() == '+' ? product() : -product();
    return value;
  }

  std::int64_t product() {
    std::int64_t value = factor();
    for (;;) {
      const char next = peek();
      if (next == '[') {
        value *= factor();
      } else if (next == '*' || next == '/' || next == '%') {
        take();
        const std::int64_t by = factor();
        if (next != '*' && by == 0) fail("no division by 0");
        value = next == '*' ? value * by : next == '/' ? value / by : value % by;
      } else {
        return value;
      }
    }
  }

  std::int64_t factor() {
    const char next = peek();
    if (next == '(' || next == '[') {
      take();
      const std::int64_t value = next == '(' ? sum() : condition();
      expect(next == '(' ? ')' : ']');
      return value;
    }
    const std::string word = read_word();
    if (word.empty()) fail("a number or a name");
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) return std::stoll(word);
    if (word == "ceil" || word == "max") return call(word);
    const auto found = names_.find(word);
    if (found == names_.end()) fail("a known name, not " + word);
    return found->second;
  }

  std::int64_t call(const std::string& name) {
    expect('(');
    const std::int64_t a = sum();
    expect(',');
    const std::int64_t b = sum();
    expect(')');
    return name == "max" ? std::max(a, b) : (a + b - 1) / b;
  }

  bool condition() {
    const std::int64_t a = sum();
    const char relation = take();
    const bool or_equal = peek() == '=';
    if (or_equal) take();
    const std::int64_t b = sum();
    if (relation == '=') return a == b;
    if (relation == '<') return a < b || (or_equal && a == b);
    if (relation == '>') return a > b || (or_equal && a == b);
    fail("=, < or >");
  }

  std::string read_word() {
    peek();
    std::string word;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      word += text_[at_++];
    return word;
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  char take() {
    const char c = peek();
    if (c != 0) ++at_;
    return c;
  }
  void expect(char c) {
    if (take() != c) fail(std::string(1, c));
  }
  [[noreturn]] void fail(const std::string& expected) {
    throw std::runtime_error("\"" + std::string(text_) + "\" at " + std::to_string(at_) +
                             ": expected " + expected);
  }

  std::string_view text_;
  const Names& names_;
  std::size_t at_ = 0;
};

}  // namespace

std::int64_t evaluate(std::string_view formula, const Names& names) {
  return Reader(formula, names).all();
}

}  // namespace tessera::test
