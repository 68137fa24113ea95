#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/certificates.h"
#include "store/server.h"
#include "store/store.h"

namespace hmc::store {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{30};
const TlsOptions kRequired{.mode = TlsOptions::Mode::required};

std::unique_ptr<Server> serve(const TlsOptions& tls, const std::string& secret = "") {
  auto server = Server::start("tcp://127.0.0.1:0", {.secret = secret, .tls = tls});
  EXPECT_TRUE(server.ok()) << server.status().toString();
  return *std::move(server);
}

TEST(StoreTls, clientsAndServerEncryptBySecretOrCertificate) {
  hmc::test::Certificates ca;
  for (const bool bySecret : {true, false}) {
    const std::string secret = bySecret ? "hush" : "";
    auto server = serve(bySecret ? kRequired : ca.issue("server"), secret);
    const TlsOptions tls = bySecret ? kRequired : ca.issue("client");
    auto client = openStore(server->address(), {.secret = secret, .tls = tls}, kPatience);
    ASSERT_TRUE(client.ok()) << client.status().toString();
    EXPECT_TRUE((*client)->set("key", "value", kPatience).ok());
    EXPECT_EQ(*(*client)->get("key", kPatience), "value");
  }
}

TEST(StoreTls, whoDoesNotFitHearsSoAtOnce) {
  auto encrypted = serve(kRequired, "hush");
  auto plain = serve({}, "hush");
  const StoreOptions inTls{.secret = "hush", .tls = kRequired};
  EXPECT_THAT(openStore(encrypted->address(), {.secret = "hush"}, kPatience).status().message(),
              HasSubstr("the peer demands TLS"));
  EXPECT_THAT(openStore(plain->address(), inTls, kPatience).status().message(),
              HasSubstr("does not encrypt"));
  const StoreOptions other{.secret = "shush", .tls = kRequired};
  EXPECT_THAT(openStore(encrypted->address(), other, kPatience).status().message(),
              HasSubstr("the same secret"));
}

TEST(StoreTls, anEtcdMustEncryptToo) {
  auto opened = openStore("etcd://127.0.0.1:1", {.secret = "hush", .tls = kRequired}, kPatience);
  EXPECT_EQ(opened.status().code(), Code::permissionDenied);
  EXPECT_THAT(opened.status().message(), HasSubstr("use etcds://"));
}

}  // namespace
}  // namespace hmc::store
