#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "fakes/must.h"
#include "store/store.h"

// What is at the address is no etcd, or one that has lost its mind.

namespace hmc::store {
namespace {

using hmc::test::must;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Gives each request the bytes that it is told to, and then hangs up.
class FakeEtcd {
 public:
  using Answer = std::function<std::string(const std::string& request)>;
  explicit FakeEtcd(Answer answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_, 16) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      std::abort();
    }
    url_ = "etcd://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeEtcd() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  const std::string& url() const { return url_; }
  int asked(const std::string& path) const {
    std::lock_guard lock(mutex_);
    const auto found = asked_.find(path);
    return found == asked_.end() ? 0 : found->second;
  }

 private:
  static std::string read(int socket) {
    std::string request;
    char bytes[4096];
    for (;;) {
      const ssize_t got = recv(socket, bytes, sizeof(bytes), 0);
      if (got <= 0) return request;
      request.append(bytes, static_cast<size_t>(got));
      const size_t body = request.find("\r\n\r\n");
      const size_t length = request.find("Content-Length: ");
      if (body == std::string::npos || length == std::string::npos) continue;
      if (request.size() >= body + 4 + std::stoul(request.substr(length + 16))) return request;
    }
  }
  void serve() {
    for (;;) {
      const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      const std::string request = read(socket);
      {
        std::lock_guard lock(mutex_);
        ++asked_[request.substr(5, request.find(' ', 5) - 5)];
      }
      const std::string bytes = answer_(request);
      (void)!send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      close(socket);
    }
  }

  const Answer answer_;
  int listener_ = -1;
  std::string url_;
  mutable std::mutex mutex_;
  std::map<std::string, int> asked_;
  std::thread thread_;
};

std::string http(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status +
         "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

// Answers to an open, and hangs up at everything else.
std::string onlyPing(const std::string& request) {
  if (request.find("count_only") == std::string::npos) return "";
  return http(R"({"header":{"revision":"1"}})");
}

TEST(FakeEtcd, ThatSaysNonsenseIsRefusedWithASentence) {
  const std::string bodies[] = {
      "", "no", "{", "[]", R"({"header":7})", std::string(5000, '\xff'), std::string(5000, '[')};
  for (const std::string& body : bodies) {
    FakeEtcd fake([&](const std::string&) { return http(body); });
    const Status status = openStore(fake.url(), {}, seconds(60)).status();
    EXPECT_EQ(status.code(), Code::failed) << status.toString();
    EXPECT_NE(status.message().find("what answers as etcd is none"), std::string::npos);
    EXPECT_LT(status.message().size(), 1000u);
  }
}

TEST(FakeEtcd, ThatIsAnotherHttpServerIsRefusedWithItsWords) {
  FakeEtcd fake([](const std::string&) { return http("<h1>not here</h1>", "404 Not Found"); });
  const Status status = openStore(fake.url(), {}, seconds(60)).status();
  EXPECT_EQ(status.code(), Code::failed) << status.toString();
  EXPECT_NE(status.message().find("not here"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("3.4"), std::string::npos) << status.message();
}

TEST(FakeEtcd, ThatPromisesTooMuchIsNotListenedTo) {
  FakeEtcd fake([](const std::string&) {
    return std::string("HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n{");
  });
  const Status status = openStore(fake.url(), {}, seconds(60)).status();
  EXPECT_EQ(status.code(), Code::failed) << status.toString();
}

TEST(FakeEtcd, ThatHangsUpIsAskedAgainUntilTheDeadline) {
  FakeEtcd fake([](const std::string&) { return ""; });
  const Status status = openStore(fake.url(), {}, milliseconds(300)).status();
  EXPECT_EQ(status.code(), Code::deadlineExceeded) << status.toString();
  EXPECT_NE(status.message().find(fake.url()), std::string::npos) << status.message();
  EXPECT_GT(fake.asked("/v3/kv/range"), 1);
}

TEST(FakeEtcd, ThatSpeaksNoHttpIsAskedAgainUntilTheDeadline) {
  FakeEtcd fake([](const std::string&) { return "220 mail.example ESMTP\r\n"; });
  EXPECT_FALSE(openStore(fake.url(), {}, milliseconds(300)).ok());
}

TEST(FakeEtcd, AChangeWhoseAnswerIsLostIsNotRepeated) {
  FakeEtcd fake(onlyPing);
  const auto store = must(openStore(fake.url(), {}, seconds(60)));
  EXPECT_EQ(store->compareAndSet("k", std::nullopt, "v", seconds(60)).status().code(),
            Code::disconnected);
  EXPECT_EQ(fake.asked("/v3/kv/txn"), 1);
  EXPECT_EQ(store->add("k", 1, seconds(60)).status().code(), Code::disconnected);
  EXPECT_EQ(store->append("k", "v", seconds(60)).status().code(), Code::disconnected);
  EXPECT_EQ(fake.asked("/v3/kv/txn"), 3);
  EXPECT_EQ(store->set("k", "v", milliseconds(300)).code(), Code::deadlineExceeded);
  EXPECT_GT(fake.asked("/v3/kv/put"), 1);
}

TEST(FakeEtcd, AWatchThatHearsNonsenseEndsWithASentence) {
  FakeEtcd fake([](const std::string& request) {
    if (request.find("/v3/watch") == std::string::npos) {
      return http(R"({"header":{"revision":"1"}})");
    }
    return http("{\"result\":{\"header\":{\"revision\":\"1\"},\"events\":7}}\n");
  });
  const auto store = must(openStore(fake.url(), {}, seconds(60)));
  const auto watch = must(store->watch(""));
  EXPECT_EQ(must(watch->next(seconds(60))).back().kind, Change::Kind::current);
  const Status status = watch->next(seconds(60)).status();
  EXPECT_EQ(status.code(), Code::failed) << status.toString();
}

TEST(FakeEtcd, ThatGivesNoTokenIsRefused) {
  FakeEtcd fake([](const std::string&) { return http(R"({"header":{},"token":7})"); });
  const Status status =
      openStore(fake.url() + "?user=me", {.secret = "mine"}, seconds(60)).status();
  EXPECT_EQ(status.code(), Code::failed) << status.toString();
}

TEST(AnyEtcd, AUserNeedsAPassword) {
  EXPECT_EQ(openStore("etcd://127.0.0.1:1?user=me", {}, seconds(60)).status().code(),
            Code::invalidArgument);
}

TEST(AnyEtcd, ThatIsNotThereIsASentenceAtTheDeadline) {
  const Status status = openStore("etcd://127.0.0.1:1,127.0.0.1:2", {}, milliseconds(200)).status();
  EXPECT_EQ(status.code(), Code::deadlineExceeded) << status.toString();
  EXPECT_NE(status.message().find("127.0.0.1"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace hmc::store
