#include "capi/tls_settings.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "base/error.h"

namespace hmc::capi {

namespace {

using Path = std::filesystem::path;

// What all three forms say, by MemFabric's names of it.
struct Named {
  Path top;
  std::string tlsCaPath;
  std::string tlsCaFile;
  std::string tlsCert;
  std::string tlsPk;
  std::string tlsPkPwd;
  std::string tlsCrlPath;
  std::string tlsCrlFile;
};

std::string text(const char* given) {
  return given ? given : "";
}
template <size_t Size>
std::string text(const char (&given)[Size]) {
  return {given, strnlen(given, Size)};
}

std::string_view trimmed(std::string_view words) {
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = words.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return words.substr(begin, words.find_last_not_of(kSpace) + 1 - begin);
}

// Calls body(part) for the parts of a list that are not empty.
template <class Body>
Status forEach(std::string_view list, char separator, Body body) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(separator), list.size());
    const std::string_view part = trimmed(list.substr(0, end));
    if (!part.empty()) HMC_TRY(body(part));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return Status();
}

Status checkFile(const char* what, const Path& path) {
  if (path.native().find(':') != std::string::npos) {
    return error(Code::invalidArgument, "{}: the path \"{}\" has a \":\", which separates paths",
                 what, path.native());
  }
  std::error_code unknown;
  if (std::filesystem::is_regular_file(path, unknown)) return Status();
  return error(Code::invalidArgument, "{}: there is no file \"{}\"", what, path.native());
}

// Files of a folder, separated by ":". The folder may be the only file itself.
Result<std::string> filesOf(const char* what, const Path& folder, const std::string& names) {
  if (names.empty()) {
    HMC_TRY(checkFile(what, folder));
    return folder.native();
  }
  std::string all;
  const Status found = forEach(names, ',', [&](std::string_view name) -> Status {
    const Path file = folder / name;
    HMC_TRY(checkFile(what, file));
    all += (all.empty() ? "" : ":") + file.native();
    return Status();
  });
  if (!found.ok()) return found;
  return all;
}

Result<std::string> passwordIn(const Path& path) {
  HMC_TRY(checkFile("tlsPkPwd", path));
  std::ifstream file(path);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  return std::string(trimmed(all));
}

Result<TlsOptions> optionsFrom(const Named& named) {
  TlsOptions options;
  options.mode = TlsOptions::Mode::required;
  if (named.tlsCaPath.empty() && named.tlsCaFile.empty())
    return error(Code::invalidArgument, "tlsCaPath and tlsCaFile name no authority");
  HMC_ASSIGN(options.ca,
             filesOf("tlsCaPath, tlsCaFile", named.top / named.tlsCaPath, named.tlsCaFile));
  if (named.tlsCert.empty()) return error(Code::invalidArgument, "tlsCert names no certificate");
  options.certificate = named.top / named.tlsCert;
  HMC_TRY(checkFile("tlsCert", options.certificate));
  if (!named.tlsPk.empty()) {
    options.key = named.top / named.tlsPk;
    HMC_TRY(checkFile("tlsPk", options.key));
  }
  if (!named.tlsPkPwd.empty()) {
    HMC_ASSIGN(options.keyPassword, passwordIn(named.top / named.tlsPkPwd));
  }
  if (!named.tlsCrlPath.empty() || !named.tlsCrlFile.empty()) {
    HMC_ASSIGN(options.crl,
               filesOf("tlsCrlPath, tlsCrlFile", named.top / named.tlsCrlPath, named.tlsCrlFile));
  }
  return options;
}

Status lockedPassword(const char* what) {
  return error(Code::invalidArgument,
               "{}: passwords that only another library can decrypt are not read: give a file "
               "with the password that only this user can read, or call "
               "smem_set_config_store_tls_key with a function that decrypts it",
               what);
}

}  // namespace

Result<TlsOptions> tlsFrom(const smem_tls_option& option) {
  if (!text(option.kmcKsfMaster).empty() || !text(option.kmcKsfStandby).empty())
    return lockedPassword("kmcKsfMaster, kmcKsfStandby");
  if (text(option.tlsPk).empty()) return error(Code::invalidArgument, "tlsPk names no key");
  return optionsFrom({text(option.tlsTopPath), text(option.tlsCaPath), text(option.tlsCaFile),
                      text(option.tlsCert), text(option.tlsPk), text(option.tlsPkPwd),
                      text(option.tlsCrlPath), text(option.tlsCrlFile)});
}

Result<TlsOptions> tlsFrom(const smem_tls_config& config) {
  if (!text(config.decrypterLibPath).empty()) return lockedPassword("decrypterLibPath");
  return optionsFrom({{},
                      text(config.caPath),
                      {},
                      text(config.certPath),
                      text(config.keyPath),
                      text(config.keyPassPath),
                      text(config.crlPath),
                      {}});
}

Result<TlsOptions> tlsFrom(std::string_view given) {
  Named named;
  std::string ignored;
  const std::map<std::string_view, std::string*> fields{
      {"tlsCaPath", &named.tlsCaPath},   {"tlsCaFile", &named.tlsCaFile},
      {"tlsCert", &named.tlsCert},       {"tlsPk", &named.tlsPk},
      {"tlsPkPwd", &named.tlsPkPwd},     {"tlsCrlPath", &named.tlsCrlPath},
      {"tlsCrlFile", &named.tlsCrlFile}, {"packagePath", &ignored}};
  HMC_TRY(forEach(given, ';', [&](std::string_view setting) -> Status {
    const size_t colon = setting.find(':');
    const auto field = fields.find(trimmed(setting.substr(0, colon)));
    if (colon == std::string_view::npos || field == fields.end()) {
      return error(Code::invalidArgument,
                   "tls_info: \"{}\" is none of \"tlsCaPath: PATH\", tlsCaFile, tlsCert, tlsPk, "
                   "tlsPkPwd, tlsCrlPath, tlsCrlFile and packagePath",
                   setting);
    }
    *field->second = trimmed(setting.substr(colon + 1));
    return Status();
  }));
  return optionsFrom(named);
}

void TlsSettings::set(std::optional<TlsOptions> options) {
  std::lock_guard lock(mutex_);
  options_ = std::move(options);
}

void TlsSettings::setKey(std::string key, std::string password) {
  std::lock_guard lock(mutex_);
  key_ = std::move(key);
  password_ = std::move(password);
}

pool::Protection TlsSettings::protection() const {
  std::lock_guard lock(mutex_);
  if (!options_) return {};
  TlsOptions options = *options_;
  if (options.key.empty()) {
    options.key = key_;
    options.keyPassword = password_;
  }
  return {options, options};
}

}  // namespace hmc::capi
