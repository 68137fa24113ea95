#include "contract/transport_target.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "fakes/link_options.h"
#include "fakes/unseen_order.h"

extern char** environ;

namespace hmc::contract {

namespace {

std::string fromHex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// Reads one line into `line`, keeping what follows it in `unread`; false at the deadline or the
// end.
bool readLineFrom(int fd, std::string& unread, std::string& line, Deadline deadline) {
  size_t end;
  while ((end = unread.find('\n')) == std::string::npos) {
    pollfd waiting{fd, POLLIN, 0};
    if (deadline.passed() || poll(&waiting, 1, deadline.leftMs()) < 0) return false;
    if (waiting.revents == 0) continue;
    char bytes[4096];
    ssize_t got = read(fd, bytes, sizeof(bytes));
    if (got <= 0) return false;
    unread.append(bytes, static_cast<size_t>(got));
  }
  line = unread.substr(0, end);
  unread.erase(0, end + 1);
  return true;
}

Status writeLine(int fd, const std::string& line) {
  const std::string bytes = line + "\n";
  if (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
    return errnoStatus("writing to the other process");
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<TargetProcess>> TargetProcess::start(const Options& options) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return errnoStatus("socketpair");
  }
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const std::string arguments[] = {"transport_target",
                                   "--target",
                                   options.subject,
                                   std::to_string(options.size),
                                   std::to_string(options.lease.count()),
                                   options.initiator ? "initiator" : "acceptor"};
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), 0);
  pid_t pid = 0;
  int failed = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return errnoStatus("starting the target process", failed);
  theirs.reset();

  std::unique_ptr<TargetProcess> target(new TargetProcess(pid, std::move(ours)));
  HMC_ASSIGN(std::string address, target->readLine());
  HMC_ASSIGN(std::string key, target->readLine());
  target->address_ = fromHex(address);
  target->key_ = fromHex(key);
  return target;
}

TargetProcess::~TargetProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void TargetProcess::send(int signal) {
  kill(pid_, signal);
  if (signal == SIGSTOP) {
    // waitpid reports the stop without reaping.
    int status = 0;
    while (waitpid(pid_, &status, WUNTRACED) == pid_ && !WIFSTOPPED(status)) {
    }
  }
}

Result<std::string> TargetProcess::readLine() {
  std::string line;
  if (!readLineFrom(socket_.get(), unread_, line, kPatience)) {
    return error(Code::disconnected, "the target process answers nothing");
  }
  return line;
}

Result<std::string> TargetProcess::ask(const std::string& command) {
  HMC_TRY(writeLine(socket_.get(), command));
  return readLine();
}

namespace {

// What the target process has.
struct Target {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Registration> registration;
  std::shared_ptr<Lease> lease;
  std::unique_ptr<Link> link;
};

Result<Target> makeTarget(const Subject& subject, size_t size, std::chrono::milliseconds lease,
                          bool initiator) {
  Target target;
  HMC_ASSIGN(target.transport, subject.candidate.make());
  HMC_ASSIGN(target.memory, subject.memory.allocate(size));
  HMC_ASSIGN(target.registration,
             target.transport->registerRegion(target.memory->region, Access::readWrite));
  const LinkOptions options = test::linkOptions(initiator, lease);
  target.lease = options.lease;
  HMC_ASSIGN(target.link, target.transport->openLink(options));
  return target;
}

std::string obey(Target& target, const std::string& command) {
  const std::string word = command.substr(0, command.find(' '));
  const std::string rest = command.size() > word.size() ? command.substr(word.size() + 1) : "";
  if (word == "connect") {
    Status status = target.link->connect(fromHex(rest));
    return status.ok() ? "ok" : status.toString();
  }
  // What orders our own look at the memory after the bytes that arrived is the origin's word.
  test::Unseen look;
  if (word == "fill") {
    fill(target.memory->region, std::stoull(rest));
    return "ok";
  }
  if (word == "check") {
    std::string difference = differs(target.memory->region, std::stoull(rest));
    return difference.empty() ? "ok" : difference;
  }
  return "unknown command";
}

void obeyUntilQuit(Target& target) {
  std::string unread;
  std::string line;
  while (true) {
    target.lease->hear();
    target.lease->confirm(Lease::Clock::now());
    pollfd waiting{0, POLLIN, 0};
    if (unread.empty() && poll(&waiting, 1, 20) == 0) continue;
    if (!readLineFrom(0, unread, line, kPatience) || line == "quit") return;
    if (!writeLine(0, obey(target, line)).ok()) return;
  }
}

}  // namespace

int runTarget(int argc, char** argv) {
  if (argc != 6) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const Subject& subject : subjects()) {
    if (subject.name() != argv[2]) continue;
    auto target =
        makeTarget(subject, std::stoull(argv[3]), std::chrono::milliseconds(std::stoll(argv[4])),
                   std::strcmp(argv[5], "initiator") == 0);
    if (!target.ok()) {
      std::fprintf(stderr, "target process: %s\n", target.status().toString().c_str());
      return 1;
    }
    if (!writeLine(0, hex(target->link->address())).ok()) return 1;
    if (!writeLine(0, hex(target->registration->key())).ok()) return 1;
    obeyUntilQuit(*target);
    return 0;
  }
  return 2;
}

}  // namespace hmc::contract
