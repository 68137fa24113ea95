#include "etcd/etcd_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace hmc::test {

namespace {

constexpr const char* kProgram = "/usr/bin/etcd";
constexpr std::chrono::seconds kPatience{60};

template <class Condition>
bool comesTrue(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A port that is free now. Taken for the caller only until it closes the socket.
int bindAny(int& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  if (bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no port on loopback");
  }
  port = ntohs(address.sin_port);
  return socket;
}

int dial(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return socket;
  }
  close(socket);
  return -1;
}

// Ends with this process. Only what is safe after a fork() among threads.
pid_t spawn(std::vector<std::string> words, const std::filesystem::path& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string file = log.string();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int output = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (getppid() == parent) execv(arguments[0], arguments.data());
  _exit(127);
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "hmc_etcd_XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string makeCertificate(const std::filesystem::path& folder, const std::string& name) {
  const std::string file = (folder / name).string();
  const std::string command = fmt::format(
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
      "-subj /CN={1} -addext subjectAltName=IP:127.0.0.1 "
      "-addext extendedKeyUsage=serverAuth,clientAuth -keyout {0}.key -out {0} 2>{0}.log",
      file, name);
  return std::system(command.c_str()) == 0 ? file : "";
}

bool EtcdServer::isInstalled() {
  return access(kProgram, X_OK) == 0;
}

EtcdServer::EtcdServer(const EtcdOptions& options) : options_(options) {
  members_.resize(options.members);
  // Somebody else may take a port before etcd does.
  for (int attempt = 0; attempt < 5; ++attempt) {
    pickPorts();
    if (startAll()) return;
    for (size_t i = 0; i < members_.size(); ++i) {
      kill(i);
      removeData(i);
    }
  }
  throw std::runtime_error("etcd does not start: " + contents(logOf(0)));
}

EtcdServer::~EtcdServer() {
  for (size_t i = 0; i < members_.size(); ++i) kill(i);
}

void EtcdServer::pickPorts() {
  std::vector<int> sockets;
  for (Member& member : members_) {
    sockets.push_back(bindAny(member.clientPort));
    sockets.push_back(bindAny(member.peerPort));
  }
  for (const int socket : sockets) close(socket);
}

bool EtcdServer::startAll() {
  for (size_t i = 0; i < members_.size(); ++i) start(i);
  bool ended = false;
  const bool listen = comesTrue([&] {
    bool all = true;
    for (Member& member : members_) {
      ended = ended || !runs(member);
      const int socket = dial(member.clientPort);
      if (socket >= 0) close(socket);
      all = all && socket >= 0;
    }
    return all || ended;
  });
  if (!listen || ended) return false;
  if (options_.certificate.empty()) waitUntilItServes();
  return true;
}

void EtcdServer::waitUntilItServes() const {
  const bool serves = comesTrue([this] {
    // Needs a leader.
    return post("/v3/kv/range", R"({"key":"aG1j"})").find("\"revision\"") != std::string::npos;
  });
  if (!serves) throw std::runtime_error("etcd does not serve: " + contents(logOf(0)));
}

std::vector<std::string> EtcdServer::command(size_t index) const {
  const Member& member = members_[index];
  const std::string scheme = options_.certificate.empty() ? "http" : "https";
  const std::string client = fmt::format("{}://127.0.0.1:{}", scheme, member.clientPort);
  const std::string peer = fmt::format("http://127.0.0.1:{}", member.peerPort);
  std::string cluster;
  for (size_t i = 0; i < members_.size(); ++i) {
    cluster += fmt::format("{}m{}=http://127.0.0.1:{}", i == 0 ? "" : ",", i, members_[i].peerPort);
  }
  std::vector<std::string> words{
      kProgram,
      "--name=" + fmt::format("m{}", index),
      "--data-dir=" + (folder_.path() / fmt::format("m{}", index)).string(),
      "--listen-client-urls=" + client,
      "--advertise-client-urls=" + client,
      "--listen-peer-urls=" + peer,
      "--initial-advertise-peer-urls=" + peer,
      "--initial-cluster=" + cluster,
      "--initial-cluster-token=" + folder_.path().filename().string(),
      "--heartbeat-interval=50",
      "--election-timeout=500",
      fmt::format("--max-request-bytes={}", options_.largestRequest),
      "--logger=zap",
      "--log-level=error",
  };
  if (!options_.certificate.empty()) {
    words.push_back("--cert-file=" + options_.certificate);
    words.push_back("--key-file=" + options_.certificate + ".key");
  }
  if (options_.askForCertificates) {
    words.push_back("--client-cert-auth");
    words.push_back("--trusted-ca-file=" + options_.certificate);
  }
  return words;
}

std::filesystem::path EtcdServer::logOf(size_t member) const {
  return folder_.path() / fmt::format("m{}.log", member);
}

bool EtcdServer::runs(Member& member) const {
  if (member.pid > 0 && waitpid(member.pid, nullptr, WNOHANG) == member.pid) member.pid = -1;
  return member.pid > 0;
}

void EtcdServer::start(size_t member) {
  members_[member].pid = spawn(command(member), logOf(member));
  if (members_[member].pid < 0) throw std::runtime_error("cannot start etcd");
}

void EtcdServer::kill(size_t member) {
  pid_t& pid = members_[member].pid;
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  pid = -1;
}

void EtcdServer::stop(size_t member) {
  ::kill(members_[member].pid, SIGSTOP);
}

void EtcdServer::goOn(size_t member) {
  ::kill(members_[member].pid, SIGCONT);
}

void EtcdServer::removeData(size_t member) {
  std::filesystem::remove_all(folder_.path() / fmt::format("m{}", member));
}

std::string EtcdServer::url(const std::string& rest) const {
  std::string all = options_.certificate.empty() ? "etcd://" : "etcds://";
  for (size_t i = 0; i < members_.size(); ++i) {
    all += fmt::format("{}127.0.0.1:{}", i == 0 ? "" : ",", members_[i].clientPort);
  }
  return all + rest;
}

std::string EtcdServer::urlOfItsOwn() const {
  static std::atomic<int> last{0};
  return url(fmt::format("/test-{}-{}", getpid(), ++last));
}

std::string EtcdServer::post(const std::string& path, const std::string& body,
                             size_t member) const {
  const int socket = dial(members_[member].clientPort);
  if (socket < 0) return "";
  const std::string request = fmt::format(
      "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
      path, body.size(), body);
  std::string answer;
  if (send(socket, request.data(), request.size(), MSG_NOSIGNAL) ==
      static_cast<ssize_t>(request.size())) {
    char bytes[4096];
    for (ssize_t got; (got = recv(socket, bytes, sizeof(bytes), 0)) > 0;) {
      answer.append(bytes, static_cast<size_t>(got));
    }
  }
  close(socket);
  return answer;
}

size_t EtcdServer::leader() const {
  const auto field = [](const std::string& text, const std::string& name) {
    const size_t begin = text.find("\"" + name + "\":\"");
    if (begin == std::string::npos) return std::string();
    const size_t from = begin + name.size() + 4;
    return text.substr(from, text.find('"', from) - from);
  };
  size_t found = members_.size();
  const bool any = comesTrue([&] {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].pid <= 0) continue;
      const std::string status = post("/v3/maintenance/status", "{}", i);
      const std::string id = field(status, "member_id");
      if (!id.empty() && id == field(status, "leader")) found = i;
    }
    return found < members_.size();
  });
  if (!any) throw std::runtime_error("etcd has no leader: " + contents(logOf(0)));
  return found;
}

}  // namespace hmc::test
