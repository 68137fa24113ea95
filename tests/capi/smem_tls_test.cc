// TLS between ranks, and to their store, as MemFabric's functions switch it on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <smem_codes.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fakes/certificates.h"
#include "smem_ranks.h"

namespace hmc::test {
namespace {

using testing::HasSubstr;

constexpr const char* kInvalid = "-2000";

std::string nameOf(const std::string& path) {
  return std::filesystem::path(path).filename();
}
std::string folderOf(const std::string& path) {
  return std::filesystem::path(path).parent_path();
}

// The line that gives a rank these files.
std::string tlsLine(const TlsOptions& files, const std::string& rest = "") {
  return "tls " + folderOf(files.ca) + " " + nameOf(files.ca) + " " + nameOf(files.certificate) +
         " " + nameOf(files.key) + " " + rest;
}

class SmemTls : public testing::Test {
 protected:
  // Two ranks that put and check each other's slots.
  void expectToMoveBytes(SmemRanks& ranks) const {
    ranks.expectOk("bm " + url_ + " 2 {}");
    ranks.expectOk("create 0 0 2097152");
    ranks.expectOk("join 0");
    EXPECT_TRUE(ranks[0].ask("put 0 1 0 100000 1").ok);
    EXPECT_TRUE(ranks[1].ask("check 0 1 0 100000 1").ok);
  }
  // The one without what the others have.
  void expectToBeRefused(SmemRank& rank, const std::string& why) const {
    const Reply reply = rank.ask("bm " + url_ + " 2 1 0 20");
    EXPECT_FALSE(reply.ok);
    EXPECT_THAT(reply.text, HasSubstr(why));
  }

  const std::string url_ = freeUrl();
  const Certificates ca_;
};

TEST_F(SmemTls, ranksWithCertificatesOfOneCaMoveBytes) {
  SmemRanks ranks(2);
  for (size_t i = 0; i < 2; ++i) {
    const Reply set = ranks[i].ask(tlsLine(ca_.issue("rank" + std::to_string(i))));
    ASSERT_TRUE(set.ok) << set;
  }
  expectToMoveBytes(ranks);
  SmemRank plain;
  expectToBeRefused(plain, "TLS");
  SmemRank stranger;
  const Certificates other("another CA");
  ASSERT_TRUE(stranger.ask(tlsLine(other.issue("stranger"))).ok);
  expectToBeRefused(stranger, "certificate");
}

TEST_F(SmemTls, aRevokedRankIsRefused) {
  SmemRank server;
  const TlsOptions lost = ca_.issue("lost");
  const std::string list = nameOf(ca_.revoke({"lost"}));
  std::ofstream(folderOf(ca_.ca()) + "/password") << "secret\n";
  const Reply set = server.ask(tlsLine(ca_.issue("server", 3600, "secret"), "password " + list));
  ASSERT_TRUE(set.ok) << set;
  ASSERT_TRUE(server.ask("bm " + url_ + " 2 0").ok);
  SmemRank rank;
  ASSERT_TRUE(rank.ask(tlsLine(lost)).ok);
  expectToBeRefused(rank, "revoked");
}

TEST_F(SmemTls, whatCannotBeHadIsAnErrorAtOnce) {
  SmemRank rank;
  const TlsOptions files = ca_.issue("a", 3600, "secret");
  const Reply locked = rank.ask(tlsLine(files));
  EXPECT_EQ(locked.code, kInvalid);
  EXPECT_THAT(locked.text, HasSubstr("is encrypted"));
  TlsOptions missing = files;
  missing.certificate += ".not";
  EXPECT_THAT(rank.ask(tlsLine(missing)).text, HasSubstr(missing.certificate));
  const Reply lists = rank.ask(tlsLine(ca_.issue("b"), "/dev/null nothing.pem"));
  EXPECT_EQ(lists.code, kInvalid);
  EXPECT_TRUE(rank.ask("notls").ok);
  EXPECT_TRUE(rank.ask("bm " + url_ + " 1 0").ok);
}

TEST_F(SmemTls, aTextAndAKeySwitchItOnAsWell) {
  SmemRanks ranks(2);
  const TlsOptions files = ca_.issue("both", 3600, "secret");
  std::ifstream file(files.key);
  std::string key{std::istreambuf_iterator<char>(file), {}};
  std::replace(key.begin(), key.end(), '\n', '|');
  ranks.expectOk("tlskey terces " + key);
  ranks.expectOk("tlsinfo tlsCaPath: " + folderOf(files.ca) +
                 "/; tlsCaFile: ca.pem;\ttlsCert: " + files.certificate + ";packagePath: /usr/lib");
  expectToMoveBytes(ranks);
  SmemRank plain;
  expectToBeRefused(plain, "TLS");
}

TEST_F(SmemTls, aTextThatSaysTooLittleOrTooMuchIsRefused) {
  SmemRank rank;
  const TlsOptions files = ca_.issue("a");
  const std::string authority = "tlsinfo tlsCaPath: " + files.ca;
  EXPECT_THAT(rank.ask("tlsinfo  ").text, HasSubstr("tlsCaPath"));
  EXPECT_THAT(rank.ask(authority).text, HasSubstr("tlsCert"));
  EXPECT_THAT(rank.ask(authority + "; tlsCret: x").text, HasSubstr("tlsCret: x"));
  EXPECT_THAT(rank.ask("tlskey x no key").text, HasSubstr("BEGIN"));
  // No key: nothing is opened unprotected.
  ASSERT_TRUE(rank.ask(authority + "; tlsCert: " + files.certificate).ok);
  const Reply opened = rank.ask("bm " + url_ + " 1 0");
  EXPECT_EQ(opened.code, kInvalid);
  EXPECT_THAT(opened.text, HasSubstr("the key \"\""));
}

TEST_F(SmemTls, anOpenStoreStaysAsItIs) {
  SmemRank rank;
  ASSERT_TRUE(rank.ask("bm " + url_ + " 1 0").ok);
  ASSERT_TRUE(rank.ask(tlsLine(ca_.issue("a"))).ok);
  const Reply second = rank.ask("shm " + url_ + " 1 0");
  EXPECT_EQ(second.code, kInvalid);
  EXPECT_THAT(second.text, HasSubstr("other TLS settings"));
}

}  // namespace
}  // namespace hmc::test
