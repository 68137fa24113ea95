#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace hmc::test {

// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct EtcdOptions {
  size_t members = 1;
  std::string certificate;  // a file, for TLS; its key is beside it, ".key" at its end
  bool askForCertificates = false;
  size_t largestRequest = size_t{16} << 20;
};

// The distribution's etcd, its members processes on loopback with free ports, with their data in a
// temporary folder. The destructor kills them and removes the data; they end with this process,
// too, whatever ends it. For one thread, which must live as long as the object.
class EtcdServer {
 public:
  static bool isInstalled();
  static constexpr const char* kMissing = "there is no etcd here: install etcd-server";

  // Returns when it serves.
  explicit EtcdServer(const EtcdOptions& options = {});
  ~EtcdServer();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  // "etcd://127.0.0.1:1234,127.0.0.1:1235" and what is to follow.
  std::string url(const std::string& rest = "") const;
  // Different each time, for keys that nobody else has.
  std::string urlOfItsOwn() const;
  // The answer to a POST of JSON at a member that does not use TLS.
  std::string post(const std::string& path, const std::string& body, size_t member = 0) const;

  int port(size_t member = 0) const { return members_[member].clientPort; }
  size_t leader() const;
  void kill(size_t member);
  // It holds its connections and answers nobody, until it goes on.
  void stop(size_t member);
  void goOn(size_t member);
  // Starts it again, with the data that it has.
  void start(size_t member);
  void removeData(size_t member);
  void waitUntilItServes() const;

 private:
  struct Member {
    int clientPort = 0;
    int peerPort = 0;
    pid_t pid = -1;
  };
  void pickPorts();
  bool startAll();
  std::vector<std::string> command(size_t member) const;
  std::filesystem::path logOf(size_t member) const;
  bool runs(Member& member) const;

  const EtcdOptions options_;
  const TemporaryFolder folder_;
  std::vector<Member> members_;
};

// A certificate for 127.0.0.1 and its key in the folder; "" when there is no openssl command.
std::string makeCertificate(const std::filesystem::path& folder, const std::string& name);

}  // namespace hmc::test
