// The target of the tests of fences: does what each line on standard input says and answers with a
// line on standard output. Ends with its input, or with the process that started it.

#include <sys/prctl.h>

#include <csignal>
#include <iostream>

#include "target_program.h"

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  hmc::test::TargetProgram program;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << program.obey(line) << std::endl;
  }
}
