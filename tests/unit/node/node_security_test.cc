// Who may talk to a Node, without a secret.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/cookie.h"
#include "unit/node/node_pair.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A variable of the environment, while it lives. Its process has no other thread that reads it.
class With {
 public:
  With(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~With() { unsetenv(name_); }

 private:
  const char* const name_;
};

std::string cookieFile(const std::string& name) {
  return testing::TempDir() + "hmc_cookie_" + name + "_" + std::to_string(getpid());
}

TEST(NodeSecurity, processesOfOneUserKnowEachOtherByAPrivateFile) {
  const std::string file = cookieFile("ours");
  const With cookie("HMC_COOKIE", file);
  const NodePair nodes;
  EXPECT_TRUE(nodes.toA.status().ok());
  struct stat facts {};
  ASSERT_EQ(stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600U);
  EXPECT_EQ(must(userCookie()), must(userCookie()));
  unlink(file.c_str());
}

// As a process of another user would, which cannot read our cookie.
TEST(NodeSecurity, aProcessWithAnotherCookieIsAStrangerOverLoopback) {
  std::optional<Node> server;
  {
    const With cookie("HMC_COOKIE", cookieFile("theirs"));
    server.emplace(must(Node::create(named("server"))));
  }
  const std::string listener = must(server->listen("tcp://127.0.0.1:0"));
  for (const std::string& file : {cookieFile("ours"), std::string("none")}) {
    const With cookie("HMC_COOKIE", file);
    Node client = must(Node::create(named("client")));
    const Status refused = client.connect(listener).status();
    EXPECT_EQ(refused.code(), Code::permissionDenied) << refused.toString();
    EXPECT_THAT(refused.message(), HasSubstr("HMC_SECRET"));
  }
  EXPECT_TRUE(server->peers().empty());
  for (const char* name : {"ours", "theirs"}) unlink(cookieFile(name).c_str());
}

TEST(NodeSecurity, aCookieThatOthersCanReadIsNotUsed) {
  const std::string file = cookieFile("open");
  std::ofstream(file) << std::string(64, 'c');
  chmod(file.c_str(), 0644);
  const With cookie("HMC_COOKIE", file);
  const Status refused = Node::create(named("a")).status();
  EXPECT_EQ(refused.code(), Code::permissionDenied) << refused.toString();
  EXPECT_THAT(refused.message(), HasSubstr("chmod 600 " + file));
  EXPECT_EQ(chmod(file.c_str(), 0600), 0);
  EXPECT_TRUE(Node::create(named("a")).ok());
  unlink(file.c_str());
}

TEST(NodeSecurity, listeningOnTheNetworkWithoutASecretTellsTheTwoWaysToGoOn) {
  const With cookie("HMC_COOKIE", "none");
  Node node = must(Node::create(named("a")));
  for (const char* address : {"tcp://0.0.0.0:0", "tcp://[::]:0"}) {
    const Status refused = node.listen(address).status();
    EXPECT_EQ(refused.code(), Code::permissionDenied) << refused.toString();
    EXPECT_THAT(refused.message(), HasSubstr("HMC_SECRET"));
    EXPECT_THAT(refused.message(), HasSubstr("insecure=true"));
  }
  EXPECT_TRUE(node.listen("tcp://127.0.0.1:0").ok());
  EXPECT_TRUE(node.listen("tcp://localhost:0").ok());
  NodeOptions guarded = named("b");
  guarded.secret = "hush";
  EXPECT_TRUE(must(Node::create(guarded)).listen("tcp://0.0.0.0:0").ok());
}

TEST(NodeSecurity, insecureInSoManyWordsWarnsOnce) {
  const With cookie("HMC_COOKIE", "none");
  NodeOptions options = named("daring");
  options.insecure = true;
  Node node = must(Node::create(options));
  testing::internal::CaptureStderr();
  EXPECT_TRUE(node.listen("tcp://0.0.0.0:0").ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("HMC_SECRET"));
  testing::internal::CaptureStderr();
  EXPECT_TRUE(node.listen("tcp://0.0.0.0:0").ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const With strict("HMC_SECURITY", "strict");
  EXPECT_EQ(node.listen("tcp://0.0.0.0:0").status().code(), Code::permissionDenied);
}

TEST(NodeSecurity, theSecretOfTheEnvironmentIsANodesToo) {
  const With secret("HMC_SECRET", "hush");
  Node server = must(Node::create(named("server")));
  const std::string listener = must(server.listen("tcp://0.0.0.0:0"));
  const std::string port = listener.substr(listener.rfind(':'));
  NodeOptions other = named("client");
  other.secret = "another";
  EXPECT_EQ(must(Node::create(other)).connect("tcp://127.0.0.1" + port).status().code(),
            Code::permissionDenied);
  EXPECT_TRUE(must(Node::create(named("client"))).connect("tcp://127.0.0.1" + port).ok());
}

}  // namespace
}  // namespace hmc
