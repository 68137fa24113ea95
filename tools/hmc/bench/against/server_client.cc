#include "bench/against/server_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hmc::bench {

namespace {

// These programs say in many words that nobody answered at the port.
bool couldNotConnect(const Status& status) {
  return status.code() == Code::failed && status.message().find("onnect") != std::string::npos;
}

}  // namespace

Result<int> freePort() {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      fd >= 0 && bind(fd, generic, length) == 0 && getsockname(fd, generic, &length) == 0;
  const int why = errno;
  if (fd >= 0) close(fd);
  if (!found) return Status(Code::failed, std::string("find a port: ") + std::strerror(why));
  return ntohs(address.sin_port);
}

Result<std::string> runServerAndClient(const Command& server, const Command& client,
                                       Deadline deadline) {
  auto serving = Program::start(server);
  if (!serving.ok()) return serving.status();
  // Its output may sit in a buffer until it ends, so only a client can find out that it listens.
  for (;;) {
    auto answer = runProgram(client, deadline);
    if (answer.ok() || !couldNotConnect(answer.status()) || deadline.passed()) return answer;
    if (!(*serving)->running()) {
      auto why = (*serving)->finish(deadline);
      return why.ok() ? answer.status() : why.status().within("the server side");
    }
  }
}

}  // namespace hmc::bench
