#include <hmc/node.h>

#include <cstdio>

int main() {
  auto node = hmc::Node::create().value();
  auto inbox = node.allocate("inbox", 1 << 20).value();  // peers may put and get here
  std::printf("%s\n", node.listen("tcp://127.0.0.1:0").value().c_str());
  std::fflush(stdout);
  auto note = node.nextNote().value();  // arrives after the data
  std::printf("%s: %s\n", note.bytes.c_str(), static_cast<char*>(inbox.data()));
}
