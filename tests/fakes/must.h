#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "hmc/result.h"

namespace hmc::test {

// The value, which a test cannot go on without.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.status().toString();
    std::abort();
  }
  return *std::move(result);
}

}  // namespace hmc::test
