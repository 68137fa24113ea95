#include <hmc/node.h>

#include <cstring>

int main(int, char** argv) {
  auto node = hmc::Node::create().value();
  auto out = node.allocate("out", 1 << 20).value();
  auto peer = node.connect(argv[1]).value();
  auto inbox = peer.open("inbox").value();
  std::strcpy(static_cast<char*>(out.data()), "hello, memory");
  bool sent = inbox.put(out, 0, 0, 64).ok() &&  // visible over there when it returns
              peer.notify("look").ok();
  return sent ? 0 : 1;
}
