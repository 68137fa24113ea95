#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/core.h>

#include "commands.h"
#include "help/completion.h"
#include "help/man_page.h"

namespace hmc::tool {

namespace {

std::string completionFor(const std::string& shell, const CommandData& program) {
  if (shell == "bash") return bashCompletion(program);
  return shell == "zsh" ? zshCompletion(program) : fishCompletion(program);
}

// Below share/ of the folder where the program is installed.
bool write(const std::filesystem::path& file, const std::string& text) {
  std::error_code problem;
  std::filesystem::create_directories(file.parent_path(), problem);
  std::ofstream out(file, std::ios::trunc);
  out << text;
  out.close();
  if (!out) fmt::print(stderr, "hmc: cannot write {}\n", file.string());
  return out.good();
}

bool writeHelpFiles(const std::filesystem::path& share, const CommandData& program) {
  return write(share / "man/man1/hmc.1", manPage(program)) &&
         write(share / "bash-completion/completions/hmc", bashCompletion(program)) &&
         write(share / "zsh/site-functions/_hmc", zshCompletion(program)) &&
         write(share / "fish/vendor_completions.d/hmc.fish", fishCompletion(program));
}

}  // namespace

void addHelpFiles(CLI::App& app, int& exitStatus) {
  auto shell = std::make_shared<std::string>();
  auto* completion = app.add_subcommand(
      "completion", "Prints what makes a shell complete commands, options and values of hmc.");
  completion->add_option("shell", *shell, "Whose")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh", "fish"}));
  completion->footer(
      "Installed packages bring it along. For this shell alone:\n\n"
      "Examples:\n"
      "  hmc completion bash > hmc.bash && . ./hmc.bash\n"
      "  . <(hmc completion zsh)        # after compinit\n"
      "  hmc completion fish | source");
  completion->callback([shell, &app, &exitStatus] {
    fmt::print("{}", completionFor(*shell, describe(app)));
    exitStatus = 0;
  });

  auto folder = std::make_shared<std::string>();
  auto* files =
      app.add_subcommand("help-files", "Manual page and completion, for a package")->group("");
  files->add_option("share", *folder)->required();
  files->callback(
      [folder, &app, &exitStatus] { exitStatus = writeHelpFiles(*folder, describe(app)) ? 0 : 1; });
}

}  // namespace hmc::tool
