#pragma once

namespace hmc {

// Base of what is used and destroyed through a pointer to it, and never copied.
class Interface {
 public:
  virtual ~Interface() = default;
  Interface() = default;
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;
};

}  // namespace hmc
