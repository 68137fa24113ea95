#include "base/cookie.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/random.h"

namespace hmc {

namespace {

constexpr size_t kCookieBytes = 32;  // of randomness, written as hexadecimal digits
constexpr size_t kShortest = 16;
constexpr size_t kLongest = 4096;

Status wayOut(const Status& status) {
  return Status(status.code(), status.message() +
                                   "; processes of one user know each other by it: set HMC_COOKIE "
                                   "to a file that only this user can read, or set HMC_SECRET");
}

bool ownedFolder(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid();
}

// Empty when the user has none.
std::string homeFolder() {
  if (const char* home = std::getenv("HOME"); home && ownedFolder(home)) return home;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> words(16384);
  if (getpwuid_r(geteuid(), &entry, words.data(), words.size(), &found) != 0 || !found) return "";
  return ownedFolder(entry.pw_dir) ? entry.pw_dir : "";
}

std::string fallbackFolder() {
  return fmt::format("/tmp/hmc-{}", geteuid());
}

// Ok when it is there afterwards, and nobody else can put files into it.
Status makeFolder(const std::string& path) {
  if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return errnoStatus("make " + path);
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0) return errnoStatus("look at " + path);
  if (S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() && (facts.st_mode & S_IWOTH) == 0)
    return Status();
  return error(Code::permissionDenied, "{} is no folder of uid {} that others cannot write to",
               path, geteuid());
}

// notFound when there is no such file.
Result<std::string> readCookie(const std::string& path) {
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && (errno == ENOENT || errno == ENOTDIR))
    return error(Code::notFound, "there is no cookie at {}", path);
  if (!file) return errnoStatus("read the cookie " + path);
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) return errnoStatus("look at the cookie " + path);
  if (!S_ISREG(facts.st_mode) || facts.st_uid != geteuid() || (facts.st_mode & 077) != 0) {
    return error(Code::permissionDenied,
                 "the cookie {} is not private: its owner is uid {} and its mode {:o}; it must be "
                 "a file of uid {} with mode 600 (chmod 600 {})",
                 path, facts.st_uid, facts.st_mode & 07777, geteuid(), path);
  }
  std::string words(kLongest, '\0');
  const ssize_t got = read(file.get(), words.data(), words.size());
  if (got < 0) return errnoStatus("read the cookie " + path);
  words.resize(static_cast<size_t>(got));
  while (!words.empty() && (words.back() == '\n' || words.back() == '\r')) words.pop_back();
  if (words.size() >= kShortest) return words;
  return error(Code::failed, "the cookie {} has {} characters, and {} is the least: remove it",
               path, words.size(), kShortest);
}

// The file appears with its content, or another process's has come first.
Status makeCookie(const std::string& path) {
  const std::string draft = fmt::format("{}.{}", path, hex(randomBytes(8)));
  Fd file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file) return errnoStatus("make the cookie " + path);
  const std::string words = hex(randomBytes(kCookieBytes)) + "\n";
  const bool written =
      write(file.get(), words.data(), words.size()) == static_cast<ssize_t>(words.size());
  Status status = written ? Status() : errnoStatus("write the cookie " + path);
  if (written && link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST)
    status = errnoStatus("make the cookie " + path);
  unlink(draft.c_str());
  return status;
}

Status makeIn(const std::string& parent, const std::vector<std::string>& folders) {
  std::string path = parent;
  for (const auto& folder : folders) {
    path += "/" + folder;
    HMC_TRY(makeFolder(path));
  }
  return makeCookie(path + "/cookie");
}

// One that is there counts, also when it is not as it should be.
bool isThere(const Result<std::string>& cookie) {
  return cookie.ok() || cookie.status().code() != Code::notFound;
}

Result<std::string> readOrMake() {
  if (const auto named = valueOf(variable::kCookie)) {
    auto cookie = readCookie(*named);
    if (isThere(cookie)) return cookie;
    HMC_TRY(makeCookie(*named));
    return readCookie(*named);
  }
  const std::string home = homeFolder();
  const std::string usual = home + "/.config/hmc/cookie";
  if (!home.empty()) {
    auto cookie = readCookie(usual);
    if (isThere(cookie)) return cookie;
    if (makeIn(home, {".config", "hmc"}).ok()) return readCookie(usual);
  }
  const std::string other = fallbackFolder() + "/cookie";
  auto cookie = readCookie(other);
  if (isThere(cookie)) return cookie;
  HMC_TRY(makeIn("/tmp", {fallbackFolder().substr(sizeof("/tmp"))}));
  return readCookie(other);
}

}  // namespace

Result<std::string> userCookie() {
  if (valueOf(variable::kCookie) == "none") return std::string();
  auto cookie = readOrMake();
  return cookie.ok() ? cookie : wayOut(cookie.status());
}

std::string cookiePath() {
  if (const auto named = valueOf(variable::kCookie)) return *named == "none" ? "" : *named;
  const std::string home = homeFolder();
  const std::string usual = home + "/.config/hmc/cookie";
  return !home.empty() && access(usual.c_str(), R_OK) == 0 ? usual : fallbackFolder() + "/cookie";
}

}  // namespace hmc
