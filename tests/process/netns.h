#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace hmc::test {

// Two network namespaces joined by a virtual cable. Needs root; whyNot() says what is missing.
class Cable {
 public:
  Cable() {
    if (geteuid() != 0) {
      whyNot_ = "network namespaces need root";
    } else if (!run("ip netns add " + left_) || !run("ip netns add " + right_)) {
      whyNot_ = "this machine does not permit network namespaces (ip netns add failed)";
    } else if (!plug()) {
      whyNot_ = "this machine does not permit virtual cables between network namespaces";
    }
  }
  ~Cable() {
    run("ip netns del " + left_);
    run("ip netns del " + right_);
  }
  Cable(const Cable&) = delete;
  Cable& operator=(const Cable&) = delete;

  const std::string& whyNot() const { return whyNot_; }
  const std::string& left() const { return left_; }
  const std::string& right() const { return right_; }
  static std::string leftAddress() { return "10.213.7.1"; }
  static std::string rightAddress() { return "10.213.7.2"; }

  bool cut() { return run(in(left_) + "ip link set veth0 down"); }
  bool mend() { return run(in(left_) + "ip link set veth0 up"); }

 private:
  static bool run(const std::string& command) {
    int status = std::system((command + " >/dev/null 2>&1").c_str());  // NOLINT(cert-env33-c)
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  static std::string in(const std::string& space) { return "ip netns exec " + space + " "; }

  bool plug() {
    return run(in(left_) + "ip link add veth0 type veth peer name veth0 netns " + right_) &&
           run(in(left_) + "ip addr add " + leftAddress() + "/24 dev veth0") &&
           run(in(right_) + "ip addr add " + rightAddress() + "/24 dev veth0") &&
           run(in(left_) + "ip link set veth0 up") && run(in(right_) + "ip link set veth0 up") &&
           run(in(left_) + "ip link set lo up") && run(in(right_) + "ip link set lo up");
  }

  const std::string left_ = "hmc-left-" + std::to_string(getpid());
  const std::string right_ = "hmc-right-" + std::to_string(getpid());
  std::string whyNot_;
};

}  // namespace hmc::test
