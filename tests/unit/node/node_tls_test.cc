#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "fakes/certificates.h"
#include "node_pair.h"

// Nodes that demand TLS: what they do not encrypt they do not use.
namespace hmc {
namespace {

using test::Certificates;
using testing::HasSubstr;

NodeOptions encrypted(const std::string& name, const std::string& secret = "hush",
                      std::vector<std::string> transports = {}) {
  NodeOptions options = named(name, std::move(transports));
  options.secret = secret;
  options.tls.mode = TlsOptions::Mode::required;
  return options;
}

std::string reasonOf(const Node& node, const std::string& transport) {
  for (const PathReport& path : node.transports()) {
    if (path.transport == transport) return path.usable ? "usable" : path.reason;
  }
  return "not there";
}

class TlsVariable {
 public:
  TlsVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~TlsVariable() { unsetenv(name_); }

 private:
  const char* const name_;
};

TEST(NodeTls, memoryOfOneHostStaysShared) {
  Node a = must(Node::create(encrypted("a")));
  Node b = must(Node::create(encrypted("b")));
  Peer toA = must(b.connect(must(a.listen("tcp://127.0.0.1:0"))));
  LocalRegion target = must(a.allocate("target", 4096));
  LocalRegion source = must(b.allocate("source", 4096));
  fill(source, 3);
  RemoteRegion remote = must(toA.open("target"));
  EXPECT_EQ(remote.transport(), "ipc");
  EXPECT_TRUE(remote.put(source, 0, 0, 4096).ok());
  EXPECT_EQ(text(target, 0, 4096), text(source, 0, 4096));
}

TEST(NodeTls, tcpEncryptsAndSaysSo) {
  Certificates ca;
  for (const bool bySecret : {true, false}) {
    NodeOptions options = encrypted("a", bySecret ? "hush" : "", {"tcp"});
    if (!bySecret) options.tls = ca.issue("both");
    Node a = must(Node::create(options));
    Node b = must(Node::create(options));
    Peer toA = must(b.connect(must(a.listen("tcp://127.0.0.1:0"))));
    LocalRegion target = must(a.allocate("target", size_t{4} << 20));
    LocalRegion source = must(b.allocate("source", size_t{4} << 20));
    fill(source, 3);
    RemoteRegion remote = must(toA.open("target"));
    EXPECT_EQ(remote.path(), "tcp (tls, 2 streams)");
    EXPECT_TRUE(remote.put(source, 0, 0, source.size()).ok());
    EXPECT_TRUE(text(target, 0, target.size()) == text(source, 0, source.size()));
    std::memset(source.data(), 0, source.size());
    EXPECT_TRUE(remote.get(source, 0, 0, source.size()).ok());
    EXPECT_TRUE(text(target, 0, target.size()) == text(source, 0, source.size()));
  }
}

TEST(NodeTls, transportsThatDoNotEncryptAreNotThere) {
  Node node = must(Node::create(encrypted("a")));
  for (const char* name : {"verbs", "ucx"}) {
    EXPECT_THAT(reasonOf(node, name), HasSubstr("does not encrypt what it moves")) << name;
    EXPECT_THAT(reasonOf(node, name), HasSubstr("HMC_TLS_EXCEPTIONS")) << name;
  }
  EXPECT_EQ(reasonOf(node, "ipc"), "usable");
}

TEST(NodeTls, unlessTheyAreNamedAsExceptions) {
  NodeOptions options = encrypted("a");
  options.tls.exceptions = {"verbs"};
  Node node = must(Node::create(options));
  EXPECT_EQ(reasonOf(node, "verbs").find("does not encrypt"), std::string::npos);
  EXPECT_THAT(reasonOf(node, "ucx"), HasSubstr("does not encrypt"));
  options.tls.exceptions = {"vrebs"};
  EXPECT_EQ(Node::create(options).status().code(), Code::invalidArgument);
}

TEST(NodeTls, theEnvironmentIsTheDefault) {
  TlsVariable required("HMC_TLS", "required");
  auto without = Node::create(named("a"));
  EXPECT_EQ(without.status().code(), Code::invalidArgument) << "there is no key";
  NodeOptions options = named("a");
  options.secret = "hush";
  EXPECT_THAT(reasonOf(must(Node::create(options)), "ucx"), HasSubstr("does not encrypt"));
  options.tls.mode = TlsOptions::Mode::off;
  EXPECT_EQ(reasonOf(must(Node::create(options)), "ucx").find("encrypt"), std::string::npos);
}

TEST(NodeTls, aWordThatItDoesNotKnowIsNoWayAroundIt) {
  for (const char* word : {"on", "1", "Required", ""}) {
    TlsVariable wrong("HMC_TLS", word);
    EXPECT_EQ(Node::create(named("a")).status().code(), Code::invalidArgument) << word;
  }
  NodeOptions options = named("a");
  options.tls = Certificates().issue("a");
  options.tls.mode = TlsOptions::Mode::environment;
  EXPECT_EQ(Node::create(options).status().code(), Code::invalidArgument)
      << "certificates without encryption";
  options.tls.mode = TlsOptions::Mode::required;
  options.tls.key.clear();
  EXPECT_EQ(Node::create(options).status().code(), Code::invalidArgument) << "two files of three";
}

TEST(NodeTls, certificatesCanComeFromTheEnvironment) {
  Certificates ca;
  const TlsOptions files = ca.issue("both");
  TlsVariable required("HMC_TLS", "required");
  TlsVariable authority("HMC_TLS_CA", files.ca.c_str());
  TlsVariable certificate("HMC_TLS_CERT", files.certificate.c_str());
  TlsVariable key("HMC_TLS_KEY", files.key.c_str());
  NodePair pair;
  EXPECT_TRUE(pair.toA.probe().ok());
}

TEST(NodeTls, aPlainNodeIsRefused) {
  Node a = must(Node::create(encrypted("a")));
  NodeOptions options = named("b");
  options.secret = "hush";
  Node plain = must(Node::create(options));
  auto dialled = plain.connect(must(a.listen("tcp://127.0.0.1:0")));
  EXPECT_THAT(dialled.status().message(), HasSubstr("the peer demands TLS"));
  auto dials = a.connect(must(plain.listen("tcp://127.0.0.1:0")));
  EXPECT_THAT(dials.status().message(), HasSubstr("does not encrypt"));
}

}  // namespace
}  // namespace hmc
