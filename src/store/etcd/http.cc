#include "store/etcd/http.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/thread.h"

namespace hmc::store::etcd {

namespace {

// A member that is not there must not use up the time of its neighbours.
constexpr long kConnectMs = 3000;
constexpr int kLongestPollMs = 60000;

Ended cancelled() {
  return {.status = error(Code::cancelled, "the request to etcd was cancelled")};
}

Code codeOf(CURLcode problem) {
  switch (problem) {
    // Another attempt meets the same certificates.
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Code::permissionDenied;
    case CURLE_FILESIZE_EXCEEDED:
      return Code::failed;
    case CURLE_WRITE_ERROR:
      return Code::cancelled;
    default:
      return Code::disconnected;
  }
}

}  // namespace

// One exchange as libcurl sees it.
class Http::Transfer {
 public:
  Transfer(const Library& library, const Address& address, uint64_t id, Exchange exchange)
      : library_(library),
        id_(id),
        exchange_(std::move(exchange)),
        easy_(library.curl_easy_init()) {
    if (easy_) prepare(address);
  }
  ~Transfer() {
    if (easy_) library_.curl_easy_cleanup(easy_);
    library_.curl_slist_free_all(headers_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  CURL* easy() const { return easy_; }
  uint64_t id() const { return id_; }
  const Exchange& exchange() const { return exchange_; }

  Ended ended(CURLcode result) const {
    Ended how;
    how.sent = sent_ > 0;
    library_.curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &how.code);
    if (result != CURLE_OK) {
      how.status = error(codeOf(result), "{}: {}{}", exchange_.url,
                         *problem_ ? problem_ : library_.curl_easy_strerror(result),
                         hungUp(result) ? "; for TLS write etcds://" : "");
    }
    return how;
  }

 private:
  // What an etcd with TLS does to those that have none.
  static bool hungUp(CURLcode result) {
    return result == CURLE_GOT_NOTHING || result == CURLE_RECV_ERROR;
  }
  template <class Value>
  void set(CURLoption option, Value value) {
    library_.curl_easy_setopt(easy_, option, value);
  }
  void header(const std::string& line) {
    if (curl_slist* longer = library_.curl_slist_append(headers_, line.c_str())) headers_ = longer;
  }
  void prepare(const Address& address);

  // By a function, which libcurl cannot begin again: given the bytes themselves it would repeat a
  // request on a new connection when an old one turns out to be dead.
  static size_t read(char* to, size_t size, size_t count, void* self) {
    auto* transfer = static_cast<Transfer*>(self);
    const std::string& body = transfer->exchange_.body;
    const size_t part = body.copy(to, size * count, transfer->sent_);
    transfer->sent_ += part;
    return part;
  }
  static size_t write(char* bytes, size_t size, size_t count, void* self) {
    auto* transfer = static_cast<Transfer*>(self);
    return transfer->exchange_.receive({bytes, size * count}) ? size * count : 0;
  }

  const Library& library_;
  const uint64_t id_;
  const Exchange exchange_;
  CURL* const easy_;
  curl_slist* headers_ = nullptr;
  size_t sent_ = 0;
  char problem_[CURL_ERROR_SIZE] = "";
};

void Http::Transfer::prepare(const Address& address) {
  set(CURLOPT_URL, exchange_.url.c_str());
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_ERRORBUFFER, problem_);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_NOPROGRESS, 1L);
  // A store is inside the cluster: what the environment says about the outside does not count.
  set(CURLOPT_PROXY, "");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  if (exchange_.deadline.at() != Deadline::never().at()) {
    // 0 would be for ever.
    set(CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(exchange_.deadline.leftMs())));
  }

  set(CURLOPT_POST, 1L);
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(exchange_.body.size()));
  set(CURLOPT_READFUNCTION, &Transfer::read);
  set(CURLOPT_READDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Transfer::write);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(kLargestAnswer));
  header("Content-Type: application/json");
  header("Expect:");  // do not ask before sending a large body
  // A member without a leader says so instead of waiting for one.
  header("Grpc-Metadata-hasleader: true");
  if (!exchange_.token.empty()) header("Authorization: " + exchange_.token);
  set(CURLOPT_HTTPHEADER, headers_);

  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  if (!address.ca.empty()) set(CURLOPT_CAINFO, address.ca.c_str());
  if (!address.cert.empty()) {
    set(CURLOPT_SSLCERT, address.cert.c_str());
    set(CURLOPT_SSLKEY, address.key.c_str());
  }
}

Http::Http(std::shared_ptr<const Library> library, const Address& address)
    : library_(std::move(library)),
      address_(address),
      multi_(library_->curl_multi_init(), Free{library_.get()}) {}

Result<std::unique_ptr<Http>> Http::create(const Address& address) {
  HMC_ASSIGN(auto library, Library::load());
  std::unique_ptr<Http> http(new Http(std::move(library), address));
  if (!http->multi_) return error(Code::exhausted, "libcurl has no memory for its connections");
  HMC_ASSIGN(http->thread_,
             startThread("hmc-etcd", [at = http.get()](std::stop_token) { at->serve(); }));
  return http;
}

Http::~Http() {
  close();
}

void Http::close() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  library_->curl_multi_wakeup(multi_.get());
  thread_.join();
}

uint64_t Http::start(Exchange exchange) {
  std::unique_lock lock(mutex_);
  const uint64_t id = ++lastId_;
  if (ended_) {
    lock.unlock();
    exchange.ended(cancelled());
    return id;
  }
  toStart_.emplace_back(id, std::move(exchange));
  lock.unlock();
  library_->curl_multi_wakeup(multi_.get());
  return id;
}

void Http::cancel(uint64_t id) {
  {
    std::lock_guard lock(mutex_);
    toCancel_.push_back(id);
  }
  library_->curl_multi_wakeup(multi_.get());
}

bool Http::takeWishes() {
  std::vector<std::pair<uint64_t, Exchange>> toStart;
  std::vector<uint64_t> toCancel;
  bool last = false;
  {
    std::lock_guard lock(mutex_);
    toStart.swap(toStart_);
    toCancel.swap(toCancel_);
    last = ended_ = ending_;
  }
  for (auto& [id, exchange] : toStart) begin(id, std::move(exchange));
  for (const uint64_t id : toCancel) end(id, cancelled());
  return !last;
}

void Http::begin(uint64_t id, Exchange exchange) {
  auto transfer = std::make_unique<Transfer>(*library_, address_, id, std::move(exchange));
  Transfer& added = *transfer;
  transfers_.emplace(id, std::move(transfer));
  if (!added.easy() || library_->curl_multi_add_handle(multi_.get(), added.easy()) != CURLM_OK) {
    end(id, {.status = error(Code::exhausted, "libcurl has no memory for a request")});
  }
}

void Http::end(uint64_t id, const Ended& how) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  const std::unique_ptr<Transfer> transfer = std::move(found->second);
  transfers_.erase(found);
  if (transfer->easy()) library_->curl_multi_remove_handle(multi_.get(), transfer->easy());
  transfer->exchange().ended(how);
}

void Http::reap() {
  int left = 0;
  while (const CURLMsg* message = library_->curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    void* self = nullptr;
    library_->curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
    const auto* transfer = static_cast<const Transfer*>(self);
    const Ended how = transfer->ended(message->data.result);
    end(transfer->id(), how);
  }
}

void Http::serve() {
  while (takeWishes()) {
    int running = 0;
    library_->curl_multi_perform(multi_.get(), &running);
    reap();
    library_->curl_multi_poll(multi_.get(), nullptr, 0, kLongestPollMs, nullptr);
  }
  while (!transfers_.empty()) end(transfers_.begin()->first, cancelled());
}

}  // namespace hmc::store::etcd
