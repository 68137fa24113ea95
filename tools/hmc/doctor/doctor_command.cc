#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "commands.h"
#include "doctor/checks.h"
#include "hmc/version.h"
#include "peer_options.h"

namespace hmc::tool {

namespace {

struct DoctorOptions {
  std::string address;
  double seconds = 5;
  bool json = false;
};

// Collects what the checks find and, for people, shows it as it comes.
class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void add(const char* title, const std::vector<Finding>& findings) {
    if (!json_) fmt::print("{}{}\n", all_.empty() ? "" : "\n", title);
    for (const auto& general : findings) {
      const Finding finding = forUser(general, privilege_);
      if (!json_) fmt::print("{}", toText(finding));
      all_.push_back(finding);
    }
    std::fflush(stdout);
  }
  int finish() const {
    if (json_) {
      fmt::print("{}\n", toJson(all_));
    } else {
      fmt::print("\n{}\n", healthy(all_) ? "The default path works."
                                         : "The default path does not work: see the lines above "
                                           "that begin with fail.");
    }
    return healthy(all_) ? 0 : 1;
  }

 private:
  const bool json_;
  const Privilege privilege_ = privilegeOfThisUser();
  std::vector<Finding> all_;
};

int runDoctor(const DoctorOptions& options) {
  Report report(options.json);
  report.add("This host", checkHost());
  report.add("HMC on this host", checkLoopback());
  if (!options.address.empty()) {
    const auto timeout = std::chrono::milliseconds(static_cast<int64_t>(options.seconds * 1000));
    report.add("The peer",
               checkPeer(options.address, optionsFromEnvironment("hmc doctor"), timeout));
  }
  return report.finish();
}

}  // namespace

void addDoctor(CLI::App& app, int& exitStatus) {
  auto options = std::make_shared<DoctorOptions>();
  auto* doctor = app.add_subcommand(
      "doctor",
      "Checks what works on this host, and to a peer, and prints the fix for what does not.");
  doctor
      ->add_option("address", options->address,
                   "A peer to look at: host:port, tcp://host:port or unix:///path")
      ->type_name("ADDRESS")
      ->check(anAddress());
  addSeconds(*doctor, "--timeout", options->seconds, 0.1, 600,
             "Seconds that each step may take with the peer");
  doctor->add_flag("--json", options->json, "Print the findings as JSON");
  doctor->footer(
      "The exit status is 0 only when the default path works; warnings do not change it.\n"
      "The peer's secret is taken from HMC_SECRET.\n\n"
      "Examples:\n"
      "  hmc doctor                    # this host alone\n"
      "  hmc doctor worker-3:5001      # and the Node that listens there\n"
      "  hmc doctor --json | jq '.findings[] | select(.level != \"ok\")'");
  doctor->callback([options, &exitStatus] {
    keepLogToErrors();
    exitStatus = runDoctor(*options);
  });
}

}  // namespace hmc::tool
