#include "base/fd_exchange.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/random.h"
#include "fakes/another_user.h"

namespace hmc {

namespace {

constexpr std::chrono::seconds kPatience{30};

// The two ends of one conversation.
const Bond kOwner{"what both ends know", false};
const Bond kAsker{"what both ends know", true};

std::unique_ptr<FdExchange> exchange() {
  return *FdExchange::create();
}

// A file with its own content.
Fd file(const std::string& content) {
  Fd fd(memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(write(fd.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
  return fd;
}

std::string contentOf(const Fd& fd) {
  char bytes[100];
  ssize_t got = pread(fd.get(), bytes, sizeof(bytes), 0);
  return got < 0 ? "nothing" : std::string(bytes, static_cast<size_t>(got));
}

// Dials (or with bind, listens as) `name` from a socket that is there already; 0 or -1 as connect()
// answers.
int dialFrom(const Fd& fd, const std::string& name, decltype(&connect) call = &connect) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return call(fd.get(), reinterpret_cast<const sockaddr*>(&address), size);
}

Fd unixSocket(int flags = 0) {
  return Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
}

Fd dial(const std::string& name) {
  Fd fd = unixSocket();
  EXPECT_EQ(dialFrom(fd, name), 0);
  return fd;
}

}  // namespace

TEST(FdExchange, handsOutWhatIsOffered) {
  auto fds = exchange();
  auto one = fds->offer(file("one").get(), kOwner);
  auto two = fds->offer(file("two").get(), kOwner);
  ASSERT_TRUE(one.ok() && two.ok());
  auto got = FdExchange::fetch(fds->name(), *two, kAsker, kPatience);
  ASSERT_TRUE(got.ok()) << got.status().toString();
  EXPECT_EQ(contentOf(*got), "two");
  EXPECT_NE(fcntl(got->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(contentOf(*FdExchange::fetch(fds->name(), *one, kAsker, kPatience)), "one");
  EXPECT_TRUE(FdExchange::fetch(fds->name(), *one, kAsker, kPatience).ok()) << "a second time";
}

TEST(FdExchange, forgetsWhatIsWithdrawn) {
  auto fds = exchange();
  auto token = fds->offer(file("one").get(), kOwner);
  ASSERT_TRUE(token.ok());
  fds->withdraw(*token);
  fds->withdraw(*token);
  EXPECT_EQ(FdExchange::fetch(fds->name(), *token, kAsker, kPatience).status().code(),
            Code::notFound);
}

TEST(FdExchange, knowsNoOtherTokens) {
  auto fds = exchange();
  ASSERT_TRUE(fds->offer(file("one").get(), kOwner).ok());
  EXPECT_EQ(FdExchange::fetch(fds->name(), randomBytes(16), kAsker, kPatience).status().code(),
            Code::notFound);
  EXPECT_EQ(FdExchange::fetch(fds->name(), "short", kAsker, kPatience).status().code(),
            Code::invalidArgument);
  EXPECT_EQ(
      FdExchange::fetch(std::string(300, 'x'), randomBytes(16), kAsker, kPatience).status().code(),
      Code::invalidArgument);
}

TEST(FdExchange, answersOnlyTheOtherEndOfTheConversation) {
  auto fds = exchange();
  int asked = 0;
  const std::string token = fds->serve(kOwner, [&](const Parcel& request) -> Result<Parcel> {
    ++asked;
    return Parcel{"heard " + request.bytes, {}};
  });
  const auto answer = FdExchange::ask(fds->name(), token, kAsker, {"words", {}}, kPatience);
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(answer->parcel.bytes, "heard words");
  EXPECT_EQ(answer->from.pid, getpid());
  // Our own end of it, given back to us as the peer's, and somebody who only saw the token.
  for (const Bond& bond : {kOwner, Bond{"something else", true}, Bond{"", true}}) {
    const auto refused = FdExchange::ask(fds->name(), token, bond, {"words", {}}, kPatience);
    EXPECT_EQ(refused.status().code(), Code::notFound);
    EXPECT_NE(refused.status().message().find("is not the peer"), std::string::npos)
        << refused.status().message();
  }
  EXPECT_EQ(asked, 1);
}

TEST(FdExchange, believesNoAnswerOfAnotherProcessOfThisUser) {
  const std::string name = "hmc-test-" + hex(randomBytes(8));
  Fd listener = unixSocket();
  ASSERT_EQ(dialFrom(listener, name, &bind), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  std::jthread impostor([&] {
    const Fd caller(accept(listener.get(), nullptr, nullptr));
    char request[1000];
    ASSERT_GT(recv(caller.get(), request, sizeof(request), 0), 0);
    // Answers as long as a real one is, with a descriptor of its choice.
    Parcel answer{std::string(33, '\0'), {}};
    answer.fds.push_back(file("not yours"));
    EXPECT_TRUE(sendParcel(caller.get(), answer).ok());
  });
  const auto got = FdExchange::fetch(name, randomBytes(16), kAsker, kPatience);
  EXPECT_EQ(got.status().code(), Code::notFound) << got.status().toString();
}

TEST(FdExchange, carriesDescriptorsBothWaysAndErrorsOfTheOtherSide) {
  auto fds = exchange();
  const std::string token = fds->serve(kOwner, [](Parcel request) -> Result<Parcel> {
    if (request.fds.size() != 2) return Status(Code::outOfRange, "two were expected");
    return Parcel{contentOf(request.fds[1]), std::move(request.fds)};
  });
  Parcel request;
  request.fds.push_back(file("one"));
  EXPECT_EQ(FdExchange::ask(fds->name(), token, kAsker, request, kPatience).status().toString(),
            Status(Code::outOfRange, "two were expected").toString());
  request.fds.push_back(file("two"));
  const auto answer = FdExchange::ask(fds->name(), token, kAsker, request, kPatience);
  ASSERT_TRUE(answer.ok()) << answer.status().toString();
  EXPECT_EQ(answer->parcel.bytes, "two");
  ASSERT_EQ(answer->parcel.fds.size(), 2u);
  EXPECT_EQ(contentOf(answer->parcel.fds[0]), "one");
}

TEST(FdExchange, whatIsWithdrawnDoesNotRunAnyMore) {
  auto fds = exchange();
  for (int round = 0; round < 50; ++round) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    const std::string token = fds->serve(kOwner, [&alive](const Parcel&) -> Result<Parcel> {
      alive->fetch_add(1);
      return Parcel();
    });
    std::jthread asker([&] { (void)FdExchange::ask(fds->name(), token, kAsker, {}, kPatience); });
    fds->withdraw(token);
    alive.reset();
  }
}

TEST(FdExchange, offeringABadDescriptorIsAnError) {
  EXPECT_FALSE(exchange()->offer(-1, kOwner).ok());
}

TEST(FdExchange, isGoneWhenItsOwnerHasEnded) {
  auto fds = exchange();
  std::string name = fds->name();
  EXPECT_FALSE(FdExchange::gone(name));
  fds.reset();
  EXPECT_TRUE(FdExchange::gone(name));
  EXPECT_EQ(FdExchange::fetch(name, randomBytes(16), kAsker, kPatience).status().code(),
            Code::disconnected);
}

TEST(FdExchange, servesOthersAfterVisitorsThatSayNothingSensible) {
  auto fds = exchange();
  auto token = fds->offer(file("one").get(), kOwner);
  ASSERT_TRUE(token.ok());
  dial(fds->name());  // hangs up at once
  Fd babbler = dial(fds->name());
  ASSERT_EQ(send(babbler.get(), "hello", 5, MSG_NOSIGNAL), 5);
  Fd silent = dial(fds->name());
  auto got = FdExchange::fetch(fds->name(), *token, kAsker, kPatience);
  ASSERT_TRUE(got.ok()) << got.status().toString();
  EXPECT_EQ(contentOf(*got), "one");
}

TEST(FdExchange, endsWhileVisitorsAreThere) {
  auto fds = exchange();
  Fd silent = dial(fds->name());
  fds.reset();
}

TEST(FdExchange, servesManyThreads) {
  auto fds = exchange();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&fds, i] {
      for (int round = 0; round < 50; ++round) {
        std::string content = std::to_string(i * 1000 + round);
        auto token = fds->offer(file(content).get(), kOwner);
        ASSERT_TRUE(token.ok()) << token.status().toString();
        auto got = FdExchange::fetch(fds->name(), *token, kAsker, kPatience);
        ASSERT_TRUE(got.ok()) << got.status().toString();
        EXPECT_EQ(contentOf(*got), content);
        fds->withdraw(*token);
      }
    });
  }
}

TEST(FdExchange, givesUpOnAPeerThatTakesNoMoreVisitors) {
  const std::string name = "hmc-test-" + hex(randomBytes(8));
  Fd silent = unixSocket();
  ASSERT_EQ(dialFrom(silent, name, &bind), 0);
  ASSERT_EQ(listen(silent.get(), 0), 0);
  std::vector<Fd> queue;
  do {
    queue.push_back(unixSocket(SOCK_NONBLOCK));
  } while (dialFrom(queue.back(), name) == 0);
  ASSERT_EQ(errno, EAGAIN);
  auto fetched =
      FdExchange::fetch(name, std::string(16, 't'), kAsker, std::chrono::milliseconds(50));
  EXPECT_EQ(fetched.status().code(), Code::deadlineExceeded) << fetched.status().toString();
}

TEST(FdExchange, doesNotSpinWhenThereAreNoDescriptorsLeft) {
  auto ours = exchange();
  const std::string token = *ours->offer(file("x").get(), kOwner);
  Fd visitor = unixSocket();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  ASSERT_EQ(dialFrom(visitor, ours->name()), 0);
  auto cpu = [] {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  };
  const auto start = cpu();
  pollfd answer{visitor.get(), POLLIN, 0};
  ASSERT_EQ(poll(&answer, 1, 1000), 0) << "nobody could have accepted it";
  // The processor's time, not the wall's: a loaded machine makes it smaller.
  EXPECT_LT(cpu() - start, std::chrono::milliseconds(300));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(FdExchange::fetch(ours->name(), token, kAsker, kPatience).ok());
}

TEST(FdExchange, refusesOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  auto fds = exchange();
  auto token = fds->offer(file("secret").get(), kOwner);
  ASSERT_TRUE(token.ok());
  pid_t child = fork();
  if (child == 0) {
    // A fork is enough here: fetch() needs no other thread and no lock of ours.
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    auto got = FdExchange::fetch(fds->name(), *token, kAsker, kPatience);
    _exit(got.ok() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(FdExchange, asksNobodyElseThanAProcessOfThisUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string name = "hmc-test-" + std::to_string(getpid());
  const Fd squatter = unixSocket();
  test::asAnotherUser([&] {
    ASSERT_EQ(dialFrom(squatter, name, &bind), 0);
    ASSERT_EQ(listen(squatter.get(), 1), 0);
  });
  const auto got = FdExchange::fetch(name, randomBytes(16), kAsker, kPatience);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.status().code(), Code::permissionDenied);
  EXPECT_NE(got.status().message().find("uid 65534"), std::string::npos) << got.status().message();
  const Fd caller(accept(squatter.get(), nullptr, nullptr));
  char heard = 0;
  EXPECT_EQ(recv(caller.get(), &heard, 1, 0), 0) << "it heard the token";
}

}  // namespace hmc
