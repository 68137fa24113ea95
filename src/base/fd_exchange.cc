#include "base/fd_exchange.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/codec.h"
#include "base/error.h"
#include "base/proof.h"
#include "base/random.h"
#include "base/text.h"

namespace hmc {

namespace {

constexpr size_t kTokenSize = 16;
// How long a client may take to say which descriptor it wants; the others wait as long.
constexpr std::chrono::seconds kPatience{2};
// Out of descriptors: try again after this.
constexpr std::chrono::milliseconds kRetry{50};

socklen_t abstractAddress(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

bool waitFor(int fd, short events, Deadline deadline) {
  pollfd entry{fd, events, 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, deadline.leftMs());
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// A request is a token, a challenge, a signature of both and the words, and the words. A reply is a
// signature of the challenge and the words, and the words: a code, and bytes or a sentence.
constexpr size_t kChallengeSize = 16;
constexpr size_t kRequestHead = kTokenSize + kChallengeSize;

std::string requestText(std::string_view head, std::string_view words) {
  return "request" + std::string(head) + std::string(words);
}

std::string replyText(std::string_view head, std::string_view words) {
  return "reply" + std::string(head) + std::string(words);
}

Result<Fd> dialAbstract(const std::string& name, Deadline deadline) {
  Fd dialled(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!dialled) return errnoStatus("create a unix socket");
  sockaddr_un address;
  const socklen_t size = abstractAddress(name, address);
  // connect() waits while the backlog is full, as it is when the peer is stopped.
  const timeval patience{deadline.leftMs() / 1000, deadline.leftMs() % 1000 * 1000 + 1};
  setsockopt(dialled.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  if (connect(dialled.get(), reinterpret_cast<sockaddr*>(&address), size) == 0) return dialled;
  if (errno == EAGAIN) {
    return error(Code::deadlineExceeded, "the descriptor exchange {} of the peer is too busy",
                 name);
  }
  return errnoStatus("reach the descriptor exchange " + name + " of the peer");
}

}  // namespace

Result<std::unique_ptr<FdExchange>> FdExchange::create() {
  std::string name = "hmc-" + hex(randomBytes(8));
  Fd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return errnoStatus("create a unix socket");
  sockaddr_un address;
  socklen_t size = abstractAddress(name, address);
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    return errnoStatus("listen on the abstract unix socket " + name);
  }
  HMC_ASSIGN(auto loop, Loop::create("hmc-fds"));
  std::unique_ptr<FdExchange> exchange(new FdExchange(name, std::move(listener), std::move(loop)));
  Status status;
  exchange->loop_->run([raw = exchange.get(), &status] {
    auto watch =
        raw->loop_->watch(raw->listener_.get(), EPOLLIN, [raw](uint32_t) { raw->accept(); });
    status = watch.status();
    if (status.ok()) raw->watch_ = *std::move(watch);
  });
  if (!status.ok()) return status;
  return exchange;
}

FdExchange::FdExchange(std::string name, Fd listener, std::shared_ptr<Loop> loop)
    : name_(std::move(name)),
      listener_(std::move(listener)),
      loop_(std::move(loop)),
      retry_(*loop_) {}

std::string FdExchange::serve(Bond bond, Handler handler) {
  std::string token = randomBytes(kTokenSize);
  std::lock_guard lock(mutex_);
  served_.emplace(token, std::make_shared<Served>(Served{std::move(bond), std::move(handler)}));
  return token;
}

Result<std::string> FdExchange::offer(int fd, Bond bond) {
  HMC_ASSIGN(Fd copy, duplicate(fd));
  auto kept = std::make_shared<std::vector<Fd>>();
  kept->push_back(std::move(copy));
  return serve(std::move(bond), [kept](const Parcel&) { return copyOf("", *kept); });
}

void FdExchange::withdraw(const std::string& token) {
  {
    std::lock_guard lock(mutex_);
    served_.erase(token);
  }
  if (loop_->onThread()) return;  // from a handler
  std::lock_guard done(serving_);
}

void FdExchange::accept() {
  Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (client) return answer(client.get());
  watch_->ignore(EPOLLIN);
  retry_.after(kRetry, [this] { watch_->want(EPOLLIN); });
}

void FdExchange::answer(int client) {
  if (!checkSameUser(client).ok() || !waitFor(client, POLLIN, kPatience)) return;
  auto request = receiveParcel(client);
  if (!request.ok()) return;
  (void)sendParcel(client, reply(*std::move(request)));
}

Parcel FdExchange::reply(Parcel request) {
  if (request.bytes.size() < kRequestHead + kProofSize) return {};
  const std::string head = request.bytes.substr(0, kRequestHead);
  const std::string signature = request.bytes.substr(kRequestHead, kProofSize);
  request.bytes.erase(0, kRequestHead + kProofSize);
  std::lock_guard serving(serving_);
  std::shared_ptr<const Served> served;
  {
    std::lock_guard lock(mutex_);
    auto found = served_.find(head.substr(0, kTokenSize));
    if (found != served_.end()) served = found->second;
  }
  if (!served || !served->bond.signedByPeer(requestText(head, request.bytes), signature)) return {};
  auto made = served->handler(std::move(request));
  Writer words;
  words.u8(static_cast<uint8_t>(made.status().code()));
  words.raw(made.ok() ? made->bytes : made.status().message());
  Parcel parcel;
  parcel.bytes = served->bond.sign(replyText(head, words.bytes())) + words.bytes();
  if (made.ok()) parcel.fds = std::move(made->fds);
  return parcel;
}

Result<FdExchange::Answer> FdExchange::ask(const std::string& name, const std::string& token,
                                           const Bond& bond, const Parcel& request,
                                           Deadline deadline) {
  if (name.size() + 1 >= sizeof(sockaddr_un::sun_path) || token.size() != kTokenSize)
    return error(Code::invalidArgument, "malformed descriptor offer from a peer");
  HMC_ASSIGN(const Fd dialled, dialAbstract(name, deadline));
  // Before it hears of the token, and before a descriptor of its choice is used.
  auto from = sameUserProcess(dialled.get());
  if (!from.ok()) return from.status().within("the descriptor exchange " + name);
  const std::string head = token + randomBytes(kChallengeSize);
  HMC_ASSIGN(Parcel whole, copyOf(head + bond.sign(requestText(head, request.bytes)), request.fds));
  whole.bytes += request.bytes;
  HMC_TRY(sendParcel(dialled.get(), whole));
  if (!waitFor(dialled.get(), POLLIN, deadline)) {
    return error(Code::deadlineExceeded, "the descriptor exchange {} of the peer did not answer",
                 name);
  }
  HMC_ASSIGN(Parcel answer, receiveParcel(dialled.get()));
  const std::string words =
      answer.bytes.size() > kProofSize ? answer.bytes.substr(kProofSize) : std::string();
  if (words.empty() ||
      !bond.signedByPeer(replyText(head, words), answer.bytes.substr(0, kProofSize))) {
    return error(
        Code::notFound,
        "process {}, which listens at the descriptor exchange {}, is not the peer: it does "
        "not know this connection, or has closed its end",
        from->pid, name);
  }
  const auto code = static_cast<uint8_t>(words[0]);
  if (code != 0) {
    constexpr auto kLast = static_cast<uint8_t>(Code::failed);
    return Status(static_cast<Code>(std::min(code, kLast)), printable(words.substr(1)));
  }
  answer.bytes = words.substr(1);
  return Answer{std::move(answer), *std::move(from)};
}

Result<Fd> FdExchange::fetch(const std::string& name, const std::string& token, const Bond& bond,
                             Deadline deadline) {
  HMC_ASSIGN(Answer answer, ask(name, token, bond, {}, deadline));
  if (answer.parcel.fds.size() == 1) return std::move(answer.parcel.fds[0]);
  return error(Code::invalidArgument, "the peer sent {} descriptors where one was asked for",
               answer.parcel.fds.size());
}

bool FdExchange::gone(const std::string& name) {
  sockaddr_un address;
  if (name.size() >= sizeof(address.sun_path)) return true;
  Fd dialled(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!dialled) return false;
  socklen_t size = abstractAddress(name, address);
  return connect(dialled.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace hmc
