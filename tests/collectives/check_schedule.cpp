#include "tessera/tests/collectives/check_schedule.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

namespace tessera::collectives {
namespace {

// The contributions that a member has of one piece: one truth value for each member.
using Contributions = std::vector<bool>;

class Follower {
 public:
  explicit Follower(const Schedule& schedule)
      : schedule_(schedule), members_(schedule.members), pieces_(schedule.pieces()) {
    held_.assign(std::size_t(members_) * pieces_, Contributions(members_));
    for (std::int32_t m = 0; m < members_; ++m)
      for (std::int32_t p = 0; p < pieces_; ++p) held(m, p)[m] = has_at_start(m, p);
  }

  std::string fault() {
    for (std::size_t step = 0; step < schedule_.steps.size(); ++step) {
      const std::string found = run(schedule_.steps[step]);
      if (!found.empty()) return fmt::format("step {}: {}", step, found);
    }
    for (std::int32_t m = 0; m < members_; ++m)
      for (std::int32_t p = 0; p < pieces_; ++p)
        if (is_result(m, p) && held(m, p) != expected(p))
          return fmt::format("at the end, member {} lacks a contribution to piece {}", m, p);
    return {};
  }

 private:
  Contributions& held(std::int32_t member, std::int32_t piece) {
    return held_[std::size_t(member) * pieces_ + piece];
  }
  std::int32_t owner(std::int32_t piece) const { return piece / schedule_.pieces_per_member; }

  bool sums() const {
    return schedule_.operation == Operation::ReduceScatter ||
           schedule_.operation == Operation::AllReduce;
  }
  bool has_at_start(std::int32_t member, std::int32_t piece) const {
    return sums() || owner(piece) == member;
  }
  bool is_result(std::int32_t member, std::int32_t piece) const {
    return schedule_.operation != Operation::ReduceScatter || owner(piece) == member;
  }
  Contributions expected(std::int32_t piece) const {
    if (sums()) return Contributions(members_, true);
    Contributions one(members_);
    one[owner(piece)] = true;
    return one;
  }

  bool is_legal(const Transfer& t) const {
    const auto member = [&](std::int32_t m) { return m >= 0 && m < members_; };
    return member(t.from) && member(t.to) && t.from != t.to && t.first >= 0 && t.pieces >= 1 &&
           t.first <= pieces_ - t.pieces;
  }

  // All transfers read the state before the step.
  std::string run(const std::vector<Transfer>& step) {
    const std::vector<Contributions> before = held_;
    for (const Transfer& t : step) {
      if (!is_legal(t)) return fmt::format("the transfer from {} to {} is illegal", t.from, t.to);
      for (std::int32_t p = t.first; p < t.first + t.pieces; ++p) {
        const Contributions& sent = before[std::size_t(t.from) * pieces_ + p];
        if (sent == Contributions(members_))
          return fmt::format("member {} sends piece {}, which it does not have", t.from, p);
        if (!receive(held(t.to, p), sent, t.add))
          return fmt::format("member {} adds a contribution to piece {} twice", t.to, p);
      }
    }
    return {};
  }

  // Returns false if a contribution would be added twice.
  bool receive(Contributions& own, const Contributions& sent, bool add) const {
    if (!add) own = sent;
    for (std::int32_t m = 0; add && m < members_; ++m) {
      if (own[m] && sent[m]) return false;
      own[m] = own[m] || sent[m];
    }
    return true;
  }

  const Schedule& schedule_;
  std::int32_t members_, pieces_;
  std::vector<Contributions> held_;
};

}  // namespace

std::string check_schedule(const Schedule& schedule) { return Follower(schedule).fault(); }

}  // namespace tessera::collectives
