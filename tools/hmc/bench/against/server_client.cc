#include "bench/against/server_client.h"

#include "bench/raw_socket.h"
#include "try.h"

namespace hmc::bench {

namespace {

// These programs word it differently when nothing listens on the port.
bool couldNotConnect(const Status& status) {
  return status.code() == Code::failed && status.message().find("onnect") != std::string::npos;
}

}  // namespace

Result<int> freePort(const std::string& host) {
  TOOL_ASSIGN(const RawSocketServer socket, RawSocketServer::listen(host));
  return socket.port();
}

Result<std::string> runServerAndClient(const Command& server, const Command& client,
                                       Deadline deadline) {
  auto serving = Program::start(server);
  if (!serving.ok()) return serving.status();
  // Its output may be buffered until it ends, so only a client can tell whether it listens.
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
