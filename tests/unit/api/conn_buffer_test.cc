#include "hmc/conn_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <type_traits>

#include "api/documented_types.h"

namespace hmc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

static_assert(!std::is_copy_constructible<ConnBuffer>::value, "a buffer owns its memory");

class ConnBufferTest : public testing::Test {
 protected:
  std::string all() {
    std::string bytes(64, '?');
    EXPECT_EQ(buffer.readToCpu(&bytes[0], 64), status_t::SUCCESS);
    return bytes;
  }
  ConnBuffer buffer{0, 64, MemoryType::CPU};
};

TEST_F(ConnBufferTest, startsAsZeroesAndSaysWhatItIs) {
  EXPECT_EQ(all(), std::string(64, '\0'));
  EXPECT_NE(buffer.ptr, nullptr);
  EXPECT_NE(buffer.mem_ops, nullptr);
  EXPECT_EQ(buffer.buffer_size, 64u);
  EXPECT_EQ(buffer.mem_type, MemoryType::CPU);
  EXPECT_EQ(buffer.device_id, 0);
  Region region = regionOf(buffer);
  EXPECT_EQ(region.ptr, buffer.ptr);
  EXPECT_EQ(region.size, 64u);
  EXPECT_EQ(region.device, Device{});
}

TEST_F(ConnBufferTest, writesAndReadsAtAnOffset) {
  EXPECT_EQ(buffer.writeFromCpu("hello", 5, 10), status_t::SUCCESS);
  EXPECT_EQ(all().substr(9, 7), std::string("\0hello\0", 7));
  std::string back(3, '?');
  EXPECT_EQ(buffer.readToCpu(&back[0], 3, 12), status_t::SUCCESS);
  EXPECT_EQ(back, "llo");
}

TEST_F(ConnBufferTest, takesHostPointersWhereAGpuPointerIsAllowed) {
  EXPECT_EQ(buffer.writeFromGpu("hello", 5, 1), status_t::SUCCESS);
  std::string back(5, '?');
  EXPECT_EQ(buffer.readToGpu(&back[0], 5, 1), status_t::SUCCESS);
  EXPECT_EQ(back, "hello");
}

TEST_F(ConnBufferTest, refusesRangesThatPassTheEndEvenWhenTheSumWraps) {
  char bytes[128] = {};
  for (auto range : {std::pair<size_t, size_t>{65, 0},
                     {1, 64},
                     {0, 65},
                     {16, ~size_t{0} - 7},
                     {~size_t{0}, 1},
                     {~size_t{0} - 7, 16}}) {
    size_t size = range.first;
    size_t bias = range.second;
    EXPECT_EQ(buffer.writeFromCpu(bytes, size, bias), status_t::ERROR) << size << "@" << bias;
    EXPECT_THAT(lastError(),
                AllOf(HasSubstr(std::to_string(size) + " bytes"),
                      HasSubstr("offset " + std::to_string(bias)), HasSubstr("end of 64 bytes")));
    EXPECT_EQ(buffer.readToCpu(bytes, size, bias), status_t::ERROR);
    EXPECT_EQ(buffer.writeFromGpu(bytes, size, bias), status_t::ERROR);
    EXPECT_EQ(buffer.readToGpu(bytes, size, bias), status_t::ERROR);
    EXPECT_EQ(buffer.copyWithin(bias, 0, size), status_t::ERROR);
    EXPECT_EQ(buffer.copyWithin(0, bias, size), status_t::ERROR);
  }
  EXPECT_EQ(all(), std::string(64, '\0'));
}

TEST_F(ConnBufferTest, reachesItsLastByte) {
  EXPECT_EQ(buffer.writeFromCpu("z", 1, 63), status_t::SUCCESS);
  EXPECT_EQ(all()[63], 'z');
  EXPECT_EQ(buffer.writeFromCpu(std::string(64, 'y').data(), 64, 0), status_t::SUCCESS);
  EXPECT_EQ(all(), std::string(64, 'y'));
}

TEST_F(ConnBufferTest, doesNothingForSizeZero) {
  EXPECT_EQ(buffer.writeFromCpu(nullptr, 0, 64), status_t::SUCCESS);
  EXPECT_EQ(buffer.readToCpu(nullptr, 0, 0), status_t::SUCCESS);
  EXPECT_EQ(buffer.writeFromGpu(nullptr, 0, 1), status_t::SUCCESS);
  EXPECT_EQ(buffer.readToGpu(nullptr, 0, 1), status_t::SUCCESS);
  EXPECT_EQ(buffer.copyWithin(64, 64, 0), status_t::SUCCESS);
}

TEST_F(ConnBufferTest, refusesNullPointers) {
  EXPECT_EQ(buffer.writeFromCpu(nullptr, 1), status_t::ERROR);
  EXPECT_THAT(lastError(), HasSubstr("null"));
  EXPECT_EQ(buffer.readToCpu(nullptr, 1), status_t::ERROR);
  EXPECT_EQ(buffer.writeFromGpu(nullptr, 1), status_t::ERROR);
  EXPECT_EQ(buffer.readToGpu(nullptr, 1), status_t::ERROR);
}

TEST_F(ConnBufferTest, copiesWithinItselfAsMemmoveDoes) {
  ASSERT_EQ(buffer.writeFromCpu("0123456789", 10), status_t::SUCCESS);
  EXPECT_EQ(buffer.copyWithin(2, 0, 10), status_t::SUCCESS);
  EXPECT_EQ(all().substr(0, 12), "010123456789");
  EXPECT_EQ(buffer.copyWithin(0, 2, 10), status_t::SUCCESS);
  EXPECT_EQ(all().substr(0, 12), "012345678989");
  EXPECT_EQ(buffer.copyWithin(5, 5, 10), status_t::SUCCESS);
  EXPECT_EQ(all().substr(0, 12), "012345678989");
}

TEST(ConnBuffer, throwsInsteadOfExitingWhenItCannotBeMade) {
  EXPECT_THROW(ConnBuffer(0, 0, MemoryType::CPU), std::runtime_error);
  EXPECT_THROW(ConnBuffer(0, 64, static_cast<MemoryType>(42)), std::runtime_error);
  try {
    ConnBuffer buffer(0, size_t{1} << 60, MemoryType::CPU);
    FAIL() << "it was made";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr(std::to_string(size_t{1} << 60)));
  }
}

}  // namespace
}  // namespace hmc
