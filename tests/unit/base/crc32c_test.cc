#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace hmc {
namespace {

uint32_t of(const std::string& bytes) {
  return crc32c(0, bytes.data(), bytes.size());
}

// RFC 3720, appendix B.4.
TEST(Crc32c, isThatOfTheStandard) {
  EXPECT_EQ(of("123456789"), 0xe3069283u);
  EXPECT_EQ(of(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(of(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(of(""), 0u);
}

TEST(Crc32c, theInstructionAndTheTablesAgreeOnEveryLengthAndAlignment) {
  std::mt19937_64 random(7);  // NOLINT(cert-msc51-cpp)
  std::string bytes(40000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (size_t size :
       {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{63}, size_t{767}, size_t{768},
        size_t{769}, size_t{5000}, size_t{12287}, size_t{12288}, size_t{12289}, size_t{39990}}) {
    for (size_t from = 0; from < 9; ++from) {
      EXPECT_EQ(crc32c(99, bytes.data() + from, size),
                crc32cBySoftware(99, bytes.data() + from, size))
          << size << " bytes from " << from << " by " << crc32cBy();
    }
  }
}

TEST(Crc32c, goesOnWhereItStopped) {
  const std::string all = "the first part, and then the second";
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    const uint32_t first = crc32c(0, all.data(), cut);
    EXPECT_EQ(crc32c(first, all.data() + cut, all.size() - cut), of(all));
  }
}

}  // namespace
}  // namespace hmc
