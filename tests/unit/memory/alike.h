#pragma once

#include <type_traits>

namespace hmc {

// Whether a prototype of ours calls the real function: the same, our int for an enum, our struct
// for one of the same size, a void pointer for one to a struct that nobody looks into.
template <class Ours, class Real>
constexpr bool isAlike() {
  if constexpr (std::is_same_v<Ours, Real>) {
    return true;
  } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Real>) {
    using OursTo = std::remove_pointer_t<Ours>;
    using RealTo = std::remove_pointer_t<Real>;
    if constexpr (std::is_void_v<OursTo> && std::is_class_v<RealTo>) {
      return true;
    } else {
      return std::is_const_v<OursTo> == std::is_const_v<RealTo> &&
             isAlike<std::remove_const_t<OursTo>, std::remove_const_t<RealTo>>();
    }
  } else if constexpr (std::is_void_v<Ours> || std::is_void_v<Real>) {
    return false;
  } else {
    const bool numbers =
        std::is_integral_v<Ours> && (std::is_enum_v<Real> || std::is_integral_v<Real>);
    const bool structs = std::is_class_v<Ours> && std::is_class_v<Real>;
    return (numbers || structs) && sizeof(Ours) == sizeof(Real) && alignof(Ours) == alignof(Real);
  }
}

template <class Ours, class Real>
struct AreAlike : std::false_type {};
template <class Answer, class... Ours, class RealAnswer, class... Real>
struct AreAlike<Answer (*)(Ours...), RealAnswer (*)(Real...)> {
  static constexpr bool compare() {
    if constexpr (sizeof...(Ours) == sizeof...(Real)) {
      return isAlike<Answer, RealAnswer>() && (isAlike<Ours, Real>() && ...);
    } else {
      return false;
    }
  }
  static constexpr bool value = compare();
};

}  // namespace hmc
