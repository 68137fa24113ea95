#include "pool/local_address.h"

#include <gtest/gtest.h>

namespace hmc::pool {
namespace {

TEST(LocalAddress, IsOneFromWhichTheStoreIsReached) {
  for (const char* store : {"tcp://127.0.0.1:7000", "etcd://127.0.0.1",
                            "etcd://127.0.0.1:2379,10.0.0.1:2379", "etcd://127.0.0.1/team:a",
                            "etcds://127.0.0.1:2379/?ca=/a:b,c.pem", "etcd://127.0.0.1?user=me"}) {
    const auto address = listenAddressFor(store);
    ASSERT_TRUE(address.ok()) << store << ": " << address.status().toString();
    EXPECT_EQ(*address, "tcp://127.0.0.1:0") << store;
  }
}

TEST(LocalAddress, NamesAHostThatNobodyKnows) {
  const Status status = listenAddressFor("etcd://[no such host]:1/x").status();
  EXPECT_EQ(status.code(), Code::notFound);
  EXPECT_NE(status.message().find("\"no such host\""), std::string::npos) << status.message();
}

}  // namespace
}  // namespace hmc::pool
