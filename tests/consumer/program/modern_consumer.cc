// The same of a C++17 program: two Nodes, and the library's lines in the program's own log.

#include <hmc/log.h>
#include <hmc/node.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

const char kText[] = "one-sided";

bool exchange(hmc::Node& listener, const std::string& address, hmc::Node& dialler) {
  const hmc::LocalRegion target = listener.allocate("target", 4096).value();
  const hmc::LocalRegion local = dialler.allocate("", 4096).value();
  std::memcpy(local.data(), kText, sizeof kText);
  const hmc::RemoteRegion remote = dialler.connect(address).value().open("target").value();
  return remote.put(local, 0, 100, sizeof kText).ok() &&
         std::strcmp(static_cast<const char*>(target.data()) + 100, kText) == 0;
}

}  // namespace

int main() {
  static std::atomic<int> lines{0};
  hmc::setLogger([](hmc::LogLevel, const std::string&) { ++lines; });
  hmc::setLogLevel(hmc::LogLevel::debug);
  bool arrived = false;
  {
    hmc::Node listener = hmc::Node::create({}).value();
    const std::string address = listener.listen("tcp://127.0.0.1:0").value();
    hmc::Node dialler = hmc::Node::create({}).value();
    arrived = exchange(listener, address, dialler);
  }  // which they tell each other, and log
  hmc::setLogger(nullptr);
  if (!arrived || lines == 0) return 1;
  std::puts("consumer works");
  return 0;
}
