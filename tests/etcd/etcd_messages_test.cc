#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "fakes/must.h"
#include "store/etcd/address.h"
#include "store/etcd/base64.h"
#include "store/etcd/messages.h"
#include "store/server.h"
#include "store/store.h"

namespace hmc::store::etcd {
namespace {

Address parsed(const std::string& url) {
  auto address = Address::parse(url);
  EXPECT_TRUE(address.ok()) << address.status().toString();
  return address.ok() ? *address : Address();
}

TEST(EtcdAddress, HasMembersAndAPrefix) {
  const Address one = parsed("etcd://10.0.0.1");
  EXPECT_EQ(one.members, std::vector<std::string>{"http://10.0.0.1:2379"});
  EXPECT_EQ(one.prefix, "hmc/");
  EXPECT_FALSE(one.tls);
  const Address three = parsed("etcd://a:1,[::1]:2,[::1]/team/a/");
  EXPECT_EQ(three.members,
            (std::vector<std::string>{"http://a:1", "http://[::1]:2", "http://[::1]:2379"}));
  EXPECT_EQ(three.prefix, "team/a/");
}

TEST(EtcdAddress, HasSettings) {
  const Address address = parsed("etcds://a:1/?ca=/c a.pem&cert=/me.pem&key=/me.key&user=pool");
  EXPECT_TRUE(address.tls);
  EXPECT_EQ(address.members, std::vector<std::string>{"https://a:1"});
  EXPECT_EQ(address.ca, "/c a.pem");
  EXPECT_EQ(address.cert, "/me.pem");
  EXPECT_EQ(address.key, "/me.key");
  EXPECT_EQ(address.user, "pool");
  EXPECT_EQ(address.prefix, "hmc/");
}

TEST(EtcdAddress, ThatDoesNotFitIsRefusedByName) {
  const std::pair<const char*, const char*> bad[] = {
      {"etcd://", "\"\""},
      {"etcd://a:1,,b:1", "\"\""},
      {"etcd://user:password@a:1", "user:password@a:1"},
      {"etcd://a b:1", "a b:1"},
      {"etcd://a:1?colour=red", "colour=red"},
      {"etcd://a:1?user=", "user="},
      {"etcd://a:1?ca=/ca.pem", "etcds://"},
      {"etcds://a:1?cert=/me.pem", "cert and key"},
  };
  for (const auto& [url, part] : bad) {
    const Status status = Address::parse(url).status();
    EXPECT_EQ(status.code(), Code::invalidArgument) << url;
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  EXPECT_FALSE(Address::parse("etcd://a/" + std::string(300, 'p')).ok());
}

TEST(Base64, IsReversible) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(fromBase64(base64(bytes)), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("f"), "Zg==");
}

TEST(Base64, OfOthersIsRefused) {
  for (const char* text : {"A", "AB", "ABC", "AB C", "====", "AB=C", "AB\nC", "-_AA"}) {
    EXPECT_EQ(fromBase64(text), std::nullopt) << text;
  }
}

TEST(EtcdRange, EndsBehindAllThatBeginWithIt) {
  EXPECT_EQ(Range::beginningWith("hmc/").end, "hmc0");
  EXPECT_EQ(Range::beginningWith("a\xff\xff").end, "b");
  EXPECT_EQ(Range::beginningWith("\xff").end, std::string(1, '\0'));
}

TEST(EtcdAnswers, AreRead) {
  const auto range = readRange(
      R"({"header":{"revision":"7","raft_term":"2"},)"
      R"("kvs":[{"key":"Zm9v","mod_revision":"5","value":"YmFy","lease":"-3"},{"key":"Zg=="}]})");
  ASSERT_TRUE(range.ok()) << range.status().toString();
  EXPECT_EQ(range->at.revision, 7);
  EXPECT_EQ(range->at.term, 2u);
  ASSERT_EQ(range->kvs.size(), 2u);
  EXPECT_EQ(range->kvs[0].value, "bar");
  EXPECT_EQ(range->kvs[0].lease, static_cast<uint64_t>(-3));
  EXPECT_EQ(range->kvs[1].value, "");

  const auto watch = readWatch(
      R"({"result":{"header":{"revision":"9"},"events":[{"kv":{"key":"Zg==","mod_revision":"9"}},)"
      R"({"type":"DELETE","kv":{"key":"Zm8=","mod_revision":"9"}}]}})");
  ASSERT_TRUE(watch.ok()) << watch.status().toString();
  ASSERT_EQ(watch->events.size(), 2u);
  EXPECT_FALSE(watch->events[0].removed);
  EXPECT_TRUE(watch->events[1].removed);

  EXPECT_EQ(*readKeepAlive(R"({"result":{"header":{},"ID":"1","TTL":"5"}})"), 5);
  EXPECT_EQ(*readKeepAlive(R"({"result":{"header":{},"ID":"1"}})"), 0);
}

TEST(EtcdAnswers, ThatAreNoneAreRefused) {
  const std::string deep = std::string(5000, '[');
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("{"), deep,
        std::string("{}"), std::string("<html>no</html>"), std::string("{\"header\":3}"),
        std::string("\xff\xfe")}) {
    EXPECT_EQ(readRange(text).status().code(), Code::failed) << text.substr(0, 20);
    EXPECT_EQ(readTxn(text).status().code(), Code::failed) << text.substr(0, 20);
    EXPECT_EQ(readWatch(text).status().code(), Code::failed) << text.substr(0, 20);
    EXPECT_EQ(readKeepAlive(text).status().code(), Code::failed) << text.substr(0, 20);
    EXPECT_EQ(readToken(text).status().code(), Code::failed) << text.substr(0, 20);
    EXPECT_FALSE(readRefusal(500, text).message.empty());
  }
  for (const char* text : {
           R"({"header":{},"kvs":{}})",
           R"({"header":{},"kvs":[7]})",
           R"({"header":{},"kvs":[{"key":7}]})",
           R"({"header":{},"kvs":[{"key":"%"}]})",
           R"({"header":{"revision":"1x"}})",
           R"({"header":{"revision":"99999999999999999999"}})",
           R"({"header":{"revision":{}}})",
       }) {
    EXPECT_EQ(readRange(text).status().code(), Code::failed) << text;
  }
  EXPECT_FALSE(readTxn(R"({"header":{}})").ok());
  EXPECT_FALSE(readTxn(R"({"header":{},"responses":[{"response_put":{}}]})").ok());
  EXPECT_FALSE(readTxn(R"({"header":{},"succeeded":"yes"})").ok());
  EXPECT_FALSE(readWatch(R"({"result":{"header":{},"events":[{}]}})").ok());
  // It would become two lines of a header.
  EXPECT_FALSE(readToken(R"({"token":"a\r\nb"})").ok());
}

TEST(EtcdRefusals, SayWhatCanBeDone) {
  const auto codeOf = [](long http, const char* text) {
    return readRefusal(http, text).status().code();
  };
  EXPECT_EQ(codeOf(503, R"({"error":"etcdserver: no leader","code":14})"), Code::disconnected);
  EXPECT_EQ(codeOf(404, R"({"error":"etcdserver: requested lease not found","code":5})"),
            Code::notFound);
  EXPECT_EQ(codeOf(400, R"({"error":"etcdserver: request is too large","code":3})"),
            Code::invalidArgument);
  EXPECT_EQ(codeOf(401, R"({"message":"etcdserver: invalid auth token","code":16})"),
            Code::permissionDenied);
  EXPECT_EQ(codeOf(429, R"({"message":"etcdserver: mvcc: database space exceeded","code":8})"),
            Code::exhausted);
  EXPECT_EQ(codeOf(503, "Bad Gateway"), Code::disconnected);
  EXPECT_EQ(codeOf(404, "404 page not found"), Code::failed);
  EXPECT_TRUE(
      readRefusal(503, R"({"error":"etcdserver: no leader","code":14})").isBeforeAnythingWasDone());
  EXPECT_FALSE(readRefusal(503, R"({"error":"etcdserver: request timed out","code":14})")
                   .isBeforeAnythingWasDone());
  EXPECT_EQ(
      readWatch(R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})").status().code(),
      Code::disconnected);
}

TEST(EtcdLibrary, IsNotInProcessesThatUseNoEtcd) {
  const auto server = hmc::test::must(Server::start("tcp://127.0.0.1:0", {}));
  ASSERT_TRUE(openStore(server->address(), {}, std::chrono::seconds(60)).ok());
  std::ifstream maps("/proc/self/maps");
  const std::string loaded(std::istreambuf_iterator<char>(maps), {});
  EXPECT_NE(loaded.find("libc.so"), std::string::npos);
  EXPECT_EQ(loaded.find("libcurl"), std::string::npos);
}

// Run by etcd_old_libcurl_test, which puts another library in its place.
TEST(EtcdLibrary, DISABLED_ThatIsTooOldIsASentence) {
  const Status status = openStore("etcd://127.0.0.1:1", {}, std::chrono::seconds(60)).status();
  EXPECT_EQ(status.code(), Code::unsupported) << status.toString();
  EXPECT_NE(status.message().find("7.68"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace hmc::store::etcd
