#include "control/listener.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "control/socket.h"
#include "fakes/another_user.h"
#include "fakes/must.h"
#include "test_peer.h"

namespace hmc::control {
namespace {

using namespace test;

struct Folder {
  Folder() {
    char name[] = "/tmp/hmc-listener-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string listener(const std::string& file = "x.sock") const {
    return "unix://" + path + "/" + file;
  }
  std::string file(const std::string& file = "x.sock") const { return path + "/" + file; }
  std::string path;
};

TEST(Listener, answersThePortThatWasPicked) {
  TestPeer peer("peer");
  std::string first = peer.listen();
  std::string second = peer.listen();
  EXPECT_NE(first, second);
  EXPECT_NE(parseAddress(first)->port, 0);
}

TEST(Listener, takenPortIsNamedInTheError) {
  TestPeer peer("peer");
  TestPeer other("other");
  std::string listener = peer.listen();
  auto again = other.control->listen(listener);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().code(), Code::alreadyExists);
  EXPECT_NE(again.status().message().find(std::to_string(parseAddress(listener)->port)),
            std::string::npos);
}

TEST(Listener, closedCanBeOpenedAgainAtOnce) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen();
  ASSERT_TRUE(client.connect(listener).ok());
  ASSERT_TRUE(server.control->closeListener(listener).ok());
  EXPECT_EQ(server.control->closeListener(listener).code(), Code::notFound);
  EXPECT_EQ(server.listen(listener), listener);
  // The channel that came through it did not notice.
  EXPECT_TRUE(server.events.waitJoined()->call(1, "", kPatience).ok());
}

TEST(Listener, listensOnEveryInterfaceAndOnIpv6) {
  TestPeer server("server");
  TestPeer client("client");
  std::string listener = server.listen("tcp://0.0.0.0:0");
  std::string port = listener.substr(listener.rfind(':'));
  EXPECT_TRUE(client.connect("tcp://127.0.0.1" + port).ok());
  auto six = server.control->listen("tcp://[::1]:0");
  if (!six.ok()) GTEST_SKIP() << "no IPv6 here: " << six.status().toString();
  TestPeer other("other");
  auto channel = other.connect(*six);
  ASSERT_TRUE(channel.ok()) << channel.status().toString();
  EXPECT_EQ((*channel)->remoteHost(), "::1");
}

// Whoever can put another socket in the place of ours is not only a nuisance: he hears who dials.
TEST(Listener, aFolderThatEverybodyCanChangeIsRefusedAtBothEnds) {
  Folder folder;
  TestPeer server("server");
  TestPeer client("client");
  ASSERT_EQ(chmod(folder.path.c_str(), 01777), 0);
  ASSERT_EQ(server.listen(folder.listener()), folder.listener()) << "as /tmp is";
  EXPECT_TRUE(client.connect(folder.listener()).ok());
  ASSERT_EQ(chmod(folder.path.c_str(), 0777), 0);
  const Status dialled = client.connect(folder.listener()).status();
  const Status opened = server.control->listen(folder.listener("other")).status();
  for (const Status& refused : {dialled, opened}) {
    EXPECT_EQ(refused.code(), Code::permissionDenied) << refused.toString();
    EXPECT_NE(refused.message().find(folder.path), std::string::npos) << refused.message();
    EXPECT_NE(refused.message().find("chmod +t"), std::string::npos) << refused.message();
  }
}

TEST(Listener, aFolderOfAThirdUserIsRefusedAtBothEnds) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  Folder folder;
  TestPeer server("server");
  TestPeer client("client");
  ASSERT_EQ(server.listen(folder.listener()), folder.listener());
  ASSERT_EQ(chown(folder.path.c_str(), hmc::test::kAnotherUser, 0), 0);
  const Status dialled = client.connect(folder.listener()).status();
  const Status opened = server.control->listen(folder.listener("other")).status();
  for (const Status& refused : {dialled, opened}) {
    EXPECT_EQ(refused.code(), Code::permissionDenied) << refused.toString();
    EXPECT_NE(refused.message().find("uid 65534"), std::string::npos) << refused.message();
  }
}

TEST(Listener, ofAUnixPathServesAndIsPrivateAndGoesAway) {
  Folder folder;
  {
    TestPeer server("server");
    TestPeer client("client");
    umask(0);
    ASSERT_EQ(server.listen(folder.listener()), folder.listener());
    umask(022);
    struct stat facts {};
    ASSERT_EQ(stat(folder.file().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600u);
    auto channel = client.connect(folder.listener());
    ASSERT_TRUE(channel.ok()) << channel.status().toString();
    EXPECT_EQ((*channel)->remoteHost(), "127.0.0.1");
    EXPECT_EQ((*channel)->localHost(), "127.0.0.1");
    EXPECT_EQ((*channel)->remotePort(), 0);
    ASSERT_TRUE(sendTag(**channel, "hello").ok());
    EXPECT_EQ(receiveText(*server.events.waitJoined(), MessageKind::tag), "hello");
    TestPeer second("second");
    EXPECT_EQ(second.control->listen(folder.listener()).status().code(), Code::alreadyExists);
    EXPECT_TRUE(std::filesystem::exists(folder.file()));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file()));
}

TEST(Listener, ofAnotherUserUnderTheNameOfOursIsNotSpokenTo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Folder folder;
  ASSERT_EQ(chmod(folder.path.c_str(), 01777), 0);
  const auto meanings =
      hmc::test::must(resolve(hmc::test::must(parseAddress(folder.listener())), kPatience));
  const Fd squatter(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  hmc::test::asAnotherUser([&] {
    ASSERT_EQ(bind(squatter.get(), meanings[0].get(), meanings[0].size), 0);
    ASSERT_EQ(listen(squatter.get(), 1), 0);
  });
  TestPeer client("client");
  const auto channel = client.connect(folder.listener());
  ASSERT_FALSE(channel.ok());
  EXPECT_EQ(channel.status().code(), Code::permissionDenied);
  EXPECT_NE(channel.status().message().find("uid 65534"), std::string::npos)
      << channel.status().message();
  const Fd caller(accept(squatter.get(), nullptr, nullptr));
  char heard = 0;
  EXPECT_EQ(recv(caller.get(), &heard, 1, 0), 0) << "it heard a hello";
}

TEST(Listener, takesOverASocketFileThatNobodyListensOn) {
  Folder folder;
  {
    Fd dead(socket(AF_UNIX, SOCK_STREAM, 0));
    SocketAddress at = resolve(*parseAddress(folder.listener()), kPatience)->front();
    ASSERT_EQ(bind(dead.get(), at.get(), at.size), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(folder.file()));
  TestPeer server("server");
  TestPeer client("client");
  ASSERT_EQ(server.listen(folder.listener()), folder.listener());
  EXPECT_TRUE(client.connect(folder.listener()).ok());
}

TEST(Listener, leavesOtherFilesAlone) {
  Folder folder;
  std::ofstream(folder.file()) << "precious";
  TestPeer server("server");
  auto listener = server.control->listen(folder.listener());
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.status().code(), Code::alreadyExists);
  EXPECT_NE(listener.status().message().find("not a socket"), std::string::npos);
  std::string content;
  std::ifstream(folder.file()) >> content;
  EXPECT_EQ(content, "precious");
}

TEST(Listener, doesNotRemoveAFileThatTookItsPlace) {
  Folder folder;
  const Address address = *parseAddress(folder.listener());
  auto listener = Listener::open(address, *resolve(address, kPatience));
  ASSERT_TRUE(listener.ok()) << listener.status().toString();
  std::filesystem::rename(folder.file(), folder.file("moved"));
  std::ofstream(folder.file()) << "somebody else's";
  listener->reset();
  EXPECT_TRUE(std::filesystem::exists(folder.file()));
}

TEST(Listener, aFolderThatIsNotThereIsAnErrorWithThePath) {
  TestPeer server("server");
  auto listener = server.control->listen("unix:///nonexistent/folder/x.sock");
  ASSERT_FALSE(listener.ok());
  EXPECT_NE(listener.status().message().find("/nonexistent/folder/x.sock"), std::string::npos);
}

}  // namespace
}  // namespace hmc::control
