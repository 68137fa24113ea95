#pragma once

#define HMC_API __attribute__((visibility("default")))
