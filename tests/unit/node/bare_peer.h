#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "control/control.h"
#include "control/security.h"
#include "node/descriptions.h"
#include "unit/node/node_pair.h"

namespace hmc {

// A peer that is no Node: it says what a test has it say. Knows no request.
class BarePeer : public control::ControlEvents {
 public:
  explicit BarePeer(const std::string& name, const std::string& secret = "") {
    control::ControlOptions options;
    options.name = name;
    options.secret = secret;
    EXPECT_TRUE(control::addDefaults(options, {}).ok());
    control = must(control::Control::create(options, *this));
    control->setAttributes(Attributes().encode());
  }

  std::shared_ptr<control::Channel> connect(const std::string& address) const {
    return must(control->connect(address, "", kDefaultTimeout));
  }

  Status joined(const std::shared_ptr<control::Channel>&) override { return Status(); }
  Status joinedAgain(const std::shared_ptr<control::Channel>&, const std::string&) override {
    return Status();
  }
  void left(const std::shared_ptr<control::Channel>&, const Status&) override {}
  void note(const std::shared_ptr<control::Channel>&, std::string) override {}
  void answer(const std::shared_ptr<control::Channel>&, uint16_t method, std::string_view,
              control::Channel::Answered reply) override {
    reply(error(Code::unsupported, "a bare peer does not know request {}", method));
  }

  std::unique_ptr<control::Control> control;
};

}  // namespace hmc
