#include "options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <stdexcept>

#include <fmt/core.h>

// By hand: a library for command lines takes longer to compile than the rest of the program.
namespace hmc::uhm {

namespace {

constexpr int kUsageError = 2;
constexpr size_t kSmallest = size_t{1} << 5;
constexpr size_t kLargest = size_t{1} << 26;

// Throws std::invalid_argument with what is wrong about a value.
using Setter = std::function<void(const std::string&)>;

struct Setting {
  std::string option;
  const char* variable;  // of the environment; null: none
  std::string help;      // with the default
  Setter set;
};

// "4096", "4KiB", "64MiB", "1GiB"
uint64_t parseSize(const std::string& text) {
  uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size() - end);
  const int shift = unit.empty()    ? 0
                    : unit == "KiB" ? 10
                    : unit == "MiB" ? 20
                    : unit == "GiB" ? 30
                                    : -1;
  if (failed != std::errc() || shift < 0 || value > (UINT64_MAX >> shift))
    throw std::invalid_argument(fmt::format("\"{}\" is no size: 4096, 4KiB and 64MiB are", text));
  return value << shift;
}

template <class T>
Setter number(T& into, uint64_t least = 0, uint64_t most = std::numeric_limits<T>::max()) {
  return [&into, least, most](const std::string& text) {
    const uint64_t value = parseSize(text);
    if (value < least || value > most)
      throw std::invalid_argument(fmt::format("{} is not {} to {}", text, least, most));
    into = static_cast<T>(value);
  };
}

Setter word(std::string& into) {
  return [&into](const std::string& text) { into = text; };
}

std::string modeNames() {
  std::string names;
  for (const Mode& mode : modes()) names += std::string(names.empty() ? "" : ", ") + mode.name;
  return names;
}

void setMode(Options& options, const std::string& name) {
  options.mode = findMode(name);
  if (!options.mode)
    throw std::invalid_argument(fmt::format("\"{}\" is none of {}", name, modeNames()));
}

void setSizes(Options& options, const std::string& list) {
  options.sizes.clear();
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    options.sizes.push_back(parseSize(list.substr(at, comma - at)));
    at = comma + 1;
  }
}

std::vector<Setting> settingsOf(Role role, Options& to) {
  const bool client = role == Role::client;
  std::vector<Setting> all = {
      {"--mode", nullptr,
       "how to move the bytes, the same on both sides: " + modeNames() + " (uhm)",
       [&to](const std::string& name) { setMode(to, name); }},
      {"--server-ip", "SERVER_IP", "where the server listens (127.0.0.1)", word(to.serverIp)},
      {"--client-ip", "CLIENT_IP", "where the client comes from (127.0.0.1)", word(to.clientIp)},
      {"--tcp-server-ip", "TCP_SERVER_IP", "the server of the control link (as SERVER_IP)",
       word(to.controlIp)},
      {"--ctrl-uds-dir", "CTRL_UDS_DIR", "a folder: the control link is a unix socket there",
       word(to.udsDir)},
      {"--self-rank", "SELF_RANK", fmt::format("our rank ({})", client ? 1 : 0),
       number(to.selfRank)},
      {"--peer-rank", "PEER_RANK", fmt::format("the other side's rank ({})", client ? 0 : 1),
       number(to.peerRank)},
      {"--data-port", nullptr, "the server's port for data (2025)", number(to.dataPort, 1)},
      {"--ctrl-port", nullptr, "the server's port for the control link (2028)",
       number(to.controlPort, 1)},
      {"--channels", "NUM_CHANNELS", "RDMA queue pairs, 1 to 16 (1)", number(to.channels, 1, 16)},
      {"--buffer", nullptr, "bytes of a ConnBuffer (128MiB)", number(to.buffer, 1)},
  };
  if (!client) return all;
  const std::vector<Setting> more = {
      {"--pipeline-chunk", "PIPELINE_CHUNK", "bytes of a chunk in mode pipeline (4MiB)",
       number(to.chunk)},
      {"--pipeline-inflight", "PIPELINE_INFLIGHT", "chunks under way in mode pipeline (64)",
       number(to.inflight, 1)},
      {"--sizes", nullptr, "bytes of a transfer: 1KiB,64MiB (32 to 64MiB, each twice the last)",
       [&to](const std::string& list) { setSizes(to, list); }},
      {"--repeats", nullptr, "transfers that count, of each size (5)", number(to.repeats, 1)},
      {"--warmups", nullptr, "transfers before them that do not (2)", number(to.warmups)},
      {"--csv", nullptr, "the file that times are added to (performanceTest_client.csv)",
       word(to.csv)},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void printHelp(const char* name, const std::vector<Setting>& settings) {
  fmt::print("Usage: {} [OPTION VALUE]...\n\n  {:<20} {:<18} print this\n", name, "--help", "");
  fmt::print("  {:<20} {:<18} use host memory, whatever accelerators there are\n", "--host", "");
  for (const Setting& one : settings) {
    fmt::print("  {:<20} {:<18} {}\n", one.option, one.variable ? one.variable : "", one.help);
  }
  fmt::print(
      "\nThe second column is the variable of the environment that counts where the option is "
      "missing.\nExamples:\n  uhm_server --mode g2h2g\n  uhm_client --mode g2h2g --sizes "
      "1MiB,64MiB --repeats 20\n");
}

void set(const Setting& setting, const std::string& name, const std::string& value) try {
  setting.set(value);
} catch (const std::invalid_argument& wrong) {
  throw std::invalid_argument(fmt::format("{}: {}", name, wrong.what()));
}

void readEnvironment(const std::vector<Setting>& settings) {
  for (const Setting& one : settings) {
    const char* value = one.variable ? std::getenv(one.variable) : nullptr;
    if (value && *value) set(one, one.variable, value);
  }
}

void readCommandLine(const char* name, const std::vector<Setting>& settings,
                     const std::vector<std::string>& words, Options& options) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--help") {
      printHelp(name, settings);
      std::exit(0);
    }
    if (words[i] == "--host") {
      options.hostOnly = true;
      continue;
    }
    auto found = std::find_if(settings.begin(), settings.end(),
                              [&](const Setting& one) { return one.option == words[i]; });
    if (found == settings.end())
      throw std::invalid_argument(fmt::format("there is no option \"{}\"", words[i]));
    if (i + 1 == words.size()) throw std::invalid_argument(words[i] + ": the value is missing");
    set(*found, found->option, words[++i]);
  }
}

}  // namespace

Options parseOptions(Role role, int argc, char** argv) {
  const char* name = role == Role::client ? "uhm_client" : "uhm_server";
  Options options;
  (role == Role::client ? options.selfRank : options.peerRank) = 1;
  const std::vector<Setting> settings = settingsOf(role, options);
  try {
    readEnvironment(settings);
    readCommandLine(name, settings, {argv + 1, argv + argc}, options);
  } catch (const std::invalid_argument& wrong) {
    fmt::print(stderr, "{}: {}\n`{} --help` lists the options.\n", name, wrong.what(), name);
    std::exit(kUsageError);
  }
  if (options.controlIp.empty()) options.controlIp = options.serverIp;
  if (options.sizes.empty()) {
    for (size_t size = kSmallest; size <= kLargest; size *= 2) options.sizes.push_back(size);
  }
  return options;
}

}  // namespace hmc::uhm
