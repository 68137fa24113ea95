#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "hmc/measurements.h"

namespace hmc {

// Nodes see no measurements but those of the test.
class WithMeasurements : public testing::Test {
 protected:
  WithMeasurements() { unsetenv("HMC_MEASUREMENTS"); }
  ~WithMeasurements() override {
    std::remove(file_.c_str());
    unsetenv("HMC_MEASUREMENTS");
  }
  // For Nodes that are made from now on.
  void measured(const std::vector<Measurement>& times) {
    ASSERT_TRUE(saveMeasurements(file_, times).ok());
    setenv("HMC_MEASUREMENTS", file_.c_str(), 1);
  }

  const std::string file_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
};

}  // namespace hmc
