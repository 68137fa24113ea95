// What somebody else's C++14 program sees of an installed libhmc.

#include <hmc/status.h>

#include <cstdio>

int main() {
  hmc::Status status(hmc::Code::outOfRange, "put of 9 bytes into 8");
  if (status.ok() || status.toString().find("put of 9 bytes into 8") == std::string::npos) {
    std::fprintf(stderr, "Status lost its sentence: %s\n", status.toString().c_str());
    return 1;
  }
  std::printf("consumer works: %s\n", hmc::status_to_string(hmc::status_t::SUCCESS));
  return 0;
}
