#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tessera/base/error.hpp"

namespace tessera::test {

// Calls `read`, which must throw Error of that code, and returns the message.
template <class Read>
std::string message_of(const Read& read, ErrorCode code = ErrorCode::BadInput) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// Returns the message of the Error{InvalidArgument} that the call must throw.
template <class Call>
std::string refusal(const Call& call) {
  return message_of(call, ErrorCode::InvalidArgument);
}

}  // namespace tessera::test
