#include <gtest/gtest.h>

#include <cstring>

#include "contract/transport_target.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--target") == 0) {
    return hmc::contract::runTarget(argc, argv);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
