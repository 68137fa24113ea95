#include "store/etcd/gateway.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "store/back_off.h"

namespace hmc::store::etcd {

namespace {

constexpr const char* kAuthenticate = "/v3/auth/authenticate";
constexpr std::chrono::seconds kHurry{1};
constexpr size_t kBytesPerMs = 512;

Status tooLarge() {
  return error(Code::failed, "an answer of etcd has more than {} bytes", kLargestAnswer);
}

Status closed() {
  return error(Code::cancelled, "the store was closed");
}

// What another attempt does not mend.
bool isFinal(const Status& problem) {
  return problem.code() == Code::permissionDenied || problem.code() == Code::failed;
}

// Where an answer is put together, and a thread that waits for it.
struct Waiting {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Ended> how;
  std::string body;
};

// The lines of a stream.
struct Lines {
  std::string pending;
  Status problem;
};

Status refusalOf(const WatchAnswer& answer) {
  if (!answer.cancelled || answer.compacted) return Status();
  const bool forbidden = answer.reason.find("permission denied") != std::string::npos;
  return error(forbidden ? Code::permissionDenied : Code::disconnected, "etcd ended a watch: {}",
               answer.reason);
}

// True while all is well.
bool feed(Lines& lines, std::string_view bytes, const std::function<bool(WatchAnswer)>& answered) {
  // A line may be many megabytes and comes in small pieces: only the new one can have its end.
  size_t searched = lines.pending.size();
  lines.pending.append(bytes);
  size_t begin = 0;
  for (;;) {
    const size_t end = lines.pending.find('\n', searched);
    if (end == std::string::npos) break;
    auto answer = readWatch(std::string_view(lines.pending).substr(begin, end - begin));
    lines.problem = answer.ok() ? refusalOf(*answer) : answer.status();
    if (!lines.problem.ok() || !answered(*std::move(answer))) return false;
    begin = searched = end + 1;
  }
  lines.pending.erase(0, begin);
  if (lines.pending.size() > kLargestAnswer) lines.problem = tooLarge();
  return lines.problem.ok();
}

}  // namespace

Result<std::unique_ptr<Gateway>> Gateway::open(const std::string& url, const std::string& password,
                                               Deadline deadline) {
  HMC_ASSIGN(Address address, Address::parse(url));
  if (!address.user.empty() && password.empty()) {
    return error(Code::invalidArgument,
                 "the store {} has a user and no password: set HMC_ETCD_PASSWORD, or the secret of "
                 "the options",
                 url);
  }
  std::unique_ptr<Gateway> gateway(new Gateway(url, std::move(address), password));
  HMC_ASSIGN(gateway->http_, Http::create(gateway->address_));
  // So that not all clients ask the same member.
  gateway->index_ = randomU64() % gateway->address_.members.size();
  if (!gateway->address_.user.empty()) HMC_TRY(gateway->authenticate(deadline));
  auto answer =
      gateway->call("/v3/kv/range", pingRequest(gateway->prefix()), Repeat::yes, deadline);
  if (!answer.ok()) return answer.status();
  HMC_TRY(readRange(*answer).status());
  return gateway;
}

void Gateway::close() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  if (http_) http_->close();
}

bool Gateway::ending() const {
  std::lock_guard lock(mutex_);
  return ending_;
}

bool Gateway::pause(Deadline until) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until.at(), [this] { return ending_; });
  return ending_;
}

Gateway::Member Gateway::member() const {
  std::lock_guard lock(mutex_);
  return {index_, breaks_, token_};
}

void Gateway::leave(const Member& member) {
  std::lock_guard lock(mutex_);
  // Somebody else may have met the same.
  if (member.breaks != breaks_) return;
  ++breaks_;
  index_ = (index_ + 1) % address_.members.size();
  inReach_ = false;
}

uint64_t Gateway::breaks() const {
  std::lock_guard lock(mutex_);
  return breaks_;
}

bool Gateway::inReach() const {
  std::lock_guard lock(mutex_);
  return inReach_;
}

void Gateway::setInReach() {
  std::lock_guard lock(mutex_);
  inReach_ = true;
}

std::string Gateway::urlOf(const Member& member, const char* path) const {
  return address_.members[member.index] + path;
}

Status Gateway::outOfReach(const Status& why) const {
  return error(Code::deadlineExceeded,
               "no answer before the deadline: the store {} is out of reach: {}", url_,
               why.message());
}

Gateway::Answer Gateway::ask(const Member& member, const char* path, const std::string& body,
                             Deadline deadline) {
  auto waiting = std::make_shared<Waiting>();
  http_->start({
      .url = urlOf(member, path),
      .token = member.token,
      .body = body,
      .deadline = deadline,
      .receive =
          [waiting](std::string_view bytes) {
            waiting->body.append(bytes);
            return waiting->body.size() <= kLargestAnswer;
          },
      .ended =
          [waiting](const Ended& how) {
            std::lock_guard lock(waiting->mutex);
            waiting->how = how;
            waiting->changed.notify_all();
          },
  });
  std::unique_lock lock(waiting->mutex);
  waiting->changed.wait(lock, [&] { return waiting->how.has_value(); });
  if (waiting->body.size() > kLargestAnswer) waiting->how->status = tooLarge();
  return {*waiting->how, std::move(waiting->body)};
}

Result<std::string> Gateway::call(const char* path, const std::string& body, Repeat repeat,
                                  Deadline deadline, std::chrono::milliseconds attempt) {
  if (fork_.inChild()) return ForkGuard::refusal();
  BackOff backOff;
  if (repeat == Repeat::no) attempt = kOnlyAttempt;
  // What is large takes etcd longer: it writes all of it to its log.
  attempt += std::chrono::milliseconds(body.size() / kBytesPerMs);
  Status reason;
  bool mayRenew = !address_.user.empty() && std::string_view(path) != kAuthenticate;
  for (size_t tries = 1;; ++tries) {
    const Member at = member();
    const auto begin = Deadline::Clock::now();
    Answer answer = ask(at, path, body, earlier(deadline, attempt));
    if (ending()) return closed();
    Status why = answer.how.status;
    bool harmless = !answer.how.sent;
    if (why.ok()) {
      setInReach();
      if (answer.how.code == 200) return std::move(answer.body);
      const Refusal refusal = readRefusal(answer.how.code, answer.body);
      if (refusal.asksForToken() && std::exchange(mayRenew, false)) {
        HMC_TRY(authenticate(deadline));
        continue;
      }
      why = refusal.status();
      if (!refusal.isPassing()) return why;
      harmless = refusal.isBeforeAnythingWasDone();
    } else if (isFinal(why)) {
      return why;
    }
    // A caller in a hurry has not found out anything about the member.
    const bool hurried = deadline.passed() && Deadline::Clock::now() - begin < kHurry;
    if (!hurried) leave(at);
    // And what it says is less than what was found out before.
    if (!hurried || reason.ok()) reason = why;
    if (deadline.passed()) return outOfReach(reason);
    if (repeat == Repeat::no && !harmless) {
      return error(Code::disconnected, "the store {} went before it answered: {}", url_,
                   why.message());
    }
    attempt *= 2;
    const bool all = tries % address_.members.size() == 0;
    if (all && pause(earlier(deadline, backOff.next()))) return closed();
    if (deadline.passed()) return outOfReach(reason);
  }
}

void Gateway::post(const char* path, const std::string& body, Deadline deadline,
                   std::function<void()> ended) {
  const Member at = member();
  http_->start({
      .url = urlOf(at, path),
      .token = at.token,
      .body = body,
      .deadline = deadline,
      .receive = [](std::string_view) { return true; },
      .ended = [ended = std::move(ended)](const Ended&) { ended(); },
  });
}

uint64_t Gateway::watch(const Member& member, const Range& range, int64_t revision,
                        Deadline deadline, std::function<bool(WatchAnswer)> answered,
                        std::function<void(const Status&)> ended) {
  auto lines = std::make_shared<Lines>();
  return http_->start({
      .url = urlOf(member, "/v3/watch"),
      .token = member.token,
      .body = watchRequest(range, revision),
      .deadline = deadline,
      .receive = [lines, answered = std::move(answered)](
                     std::string_view bytes) { return feed(*lines, bytes, answered); },
      .ended =
          [lines, ended = std::move(ended)](const Ended& how) {
            if (!lines->problem.ok()) return ended(lines->problem);
            if (!how.status.ok()) return ended(how.status);
            if (how.code != 200) return ended(readRefusal(how.code, lines->pending).status());
            ended(error(Code::disconnected, "etcd ended a watch"));
          },
  });
}

Status Gateway::authenticate(Deadline deadline) {
  {
    std::lock_guard lock(mutex_);
    token_.clear();
  }
  const std::string request = authenticateRequest(address_.user, password_);
  const auto answer = call(kAuthenticate, request, Repeat::yes, deadline);
  if (answer.status().code() == Code::alreadyExists) {
    return error(Code::invalidArgument,
                 "the store {} has a user, and this etcd asks nobody for a password: enable its "
                 "authentication, or leave the user out",
                 url_);
  }
  if (!answer.ok()) return answer.status();
  HMC_ASSIGN(std::string token, readToken(*answer));
  std::lock_guard lock(mutex_);
  token_ = std::move(token);
  return Status();
}

}  // namespace hmc::store::etcd
