#pragma once

#include "hmc/result.h"

// Hand a failure on to the caller.

#define TOOL_TRY(expression)                                           \
  do {                                                                 \
    if (::hmc::Status tried = (expression); !tried.ok()) return tried; \
  } while (false)

#define TOOL_JOIN_(a, b) a##b
#define TOOL_JOIN(a, b) TOOL_JOIN_(a, b)
#define TOOL_ASSIGN(declaration, expression)                                            \
  auto TOOL_JOIN(result_, __LINE__) = (expression);                                     \
  if (!TOOL_JOIN(result_, __LINE__).ok()) return TOOL_JOIN(result_, __LINE__).status(); \
  declaration = *std::move(TOOL_JOIN(result_, __LINE__))
