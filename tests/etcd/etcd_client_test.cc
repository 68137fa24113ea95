#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "etcd/etcd_server.h"
#include "fakes/must.h"
#include "store/store.h"

// One etcd: what it forgets, restarts, certificates and passwords. The contract is tested
// elsewhere.

namespace hmc::store {
namespace {

using hmc::test::EtcdOptions;
using hmc::test::EtcdServer;
using hmc::test::must;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLong{60};
constexpr milliseconds kTtl{2000};

std::string text(const Change& change) {
  if (change.kind == Change::Kind::current) return ".";
  if (change.kind == Change::Kind::removed) return "-" + change.entry.key;
  return change.entry.key + "=" + change.entry.value.substr(0, 8);
}

// All changes up to that one.
std::vector<std::string> changesUntil(Watch& watch, const std::string& last) {
  std::vector<std::string> all;
  for (;;) {
    for (const Change& change : must(watch.next(kLong))) {
      all.push_back(text(change));
      if (all.back() == last) return all;
    }
  }
}

// The numbers that follow `"name":"` in a JSON text.
std::vector<std::string> numbersIn(const std::string& json, const std::string& name) {
  std::vector<std::string> numbers;
  const std::string before = "\"" + name + "\":\"";
  for (size_t at = json.find(before); at != std::string::npos; at = json.find(before, at + 1)) {
    const size_t begin = at + before.size();
    numbers.push_back(json.substr(begin, json.find('"', begin) - begin));
  }
  return numbers;
}

// Soon: its keys are back a little before it is.
void expectHeld(const KeyLease& lease) {
  const Deadline deadline = kLong;
  while (!lease.status().ok() && !deadline.passed()) poll(nullptr, 0, 5);
  EXPECT_TRUE(lease.status().ok()) << lease.status().toString();
}

void revokeAllLeases(const EtcdServer& server) {
  const auto ids = numbersIn(server.post("/v3/lease/leases", "{}"), "ID");
  ASSERT_FALSE(ids.empty());
  for (const std::string& id : ids) server.post("/v3/lease/revoke", R"({"ID":")" + id + "\"}");
}

class Etcd : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdServer::isInstalled()) GTEST_SKIP() << EtcdServer::kMissing;
  }
  void start(const EtcdOptions& options = {}) { server = std::make_unique<EtcdServer>(options); }
  std::shared_ptr<Store> open(const StoreOptions& options = {}) const {
    return must(openStore(server->url(), options, kLong));
  }
  // Where the address is refused, and with which words.
  static void expectRefused(const std::string& url, Code code, const std::string& words,
                            const StoreOptions& options = {}) {
    const Deadline deadline = code == Code::deadlineExceeded ? Deadline(milliseconds(3000)) : kLong;
    const Status status = openStore(url, options, deadline).status();
    EXPECT_EQ(status.code(), code) << status.toString();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  }

  std::unique_ptr<EtcdServer> server;
};

TEST_F(Etcd, ALeaseThatWasLostIsMadeAgainWithItsKeys) {
  start();
  auto store = open();
  auto other = open();
  auto watch = must(other->watch(""));
  auto lease = must(store->lease(kTtl, kLong));
  ASSERT_TRUE(store->set("mine", "1", kLong, lease).ok());
  ASSERT_TRUE(store->set("free", "2", kLong).ok());
  changesUntil(*watch, "free=2");
  revokeAllLeases(*server);
  EXPECT_THAT(changesUntil(*watch, "mine=1"), testing::ElementsAre("-mine", "mine=1"));
  expectHeld(*lease);
  // By a call, too, before the lease is kept alive next.
  revokeAllLeases(*server);
  ASSERT_TRUE(store->set("mine", "3", kLong, lease).ok());
  EXPECT_EQ(must(other->get("mine", kLong)), "3");
  ASSERT_TRUE(lease->revoke(kLong).ok());
  EXPECT_EQ(other->get("mine", kLong).status().code(), Code::notFound);
}

TEST_F(Etcd, AKeyThatSomebodyElseHasSetIsNotTakenBack) {
  start();
  auto store = open();
  auto other = open();
  auto lease = must(store->lease(kTtl, kLong));
  ASSERT_TRUE(store->set("mine", "1", kLong, lease).ok());
  ASSERT_TRUE(store->set("mine too", "1", kLong, lease).ok());
  ASSERT_TRUE(other->set("mine", "theirs", kLong).ok());
  auto watch = must(other->watch("mine too"));
  changesUntil(*watch, ".");
  revokeAllLeases(*server);
  changesUntil(*watch, "mine too=1");
  EXPECT_EQ(must(other->get("mine", kLong)), "theirs");
  // Keys are restored in order, so that this one is through.
  EXPECT_EQ(lease->status().code(), Code::alreadyExists) << lease->status().toString();
}

TEST_F(Etcd, KeysOfAClientThatIsGoneGoWithItsLease) {
  start();
  auto other = open();
  auto watch = must(other->watch(""));
  {
    auto store = open();
    auto lease = must(store->lease(seconds(600), kLong));
    ASSERT_TRUE(store->set("mine", "1", kLong, lease).ok());
  }
  EXPECT_THAT(changesUntil(*watch, "-mine"), testing::Contains("mine=1"));
}

TEST_F(Etcd, ARestartIsNotNoticed) {
  start();
  auto store = open();
  auto other = open();
  auto lease = must(store->lease(seconds(60), kLong));
  ASSERT_TRUE(store->set("mine", "1", kLong, lease).ok());
  auto watch = must(other->watch(""));
  changesUntil(*watch, ".");
  server->kill(0);
  EXPECT_EQ(store->get("mine", milliseconds(200)).status().code(), Code::deadlineExceeded);
  EXPECT_EQ(lease->status().code(), Code::disconnected);
  server->start(0);
  ASSERT_TRUE(store->set("after", "2", kLong).ok());
  EXPECT_THAT(changesUntil(*watch, "after=2"), testing::ElementsAre("after=2"));
  EXPECT_EQ(must(other->get("mine", kLong)), "1");
  expectHeld(*lease);
}

TEST_F(Etcd, AnEtcdWithoutTheOldOnesMemoryIsToldWhatLeasesHold) {
  start();
  auto store = open();
  auto other = open({.grace = seconds(3)});
  auto lease = must(store->lease(seconds(60), kLong));
  auto watch = must(other->watch(""));
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(store->set(key, "1", kLong).ok());
  ASSERT_TRUE(store->set("mine", "1", kLong, lease).ok());
  changesUntil(*watch, "mine=1");
  // The one that holds the lease notices a break by its own watch.
  auto own = must(store->watch("mine"));
  changesUntil(*own, ".");
  server->kill(0);
  server->removeData(0);
  server->start(0);
  EXPECT_EQ(must(other->await("mine", kLong)), "1");
  EXPECT_THAT(changesUntil(*watch, "-c"), testing::ElementsAre("-a", "-b", "-c"));
  expectHeld(*lease);
}

TEST_F(Etcd, AWatchThatReadsTooLateGoesOnWithTheDifferences) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "35 MiB of JSON take a sanitizer too long";
#endif
  start();
  auto store = open();
  auto watch = must(store->watch(""));
  changesUntil(*watch, ".");
  ASSERT_TRUE(store->set("gone", "1", kLong).ok());
  // More than is kept for somebody who does not read.
  const std::string large(size_t{7} << 20, 'v');
  for (const char* key : {"a", "b", "c", "d", "e"}) ASSERT_TRUE(store->set(key, large, kLong).ok());
  ASSERT_TRUE(store->remove("gone", kLong).ok());
  ASSERT_TRUE(store->set("last", "1", kLong).ok());
  const auto revision = numbersIn(server->post("/v3/kv/range", R"({"key":"aG1j"})"), "revision");
  server->post("/v3/kv/compaction", R"({"revision":")" + revision.at(0) + "\"}");
  std::set<std::string> told;
  while (told.count("-gone") + told.count("last=1") < 2) {
    for (const Change& change : must(watch->next(kLong))) {
      EXPECT_TRUE(told.insert(text(change)).second) << text(change) << " twice";
    }
  }
  EXPECT_THAT(told, testing::IsSupersetOf({"a=vvvvvvvv", "e=vvvvvvvv"}));
}

TEST_F(Etcd, AValueThatEtcdFindsTooLargeIsASentence) {
  start({.largestRequest = 100000});
  auto store = open();
  const Status status = store->set("key", std::string(200000, 'v'), kLong);
  EXPECT_EQ(status.code(), Code::invalidArgument) << status.toString();
  EXPECT_NE(status.message().find("--max-request-bytes"), std::string::npos) << status.message();
}

TEST_F(Etcd, CertificatesAreChecked) {
  const test::TemporaryFolder folder;
  const std::string good = test::makeCertificate(folder.path(), "good");
  const std::string bad = test::makeCertificate(folder.path(), "bad");
  if (good.empty()) GTEST_SKIP() << "there is no openssl command here that makes certificates";
  start({.certificate = good});
  const std::string ca = "/?ca=" + good;
  auto store = must(openStore(server->url(ca), {}, kLong));
  auto watch = must(store->watch(""));
  changesUntil(*watch, ".");
  ASSERT_TRUE(store->set("key", "value", kLong).ok());
  EXPECT_THAT(changesUntil(*watch, "key=value"), testing::ElementsAre("key=value"));
  expectRefused(server->url(), Code::permissionDenied, "certificate");
  expectRefused(server->url("/?ca=" + bad), Code::permissionDenied, "certificate");
  expectRefused(server->url("/?ca=/nowhere.pem"), Code::permissionDenied, "nowhere.pem");
  // Without TLS there, or here.
  const std::string plain = "etcd" + server->url().substr(5);
  expectRefused(plain, Code::deadlineExceeded, "for TLS write etcds://");
  EtcdServer unencrypted;
  expectRefused("etcds" + unencrypted.url().substr(4), Code::deadlineExceeded, "https://");
}

TEST_F(Etcd, ClientsHaveCertificatesWhereEtcdAsksForThem) {
  const test::TemporaryFolder folder;
  const std::string good = test::makeCertificate(folder.path(), "good");
  if (good.empty()) GTEST_SKIP() << "there is no openssl command here that makes certificates";
  start({.certificate = good, .askForCertificates = true});
  const std::string ca = "/?ca=" + good;
  auto store =
      must(openStore(server->url(ca + "&cert=" + good + "&key=" + good + ".key"), {}, kLong));
  EXPECT_TRUE(store->set("key", "value", kLong).ok());
  expectRefused(server->url(ca), Code::deadlineExceeded, "certificate");
}

TEST_F(Etcd, PasswordsAreChecked) {
  start();
  server->post("/v3/auth/user/add", R"({"name":"root","password":"a secret"})");
  server->post("/v3/auth/user/grant", R"({"user":"root","role":"root"})");
  server->post("/v3/auth/user/add", R"({"name":"nobody","password":"another"})");
  expectRefused(server->url("/?user=root"), Code::invalidArgument, "leave the user out",
                {.secret = "a secret"});
  server->post("/v3/auth/enable", "{}");

  expectRefused(server->url(), Code::permissionDenied, "user");
  expectRefused(server->url("/?user=root"), Code::permissionDenied, "password",
                {.secret = "wrong"});
  expectRefused(server->url("/?user=nobody"), Code::permissionDenied, "permission",
                {.secret = "another"});
  setenv("HMC_ETCD_PASSWORD", "a secret", 1);
  auto store = must(openStore(server->url("/?user=root"), {.secret = "the pool's"}, kLong));
  unsetenv("HMC_ETCD_PASSWORD");
  auto watch = must(store->watch(""));
  auto lease = must(store->lease(kTtl, kLong));
  ASSERT_TRUE(store->set("mine", "1", kLong, lease).ok());
  changesUntil(*watch, "mine=1");
  // It forgets our token.
  server->kill(0);
  server->start(0);
  ASSERT_TRUE(store->set("after", "2", kLong).ok());
  changesUntil(*watch, "after=2");
  EXPECT_TRUE(lease->revoke(kLong).ok());
  changesUntil(*watch, "-mine");
}

}  // namespace
}  // namespace hmc::store
