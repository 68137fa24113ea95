#include "store/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "store/journal_records.h"

namespace hmc::store {

namespace {

constexpr std::chrono::seconds kSyncEvery{1};
// Below this nobody cares how long it is.
constexpr size_t kSmall = size_t{1} << 20;
// Written at once when it is written anew.
constexpr size_t kPart = size_t{4} << 20;

Status writeAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errnoStatus("writing the store's journal " + path);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return Status();
}

Result<Fd> openFile(const std::string& path, int flags) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd) return errnoStatus("opening " + path);
  return fd;
}

Result<Fd> lockFolder(const std::string& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) {
    return error(Code::invalidArgument, "the store's folder {} cannot be made: {}", folder,
                 problem.message());
  }
  HMC_ASSIGN(Fd lock, openFile(folder + "/lock", O_RDWR | O_CREAT));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return errnoStatus("locking " + folder);
  return error(Code::alreadyExists, "another store uses the folder {}: give each its own", folder);
}

}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(const std::string& folder, State& state,
                                               State::Time now) {
  HMC_ASSIGN(Fd lock, lockFolder(folder));
  std::unique_ptr<Journal> journal(new Journal(folder, state, std::move(lock)));
  HMC_TRY(journal->load(now));
  HMC_TRY(journal->rewrite());
  HMC_ASSIGN(journal->syncing_,
             startThread("hmc-store-sync", [made = journal.get()](const std::stop_token& stop) {
               made->sync(stop);
             }));
  state.recordTo(journal.get());
  return journal;
}

Journal::Journal(std::string folder, State& state, Fd lock)
    : folder_(std::move(folder)),
      path_(folder_ + "/journal"),
      state_(state),
      lock_(std::move(lock)) {}

Journal::~Journal() {
  state_.recordTo(nullptr);
  syncing_ = {};
  if (dirty_) (void)fdatasync(file_->get());
}

Status Journal::load(State::Time now) {
  std::ifstream in(path_, std::ios::binary);
  if (!in && !std::filesystem::exists(path_)) return Status();
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in) return error(Code::failed, "the store's journal {} cannot be read", path_);
  const auto whole = replay(bytes, state_, now);
  if (!whole.ok()) {
    return error(Code::failed,
                 "the store's journal {} is not used: {}; restore it from a copy, or move it away "
                 "to begin with an empty store",
                 path_, whole.status().message());
  }
  if (*whole < bytes.size()) {
    logWarn("the last record of the store's journal {} is incomplete: {} bytes are dropped", path_,
            bytes.size() - *whole);
  }
  return Status();
}

void Journal::set(std::string_view key, std::string_view value, uint64_t lease) {
  pending_ += recordOfSet(key, value, lease);
}
void Journal::removed(std::string_view key) {
  pending_ += recordOfRemoved(key);
}
void Journal::granted(uint64_t lease, std::chrono::milliseconds ttl) {
  pending_ += recordOfGranted(lease, ttl);
}
void Journal::ended(uint64_t lease) {
  pending_ += recordOfEnded(lease);
}

Status Journal::commit() {
  if (pending_.empty()) return Status();
  Status written;
  if (behind_ || size_ + pending_.size() > 2 * std::max(compact_, kSmall)) {
    written = rewrite();
  } else {
    written = append();
  }
  behind_ = !written.ok();
  pending_.clear();
  return written;
}

Status Journal::append() {
  HMC_TRY(writeAll(file_->get(), pending_, path_));
  size_ += pending_.size();
  std::lock_guard lock(mutex_);
  dirty_ = true;
  changed_.notify_all();
  return Status();
}

// Beside the old one, which it replaces when it is whole.
Status Journal::rewrite() {
  const std::string path = path_ + ".new";
  HMC_ASSIGN(Fd file, openFile(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND));
  pending_ = kJournalHeader;
  size_t size = 0;
  Status written;
  const auto write = [&] {
    if (written.ok()) written = writeAll(file.get(), pending_, path);
    size += pending_.size();
    pending_.clear();
  };
  state_.tellAll(*this, [&] {
    if (pending_.size() >= kPart) write();
  });
  write();
  HMC_TRY(written);
  if (fdatasync(file.get()) != 0) return errnoStatus("writing the store's journal " + path);
  if (::rename(path.c_str(), path_.c_str()) != 0) return errnoStatus("replacing " + path_);
  HMC_ASSIGN(const Fd folder, openFile(folder_, O_RDONLY | O_DIRECTORY));
  (void)fsync(folder.get());
  size_ = compact_ = size;
  std::lock_guard lock(mutex_);
  file_ = std::make_shared<const Fd>(std::move(file));
  dirty_ = false;
  return Status();
}

// On a thread of its own: a disk may take its time, and the store shall not.
void Journal::sync(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return dirty_; })) {
    dirty_ = false;
    const auto file = file_;
    lock.unlock();
    if (fdatasync(file->get()) != 0)
      logWarn("{}", errnoStatus("writing the store's journal " + path_).message());
    lock.lock();
    (void)changed_.wait_for(lock, stop, kSyncEvery, [] { return false; });
  }
}

}  // namespace hmc::store
